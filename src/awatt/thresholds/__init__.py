"""Thresholds decide from the scores which aspects a query has. Only ``default`` works without torch."""
