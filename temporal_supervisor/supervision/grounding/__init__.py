"""Grounding: whether the figures, names, quotations and addresses of a text are in its sources."""
