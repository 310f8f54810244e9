"""The messages that a run takes: queries, updates, and the signals between supervisors."""
