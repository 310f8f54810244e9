"""Grounding: whether the figures, quotations and addresses of a text are in its sources."""
