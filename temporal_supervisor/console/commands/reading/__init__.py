"""Commands that show files that come with the program."""
