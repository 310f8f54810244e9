"""Commands that show what comes with the program."""
