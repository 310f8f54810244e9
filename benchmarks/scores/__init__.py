"""Scores of answers: `make scores` writes docs/scores.md from the results beside this file."""
