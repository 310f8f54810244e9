"""The base of every room: errors, numbers, text, keys of the store, names of queues, trust."""
