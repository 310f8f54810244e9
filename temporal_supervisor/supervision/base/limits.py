"""Timeouts, limits and retry numbers of workflows and activities, each with its reason.

A number that a single module uses is defined in that module, unless operators may want to know it.
Times are `timedelta` and sizes are bytes, unless a comment gives another unit.
"""

from datetime import timedelta

KIB = 1024

# --- What a request may ask for -------------------------------------------------------------------
GOAL_BYTES = 48 * KIB  # a goal is a question, not a document: longer text is an attachment
REUSED_RUNS = 10  # that one run may take findings from: each is read whole
ATTACHMENTS = 32  # each is named in a prompt
ANSWER_SCHEMA_BYTES = 16 * KIB  # it is part of every prompt that asks for the answer
MAX_BUDGET_TOKENS = 10**15  # beyond, numbers no longer count exactly
MAX_BUDGET_USD = 10.0**9  # far above any run, so a larger one is a slip
MAX_SUBTASKS = 1000  # ~6 events a subtask keeps the root far below the server's 51,200
ITEMS = 1000  # of all templates of a plan, by contract: as many subtasks again
MAX_PARALLEL = 200  # children open at once; the server allows 2,000 pending
MAX_TURNS = 200  # a worker agent that needs more is not converging
MAX_DEPTH = 3  # levels of nested supervisors
MIN_DEADLINE = timedelta(seconds=5)  # below it not even a plan can be made
MAX_DEADLINE = timedelta(days=30)  # a person may be away for weeks
# Forms of replies and of roles' tools that a process keeps: making one takes 1 to 10 ms.
KNOWN_FORMS = 256

# --- What goes into history -----------------------------------------------------------------------
PAYLOAD_AIM_BYTES = 64 * KIB  # what the project's own payloads stay below
PAYLOAD_HARD_BYTES = 256 * KIB  # the server warns above; 2 MiB ends a run on some servers
REPLY_PREVIEW_BYTES = 2 * KIB  # enough for the Web UI to tell the story
SUMMARY_BYTES = 2 * KIB  # a finding's summary, by contract
ANSWER_JSON_BYTES = 64 * KIB  # it travels whole: half of it would be no JSON
ANSWER_INLINE_BYTES = 40 * KIB  # the rest of RunResult needs the difference to PAYLOAD_AIM_BYTES
ERROR_BYTES = KIB  # error messages in history and results
LIMITATIONS = 10  # of one finding
CITATIONS = 100  # of one answer
SOURCE_BYTES = 200  # one source of a finding: a title or an address
# Of columns, that one tool call keeps: they travel with its result, for people alone.
TOOL_READINGS = 8
FINDING_SOURCES = 20  # that one tool call adds to a finding
# Of a supervisor: the server terminates a run at 51,200, and the end takes some thousand.
HISTORY_EVENTS = 40_000
EVAL_EVENTS = 8000  # of an eval, which then continues as new: each question has some fifteen
HISTORY_BYTES = 40 * KIB * KIB  # and at 50 MiB
TRACE_EVENTS = 1000  # root events kept for the query, by contract
STATUS_PAGE = 100  # subtasks on one page of `status`, by contract
DECISIONS_AT_ONCE = 100  # in one update: a page of `status` at once
UPDATES_WARNED = 1500  # `doctor` warns from this many updates of a run: the server takes 2,000
# The last ones are kept for `resume`, `extend_limits` and the like; a signal decides then.
UPDATES_FOR_DECISIONS = 1900
EFFECTS_TOLD = 20  # the latest calls with effects, shown to whoever takes over a subtask

# --- What messages show ---------------------------------------------------------------------------
LINE_BYTES = 160  # a label in the timeline, the path of a field, the first words of a description
# A claim, a limitation, a reason, a heading, the first sentence of a library's complaint.
SENTENCE_BYTES = 300
# A conflict and how it was settled, a note on a finding, names listed for one who used another.
PARAGRAPH_BYTES = 600
FIELD_COMPLAINTS = 8  # fields complained about at once
# Claims that go back to their author at once, and that a finding or a result lists.
UNSUPPORTED_SHOWN = 20
UNSUPPORTED_LISTED = 100  # of a whole run, in its result

