"""A run for commands: its options, start, state and outcome."""
