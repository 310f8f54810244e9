"""A worker agent: what its loop does next, what its last words say, what fits into its prompt."""
