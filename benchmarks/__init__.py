"""What a run costs in time, CPU and history, side by side with a minimal system on the same machine.

`python -m benchmarks` starts everything it needs on loopback and measures; see docs/benchmarks.md.
"""
