"""How good the answers are: `make scores` writes docs/scores.md from the results beside this file."""
