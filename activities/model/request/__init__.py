"""A request as one model takes it: its body, its cache breakpoints, and what an endpoint refused before."""
