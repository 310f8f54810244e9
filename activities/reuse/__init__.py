"""Findings of earlier runs, read from the store and copied into a run."""
