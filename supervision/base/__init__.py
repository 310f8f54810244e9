"""What every room stands on: errors, numbers, text, keys of the store, names of queues, trust in endpoints."""
