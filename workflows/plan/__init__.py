"""Plans: the first one, the next step, a revision."""
