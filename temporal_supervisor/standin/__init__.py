"""The stand-in model: a small server that speaks the Messages API without a model.

`server` serves a brain, `extract` is the bundled one, and `lookup` reads tables and texts for it.
`python -m temporal_supervisor.standin --port N` starts the server.
"""
