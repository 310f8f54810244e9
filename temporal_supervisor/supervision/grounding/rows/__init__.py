"""Rows of tables as grounds: the row and column of a figure, and what they know against a text.

    markdown_tables       the tables in a text; queries: the query behind them, by its SQL
    listed_tables         the columns of tables that an agent was shown, before it asked
    column_kinds          whether a column holds figures, texts or times, and its units
    row_facts             `Places.facts`: where a figure is looked up, its row, column, years, units
    contradictions        what a row's facts have against the words near a figure

The others look for sentences without such a figure: `superlatives`, `named_cells`, `joined_names`
and `row_counts`.
"""
