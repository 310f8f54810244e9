"""A run under way: the state of its subtasks and what follows from it."""
