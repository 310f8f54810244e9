"""Reading what models write: the rules by which a slightly wrong reply is read as it was meant. See `rules`."""
