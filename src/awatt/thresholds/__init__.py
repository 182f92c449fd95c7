"""Thresholds decide from the scores which aspects a query has. ``default`` and ``calibration`` work without torch."""
