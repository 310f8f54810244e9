"""Parameters of the command line: what all commands share, and those by which people decide."""
