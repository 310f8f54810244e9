"""The activities of a worker agent: its turns and its tool calls."""
