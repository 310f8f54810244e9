"""The stand-in model: a small server that speaks the Messages API without any model behind it.

`server` serves a brain, `extract` is the one that ships; what it knows of tables and texts is in `lookup`.
`python -m temporal_supervisor.standin --port N` starts them.
"""