# --- Tools ----------------------------------------------------------------------------------------
# What one tool result may add to a conversation; the rest is read by `read_output`.
TOOL_OUTPUT_CHARS = 20_000
TOOL_CALLS_PER_TURN = 16  # one turn asking for more is answered with errors for the surplus
TOOL_TIMEOUT = timedelta(seconds=60)  # one attempt of one tool call
# That a team file may give one call of an MCP server's tool.
MCP_TIMEOUT_MAX = timedelta(minutes=10)
# Of a server with all its processes: Node takes 50, a browser several hundred.
MCP_MEMORY_MIB = 1024
TOOL_MARGIN = timedelta(seconds=10)  # the tool's own timeout ends it first and tells the model
TOOL_RETRY_INITIAL = timedelta(seconds=1)  # as for model calls

# Team.toml, the import of tools.py, the index of documents; in a thread.
TEAM_READ_TIMEOUT = timedelta(seconds=20)
# One data file or document of a team: loaded into each Worker process.
TEAM_DATA_BYTES = 64 * KIB * KIB
SQL_TIMEOUT = timedelta(seconds=3)  # of bundled data a query takes milliseconds
SQL_ROWS = 200  # more belongs into an aggregate

# --- Supervision ----------------------------------------------------------------------------------
# A plan in history, packed: 1,000 subtasks of 200 bytes, or 50,000 dependencies.
PLAN_REPLY_BYTES = 224 * KIB
PLAN_TRIES = 3  # the first plan and two repairs, by contract
NEW_ROLES = 5  # that one plan may define: more is a team to be written down
TEAM_ROLES = 50  # each is a line of the planner's prompt
ROLE_DESCRIPTION_CHARS = 1000  # the planner chooses by it: a paragraph
ROLE_PROMPT_CHARS = 40_000  # ~11k tokens that every turn pays for
# Of one run: each is listed to the planner and converted by each Worker that reads it.
DATA_FILES = 2000
DATA_BYTES = KIB**3  # of one run's files
SMALL_ATTACHMENT_BYTES = 4 * KIB  # in the brief itself: a tool call costs more than its text
CANDIDATES = 5  # attempts at one subtask of which the best is kept, by contract
FEEDBACK_BYTES = 1000  # of a reviewer on one finding: it should be specific
PLAN_LACKS = 5  # things that a reviewer misses in a plan
VERDICTS = 50  # of one review: feedback travels in history
CONFLICTS = 20  # of one review
SUBTASK_ATTEMPTS = 3  # by contract
# A subtask that was refused or called impossible is described better once, by contract.
DECLINED_REFINES = 1
# After the first failed attempt; doubled by each further one, by contract.
ATTEMPT_PAUSE = timedelta(seconds=1)
DESCRIPTION_CHARS = 4000  # a subtask's description
NOTES_BYTES = 40 * KIB  # and of all of them
# Of one list in a prompt: the descriptions of all subtasks, the missing findings.
PROMPT_LIST_BYTES = 60 * KIB
# Of a subtask's description and its note, however many there are: the first words.
NOTE_LEAST_BYTES = 60
GAPS_SHOWN = 100  # missing findings named one by one in a prompt; the answer's own list has all
# First durable wait for a provider; grows by PROVIDER_PAUSE_FACTOR.
PROVIDER_PAUSE = timedelta(seconds=30)
PROVIDER_PAUSE_FACTOR = 1.5  # some ten waits for an outage of an hour
PROVIDER_PAUSE_MAX = timedelta(minutes=10)  # the longest that a provider is back unnoticed
NESTED_SUBTASKS_LEAST = 2  # of a nested run: with one it does no more than a worker agent
NESTED_DEADLINE_SHARE = 0.9  # of what is left: the parent must still write its answer
ROLE_BREAKER_FAILURES = 3  # failed attempts in a row, by contract
# A role that fails at once may not burn a run's attempts in seconds.
ROLE_BREAKER_COOLDOWN = timedelta(seconds=10)
# That a run may stand still because its roles fail, by contract.
ROLE_REST_TOTAL = timedelta(minutes=1)
SYNTHESIS_RESERVE = timedelta(seconds=60)  # kept back from the deadline, at most this
SYNTHESIS_RESERVE_SHARE = 0.2  # and at most this share of the whole deadline
# A cancelled child answers in 0.1 s; a worker restart takes some seconds.
CHILD_CLOSE_WAIT = timedelta(seconds=20)
# Of what is left of the deadline, if that is less: the other half is for the answer.
CHILD_CLOSE_SHARE = 0.5
LEAST_GRANT_TOKENS = 4000  # two turns with one small tool output: less brings no finding
# The planner's instructions, a team of some roles, its data and the schema.
PLAN_PROMPT_BYTES = 12 * KIB
# The instructions of a reviewer, a judge or the synthesis, and the plan.
JUDGEMENT_PROMPT_BYTES = 6 * KIB

