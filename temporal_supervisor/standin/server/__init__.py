"""A small server that speaks the Messages API: transport, streaming, faults, call log.

The brain is given to it.
"""
