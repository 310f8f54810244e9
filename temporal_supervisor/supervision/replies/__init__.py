"""Reading the replies of models: slightly wrong forms are read as they were meant. See `rules`."""
