"""Thresholds: which of the scored aspects a query is given. ``default`` needs no torch, the others do."""
