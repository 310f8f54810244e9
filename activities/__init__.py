"""The side that touches the world: model calls, tools, teams, artifacts.

The modules here are the activities, one class each; workflows import them for their typed names only, and the values of
`contracts`. The packages are their parts: `prompts` and `replies` (what is sent to the model and how its reply is
read), `model` (the call itself), `teams` and `tools`, `store`. Only `model.anthropic_model` imports the model SDK.
"""
