"""How workflows reach activities."""
