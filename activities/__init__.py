"""The side that touches the world: model calls, tools, teams, artifacts.

Workflow-safe (values and typed names only): `contracts`, `planning`, `agent_turn`, `tool_calls`, `refinement`,
`reviewing`, `judging`, `synthesis`, `run_setup`, `publishing`. Worker-side: all others. Only `anthropic_model`
imports the model SDK.
"""
