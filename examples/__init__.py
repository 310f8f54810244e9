"""Goals that one would want to ask, each with data of its own and facts that can be checked."""
