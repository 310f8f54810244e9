"""Rows of tables as grounds: the tables in a text, the query behind them, and what they know of a figure."""
