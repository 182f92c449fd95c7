"""The detector's own model: token vectors, closed-form classifiers and a small network; numpy at run time."""
