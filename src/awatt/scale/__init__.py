"""More than one machine, with Ray: detection in many files, Ray datasets, grids of experiments."""
