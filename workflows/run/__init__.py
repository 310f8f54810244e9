"""The surroundings of the work on a run: its terms, its plan, its waits and its slots."""
