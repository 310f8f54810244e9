"""Messages between a supervisor and a nested one: reports, requests, terms, the result."""
