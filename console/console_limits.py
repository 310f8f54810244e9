"""Every timeout and limit of the command line, each with its reason. Times are `timedelta`."""

from datetime import timedelta

from supervision import limits

RPC_TIMEOUT = timedelta(seconds=3)  # a query waits for a Worker: with none it would hang for its default
PROBE_TIMEOUT = timedelta(seconds=3)  # a provider's list of models comes in well under a second
PROBE_BYTES = 64 * 1024  # of its reply: what it says of one model is 2 KB
UPDATE_WAIT = timedelta(seconds=10)  # an update needs one workflow task; on a busy Worker some seconds
CANCEL_WAIT = timedelta(seconds=20)  # a cancelled run closes in under a second, after a Worker restart in some
POLLER_FRESH = timedelta(seconds=70)  # a live Worker polls anew every 60 s; the server lists dead ones for minutes
FOLLOW_POLL = timedelta(seconds=1)  # how often the server is asked whether a followed run has news
FOLLOW_IDLE = timedelta(seconds=5)  # a run without news is queried after this: to notice that no Worker answers
FOLLOW_REDRAW = timedelta(milliseconds=250)  # clocks move, and no flicker
FOLLOW_CHILDREN = 8  # worker agents asked per poll, in rotation
FOLLOW_LAST_LOOKS = 5  # polls after a run's end that collect what its worker agents did last
OBSERVED_ROUNDS = 2  # polls between two looks at what a run stands still for
FOLLOW_LINE_CHARS = 240  # one event on one line
STORY_CHARS = 1000  # one event of a trace, whose texts are shortened where they are noted
RUN_ID_BYTES = 400  # the server allows 1,000; child ids add to it
LISTED_RUNS = 50
SEARCHED_RUNS = 1000  # one page of the server's list, for the newest run and the beginning of an id
DESCRIBED_AT_ONCE = 16  # questions to the server at a time, while runs are listed
DOCTOR_RUNS = 100  # open runs that `doctor` looks at, newest first
CACHE_NEARLY_FULL = 0.8  # of the workflows that Workers hold: time to start another one
DOCTOR_EVENTS = 30  # the first activity that names the run's store is among them
STANDSTILL_WORKFLOWS = 20  # of one run that are looked at for what it waits for: one question to the server each
LATEST_EVENTS = 100  # of a workflow's history, in which a pending activity was scheduled
STANDSTILL_SUBJECTS = 4  # subtasks named on one line
STANDSTILL_CHARS = 600
HEARTBEAT_OVERDUE = 3 * limits.HEARTBEAT_EVERY  # a busy Worker may be late with one or two
QUEUED_LONG = timedelta(seconds=2)  # a free Worker takes an activity within milliseconds
