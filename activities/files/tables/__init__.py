"""The reading of foreign tables: the place of the header, and the number in each cell."""
