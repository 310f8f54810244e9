"""Findings of earlier runs: which ones are the same work, and what a plan takes of them."""
