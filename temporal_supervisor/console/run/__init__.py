"""A run as the command line sees it: its options, its start, its handle, its outcome."""
