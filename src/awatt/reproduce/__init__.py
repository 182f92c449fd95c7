"""The paper's tables and figures: what each needs, running it, and showing it beside the published numbers."""
