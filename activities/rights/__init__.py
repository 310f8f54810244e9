"""Who may do what: an activity serves the run that its caller belongs to, and nobody else."""
