"""Model calls: the provider's SDK, its errors, the journal, the gate before it."""
