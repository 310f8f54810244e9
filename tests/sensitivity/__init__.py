"""Planted changes through the whole path: whether `--no-worse-than` sees them, and nothing where there is none."""
