"""The parts of the command line `starter.py`: requests, runs, views, commands and the demo.

Facts come from the server and from queries, never from workflow code.
"""
