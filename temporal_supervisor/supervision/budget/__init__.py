"""Time and money: what a run may still use, and which worker agent gets how much of it."""
