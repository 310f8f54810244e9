"""The stand-in model: a small server that speaks the Messages API without any model behind it.

It is extractive, not intelligent: plans follow the roles it is shown, tool arguments come from the subtask and
from earlier tool results, answers from tool results and findings. It knows no team, table or document.
`python -m standin --port N` starts it.
"""
