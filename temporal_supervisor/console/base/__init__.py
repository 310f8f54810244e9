"""The base of all commands: text on the terminal, hints, access, exit codes."""
