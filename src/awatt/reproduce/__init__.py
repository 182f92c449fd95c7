"""The paper's tables and figures: run what they need, and show our numbers beside the published ones."""
