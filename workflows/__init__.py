"""The deterministic side: no I/O, no clock, no environment, no model SDK.

`supervisor` and `worker_agent` are the two workflows; `calls` and `children` are how they reach activities and
child workflows; `contracts` is what passes between them. The rules they follow are in `supervision`.
"""
