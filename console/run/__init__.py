"""A run as the command line sees it: how it is requested, started, asked and how it ended."""
