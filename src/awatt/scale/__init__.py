"""More than one machine, by Ray: detection in many files, a Ray dataset, a grid of experiments."""
