"""Runs that commit a fault, and the same runs without it."""
