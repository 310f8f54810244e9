"""The base of all commands: terminal output, hints, access, exit codes."""
