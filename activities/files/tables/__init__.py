"""How foreign tables are read: where the header stands, and which number each cell is."""
