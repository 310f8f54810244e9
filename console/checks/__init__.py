"""What `doctor` looks at: one row for each thing that a run needs."""
