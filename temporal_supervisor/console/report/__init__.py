"""The report of a run: one page to hand on, and the evidence behind its answer."""
