"""The base of every room: errors, numbers, text, JSON, keys of the store, names of queues, trust."""
