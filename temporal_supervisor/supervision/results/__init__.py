"""The end of a run: answer, success, times, and their fit into a payload."""
