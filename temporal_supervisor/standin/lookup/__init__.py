"""Exact answers from tables and texts: queries with their results in words, and sentences."""
