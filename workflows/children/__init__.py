"""Messages between a supervisor and a nested one while both work: reports, requests, terms, the result."""
