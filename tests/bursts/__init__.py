"""Bursts of foreign data on one Worker, and an honest run beside each: `make bursts`."""
