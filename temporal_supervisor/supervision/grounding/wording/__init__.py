"""How texts are made up: sentences, clauses and the words near a figure, dates, code in fences."""
