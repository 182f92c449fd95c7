"""The benchmark: its datasets, how they are built, and the episodes sampled from them."""
