"""The graph of a plan: its rules, the roles of its subtasks, its revisions."""
