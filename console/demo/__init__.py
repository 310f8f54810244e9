"""The demo, `make demo`: a server, a model, a Worker and one run on bundled data."""
