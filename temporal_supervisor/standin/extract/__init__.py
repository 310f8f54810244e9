"""The stand-in's brain: extractive, not intelligent. It knows no team, table or document."""
