"""The page in a browser: ask, watch, decide, read."""
