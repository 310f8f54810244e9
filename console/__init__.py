"""The parts of the command line `starter.py`: asking for runs, following them, showing what they came to.

Facts come from the server and from queries, never from workflow code.
"""
