"""Every timeout and limit of the command line, each with its reason. Times are `timedelta`."""

from datetime import timedelta

RPC_TIMEOUT = timedelta(seconds=3)  # a query waits for a Worker: with none it would hang for its default
UPDATE_WAIT = timedelta(seconds=10)  # an update needs one workflow task; on a busy Worker some seconds
CANCEL_WAIT = timedelta(seconds=20)  # a cancelled run closes in under a second, after a Worker restart in some
POLLER_FRESH = timedelta(seconds=70)  # a live Worker polls anew every 60 s; the server lists dead ones for minutes
FOLLOW_POLL = timedelta(seconds=1)  # how often a followed run is asked where it stands
FOLLOW_REDRAW = timedelta(milliseconds=250)  # clocks move, and no flicker
FOLLOW_CHILDREN = 8  # worker agents asked per poll, in rotation
FOLLOW_LAST_LOOKS = 5  # polls after a run's end that collect what its worker agents did last
FOLLOW_LINE_CHARS = 240  # one event on one line
RUN_ID_BYTES = 400  # the server allows 1,000; child ids add to it
LISTED_RUNS = 50
SHOWN_ATTEMPT = 3  # an activity's first retries are part of normal operation
SHOWN_RETRYING = 10  # lines of one report
SHOWN_FAILURE_BYTES = 300  # the last failure of an activity: its first sentence
DESCRIBED_CHILDREN = 200  # of a run, with those of its nested runs: more than usually work at once
DESCRIBED_AT_ONCE = 16
LATEST_EVENTS = 200  # of a workflow: what it waits for is among them
DOCTOR_RUNS = 100  # open runs that `doctor` looks at, newest first
DOCTOR_EVENTS = 30  # the first activity that names the run's store is among them
