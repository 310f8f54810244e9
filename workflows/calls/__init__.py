"""Calls of activities by workflows."""