# --- Model calls ----------------------------------------------------------------------------------
# Here and below: a backstop, not a target; what is cut is paid and asked for again.
PLAN_MAX_TOKENS = 64_000
REFINE_MAX_TOKENS = 32_000  # one description, and the thinking before it
REVIEW_MAX_TOKENS = 64_000
JUDGE_MAX_TOKENS = 32_000  # one choice with its reason, and the thinking before it
TURN_MAX_TOKENS = 64_000
SYNTHESIS_MAX_TOKENS = 64_000
# Of these for a model whose limit is unknown: 16,000 fits into most windows.
UNKNOWN_OUTPUT_SHARE = 0.25
LEAST_OUTPUT_TOKENS = 1024  # beside a prompt: with less room there is no answer
MAX_TOKENS_CEILING = 128_000  # output limit of current models
CUT_RETRIES = 2  # how often a reply cut by max_tokens is asked for again with more room
# How often words in place of a finding go back: a model that has none then ends the attempt.
EMPTY_REPLIES = 2
# Beside its own query, from a small model: of three that return what they will two can agree.
OTHER_QUERIES = 2
TURNS_NOTICE = 2  # turns before its last in which a worker agent reads how many are left
# Of findings in one prompt, however large the window: above it small models cost more.
CONTEXT_TOKENS = 100_000
# Up to here prompts are short: models on machines of one's own have 4,096 to 32,768.
SMALL_WINDOW_TOKENS = 40_000
# Of a model without a known window: most have it, and a smaller one refuses.
UNKNOWN_WINDOW_TOKENS = 128_000
# Tokens of a prompt, by a slow local server: until then its silence is work.
MODEL_READS_PER_SECOND = 5
# Of a prompt, as estimated, that a server reads at least: bytes tell tokens that well.
MODEL_CUT_SHARE = 0.5
# Tokens of a prompt from which on a server may have cut it: the smallest windows have 2,048.
MODEL_CUT_LEAST = 2500
MODEL_EXTRA_BYTES = 4 * KIB  # of SUPERVISOR_MODEL_EXTRA: some fields, not a prompt
# For what an endpoint says of itself; then a run assumes a large window.
ENDPOINT_PATIENCE = timedelta(seconds=60)
ENDPOINT_MODELS = 3  # that a Worker asks about: a supervisor's, its worker agents', one more
MODEL_CALL_TIMEOUT = timedelta(minutes=5)  # one attempt, beside the time for what it may write
LEAST_CALL_TIME = timedelta(seconds=1)  # a call begun at the deadline fails by its timeout
# Nothing for this long, or pings outside a block: the stream is dead.
MODEL_IDLE_TIMEOUT = timedelta(seconds=90)
MODEL_NAME_BYTES = 200  # ids, model names and stop reasons of a reply
KNOWN_MODELS = 256  # models of which a process remembers something: more than a fleet uses
# Of one text, when its figures are looked up: a chapter of a book, at most 2 s of CPU.
GROUNDED_CHARS = 200_000
CHARS_PER_TOKEN = 3.5  # English text; only for estimates before the provider has counted
MODEL_RETRY_INITIAL = timedelta(seconds=1)  # a 429 or an outage may name a longer wait
MODEL_RETRY_MAX = timedelta(seconds=60)  # reached with the seventh retry
MODEL_RETRY_FACTOR = 2.0  # Temporal's default
RETRY_AFTER_MAX = timedelta(minutes=15)  # a longer retry-after is cut to this
# One of more is a slip, such as a time in place of seconds, and ignored.
RETRY_AFTER_BELIEVED = timedelta(days=1)
RETRY_JITTER = 0.2  # share added at random, so that many runs do not return in step

# --- The gate before the provider -----------------------------------------------------------------
BREAKER_FAILURES = 5  # outages in a row: fewer happen by chance, more are wasted
# And of the calls that the provider has just decided: of many calls five in a row fail by chance.
BREAKER_SHARE = 0.5
BREAKER_RECENT = timedelta(seconds=10)  # what was decided before says nothing about the present
# A call without content for so long takes no place that a 429 has left.
STALLED_AFTER = timedelta(seconds=15)
BREAKER_COOLDOWN = timedelta(seconds=10)  # one probe per 10 s, by contract
# A provider in an outage that names a longer wait is asked after this.
BREAKER_COOLDOWN_MAX = timedelta(minutes=5)
# Longer outages are the workflow's to wait for, by contract.
CIRCUIT_RETRY_BELOW = timedelta(seconds=30)
PACE_MAX = timedelta(seconds=60)  # a 429 holds the model's other calls back for at most this
# In line for room: of an attempt's twenty minutes and more, half is left.
GATE_PATIENCE = timedelta(minutes=10)

