"""The artifact store: content by reference, and how it is read back."""
