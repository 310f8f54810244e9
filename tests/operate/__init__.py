"""What operators run beside Workers, in the programs that `make operate-test` gets: servers, databases, collectors."""
