"""Child processes for work on foreign text, bounded in time and memory and shared fairly."""
