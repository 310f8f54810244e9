"""Teams: read from files, and kept as they were when a run began."""
