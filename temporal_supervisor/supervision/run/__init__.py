"""The state of a run: its subtasks, budget, waits and decisions."""
