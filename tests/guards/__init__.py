"""Guards, each with the case that turns red without it: `make guards`."""
