"""What a run costs in time and CPU, beside a minimal system or another version on the same machine.

`python -m benchmarks` starts everything it needs on loopback and measures; see docs/benchmarks.md.
"""
