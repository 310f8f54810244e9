"""The command `eval`: sets of questions, the table of what became of them."""
