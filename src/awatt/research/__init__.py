"""The paper's systems: assembled from their parts, trained, evaluated and saved."""
