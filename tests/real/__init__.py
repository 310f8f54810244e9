"""A real model that runs on this machine, and questions for it: `make real`."""
