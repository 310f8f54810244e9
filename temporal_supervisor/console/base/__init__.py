"""What every command of the command line uses: text on the terminal, hints, access, exit codes."""
