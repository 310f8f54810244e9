"""The graph of a plan: whether it is valid, who can do what, how later revisions change it."""
