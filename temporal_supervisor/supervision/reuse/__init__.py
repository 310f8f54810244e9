"""Findings of earlier runs: which are the same work, and which a plan takes."""
