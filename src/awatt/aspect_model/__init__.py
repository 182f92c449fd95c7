"""The detector's own model: its features, its training and the weights that ship. Numpy alone at run time."""
