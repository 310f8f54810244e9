"""The stand-in's brain, which extracts and knows no team, table or document by name."""
