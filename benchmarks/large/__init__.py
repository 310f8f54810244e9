"""Runs of the largest sizes that a request may ask for: do they complete, and how long is a workflow task at most?

`python -m benchmarks.large` (or `make large`) runs them, with kill -9 of the Worker process in the middle.
"""
