"""The paper's systems put together: trained, measured and saved."""
