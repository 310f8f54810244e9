"""The base of every room: errors, numbers, text, JSON, keys of the store, queues, trust."""
