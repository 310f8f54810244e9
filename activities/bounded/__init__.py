"""Work on foreign text that cannot be bounded in steps: child processes, bounded in time and memory, shared fairly."""
