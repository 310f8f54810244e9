"""The embedded Temporal server, and the `temporal` program that it runs."""
