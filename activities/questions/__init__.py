"""The questions that a supervisor asks its model: what each is asked with, and how its answer is read."""
