"""The command `eval`: sets of questions and the tables of their results."""
