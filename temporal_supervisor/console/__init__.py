"""The parts of the command line `starter.py`: runs, views, commands and the demo."""
