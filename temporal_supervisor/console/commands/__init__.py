"""The commands of `starter.py`, one module for each group."""
