"""The artifact store: content by reference, and what is read back from it."""
