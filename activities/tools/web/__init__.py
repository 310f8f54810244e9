"""Pages of the web: which may be asked for, and the process that fetches them."""
