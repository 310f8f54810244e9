"""The numbers of the benchmarks, each with its reason."""

from datetime import timedelta

START_WAIT = timedelta(seconds=60)  # a process without compiled bytecode takes seconds to import
STOP_WAIT = timedelta(seconds=10)  # nothing is in flight by then
ROW_TIMEOUT = timedelta(minutes=5)  # the longest row takes ten seconds on two cores
SETTLE = timedelta(seconds=1)  # between rows: the server's work after a run belongs to that run
POLL = timedelta(milliseconds=50)  # until a started process says that it is ready
OUTPUT_SHOWN_CHARS = 1024  # the end of a process's output, in the message that it failed
