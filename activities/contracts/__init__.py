"""Inputs and replies of activities: the one package of `activities` whose values workflows read."""