# --- Heartbeats and recovery ----------------------------------------------------------------------
# Carries cancellation to a call and the text's tail to `follow`, by contract.
HEARTBEAT_EVERY = timedelta(seconds=2)
# Far below the beat: what an attempt says of itself is sent at once.
HEARTBEAT_THROTTLE = timedelta(seconds=0.1)
# By then the server has a heartbeat, one that waited for its window, too.
HEARTBEAT_SENT = timedelta(seconds=0.2)
CALL_DEATHS = 3  # a call that ended its process three times is not tried again
# By contract; a killed Worker's calls are retried 1 s after this. A process that is paused for less
# pays nothing again.
HEARTBEAT_TIMEOUT = timedelta(seconds=10)
HEARTBEAT_TAIL_CHARS = 200
# A killed worker's workflows move to a live one after this (default 10 s).
STICKY_TIMEOUT = timedelta(seconds=2)
# SIGTERM lets calls in flight finish: most model calls are shorter.
GRACEFUL_SHUTDOWN = timedelta(minutes=2)

# --- The store ------------------------------------------------------------------------------------
# The first activity of a run with files: 200 MB of tables take half a minute.
FILES_TIMEOUT = timedelta(minutes=10)
# Waits for what the endpoint takes, reads a team file, writes small objects.
SETUP_TIMEOUT = timedelta(seconds=90)
PUBLISH_TIMEOUT = timedelta(seconds=60)  # writes the result and the trace, some MiB at most
# A remote store's id is read again after this: a request of milliseconds.
STORE_ID_AGE = timedelta(seconds=5)
# Attempts that must fail before a run shows that it waits for its store: one may be a moment's.
STORE_REPORTED = 2
# Calls that one look at what the store holds up asks the server about, one request each.
STORE_WATCHED = 50
STORE_WATCH_MAX = timedelta(seconds=5)  # the longest that a run shows such a wait after its end
# Of a cancelled run with a store that is away: then it closes without it.
CLOSING_PATIENCE = timedelta(seconds=20)
STORE_RETRY_INITIAL = timedelta(milliseconds=200)  # a store answers in milliseconds
STORE_RETRY_MAX = timedelta(seconds=15)  # the longest that a store is back unnoticed
ARTIFACT_BYTES = 16 * KIB * KIB  # one object
# Objects read at once by one load: a cold process needs no more connections to be fast.
STORE_READS = 32
STORE_REQUEST_TIMEOUT = timedelta(seconds=20)  # one request of a 16 MiB object on a slow line
STORE_REQUEST_RETRIES = 3  # inside one operation; Temporal's retries come on top

# --- Notices --------------------------------------------------------------------------------------
# One try: a chat answers in a second, and the end of a run waits for its notice.
NOTICE_TIME = timedelta(seconds=5)
NOTICE_ATTEMPTS = 3  # with pauses of 1 and 2 s: some 18 s in all

# --- Reaching Temporal ----------------------------------------------------------------------------
CONNECT_TIMEOUT = timedelta(seconds=5)  # one try; a local server answers in milliseconds
# A collector nearby answers in 0.1 s; a run's end is not held up for traces.
TRACES_WAIT = timedelta(seconds=2)
WORKER_CONNECT_WAIT = timedelta(seconds=60)  # a Worker may be started together with its server

# --- Worker processes -----------------------------------------------------------------------------
ACTIVITY_SLOTS = 1000  # more than live children, so that waiting for a tool never queues
# Model calls in flight: as many as one run may have agents; more streams than a process reads well.
MODEL_SLOTS = 200
# Made and not let go of, before Python looks for garbage: its own 700 had two runs of 1,000
# subtasks spend a sixth of their Worker's time on looking through the workflows in its cache, which
# are nearly all alive.
NEW_OBJECTS = 10_000
# A replay goes to and fro between the event loop and a thread some hundred times, and each time it
# waits for the interpreter as often as other threads compute: at Python's 5 ms a large replay would
# take longer than its task may.
SWITCH_INTERVAL = timedelta(milliseconds=0.5)
CACHED_WORKFLOWS = 3000  # more than live workflows: replaying on each task costs 1.9 times
# By then its heartbeats are overdue and others do its work: it only harms.
LOOP_SILENCE = timedelta(seconds=15)
