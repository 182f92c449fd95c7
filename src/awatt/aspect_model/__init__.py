"""The detector's own model: from a few labelled sentences, names and unlabelled reviews to calibrated scores."""
