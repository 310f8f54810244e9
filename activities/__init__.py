"""The side that touches the world: model calls, tools, teams, artifacts.

Workflows import the classes of activities for their typed names, and the values of `contracts`.
"""
