"""The end of a run: its answer, its success, its times, and its fit into a payload."""
