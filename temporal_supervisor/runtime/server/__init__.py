"""The embedded Temporal server and its `temporal` program."""
