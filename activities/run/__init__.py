"""The activities of a run beside its model calls: its beginning, its end, and questions between."""
