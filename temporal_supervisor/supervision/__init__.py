"""The pure rules of supervision: no Temporal, no I/O, no clock.

Everything here is a value or a function of values, so workflows may import it freely and each rule
can be read on one screen and tested without a server. Imports only pydantic and the standard
library.
"""
