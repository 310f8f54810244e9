"""Parts of texts: sentences, clauses and the words near a figure, dates, code in fences."""
