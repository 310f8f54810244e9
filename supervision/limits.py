"""Every timeout, limit and retry number of workflows and activities, each with its reason.

Pure numbers, read here by the deterministic side and the activities alike. Times are `timedelta`, sizes are bytes,
unless a comment says otherwise. What one module alone reads stands there.
"""

from datetime import timedelta

KIB = 1024

# --- What a request may ask for -------------------------------------------------------------------
GOAL_BYTES = 48 * KIB  # a goal is a question, not a document: longer text is an attachment
ATTACHMENT_TEXT_BYTES = 16 * KIB  # inline text travels in the start event; longer ones go by `starter.py put`
ATTACHMENTS = 32  # each is named in a prompt
ANSWER_SCHEMA_BYTES = 16 * KIB  # it is part of every prompt that asks for the answer
MAX_BUDGET_TOKENS = 10**15  # beyond, numbers no longer count exactly
MAX_BUDGET_USD = 10.0**9
REQUEST_BYTES = 200 * KIB  # the start event must stay below PAYLOAD_HARD_BYTES
RAW_INPUT_BYTES = 512 * KIB  # read before anything is checked: a whole request with each letter as \uXXXX fits
REQUEST_DEPTH = 100  # JSON in JSON: parsers give up at 200, and a request is nested in other objects
MAX_SUBTASKS = 1000  # ~6 events a subtask keeps the root far below the server's 51,200
MAX_PARALLEL = 200  # children open at once; the server allows 2,000 pending
MAX_TURNS = 200  # a worker agent that needs more is not converging
MODEL_CHAIN = 5  # models that stand in for each other: more are no plan for an outage
MAX_DEPTH = 3  # levels of nested supervisors
MIN_DEADLINE = timedelta(seconds=5)  # below it not even a plan can be made
MAX_DEADLINE = timedelta(days=30)
MIN_SUBTASK_TIMEOUT = timedelta(seconds=1)  # Temporal's timers are no finer
GRANT_LIFETIME = timedelta(days=90)  # a deadline stands still while people are awaited, and a reset sets it anew
KNOWN_FORMS = 256  # forms of replies and of roles' tools that a process keeps: making one takes 1 to 10 ms
KNOWN_GRANTS = 5000  # kept in a process: more than it has open supervisors

# --- What goes into history -----------------------------------------------------------------------
PAYLOAD_AIM_BYTES = 64 * KIB  # what the project's own payloads stay below
PAYLOAD_HARD_BYTES = 256 * KIB  # the server warns above; 2 MiB ends a run on some servers
REPLY_PREVIEW_BYTES = 2 * KIB  # enough for the Web UI to tell the story
TOOL_PREVIEW_BYTES = 512
LABEL_BYTES = 64  # a child's label in the timeline: longer ones run out of the picture
ARGUMENTS_PREVIEW_BYTES = 160  # a tool call's label in the timeline is one line
SUMMARY_BYTES = 2 * KIB  # a finding's summary, by contract
ANSWER_JSON_BYTES = 64 * KIB  # it travels whole: half of it would be no JSON
ANSWER_INLINE_BYTES = 40 * KIB  # the rest of RunResult needs the difference to PAYLOAD_AIM_BYTES
ERROR_BYTES = KIB  # error messages in history and results
CLAIM_BYTES = 300  # a citation's claim: a few words
CONFLICT_BYTES = 600  # the description of a conflict: one or two sentences
RESOLUTION_BYTES = 600  # a judge's word on a conflict: one or two sentences
LIMITATION_BYTES = 300  # one limitation of a finding: one sentence
LIMITATIONS = 10  # of one finding
CITATIONS = 100  # of one answer
FILE_NAME_BYTES = 200  # of an artifact: file systems take 255
SOURCE_BYTES = 200  # one source of a finding: a title or an address
AGENT_SOURCES = 100  # of one finding: more are no list that anybody reads
AGENT_SOURCES_BYTES = 16 * KIB  # and of all of them
AGENT_ARTIFACTS = 50  # of one finding
FINDING_SOURCES = 20  # that one tool call adds to a finding
HISTORY_EVENTS = 40_000  # of a supervisor: the server terminates a run at 51,200, and the end takes some thousand
HISTORY_BYTES = 40 * KIB * KIB  # and at 50 MiB
TRACE_EVENTS = 1000  # root events kept for the query, by contract
STARTED_BYTES = KIB * KIB  # inputs of children whose start is not confirmed: a message to the server holds 4 MiB
STARTS_AT_ONCE = 50  # and their number: what one workflow task does must take less than a second
STORIES = 100  # conversations told in a stored trace: reading them must not hold up the end of a run
STORIES_AT_ONCE = 8  # a local store answers at once and lets nothing else run meanwhile
TRACE_PAGE_BYTES = 160 * KIB  # of one reply to `trace`: the rest comes with its cursor
STATUS_PAGE = 100  # subtasks on one page of `status`, by contract

# --- What messages show -----------------------------------------------------------------------------
NAME_SHOWN_BYTES = 60  # an id or a name in a message: what a model sends in its place may be a text
COMPLAINT_BYTES = 300  # the message of a library (JSON schema, SQL engine, exception): its first sentence
LIST_SHOWN_BYTES = 600  # names that exist, listed for one who used another
FIELD_SHOWN_BYTES = 120  # the path of a field in a complaint
FIELD_COMPLAINT_BYTES = 400  # a complaint about one field
FIELD_COMPLAINTS = 8  # fields complained about at once
GAP_REASON_SHOWN_BYTES = 300  # why a finding is missing, in a prompt
GAP_DESCRIPTION_BYTES = 300  # what a missing finding was for: the first sentence of its subtask
EVIDENCE_CALLS = 60  # the last ones of a worker agent: what it concluded from
EVIDENCE_BYTES = 300  # of arguments and output of one tool call in a finding's record
EVIDENCE_SHOWN_BYTES = 240  # one tool call under a finding, for a reviewer: arguments and the first rows
UNSUPPORTED_SHOWN = 20  # claims that go back to their author at once, and that a finding or a result lists
UNSUPPORTED_LISTED = 100  # of a whole run, in its result
UNSUPPORTED_BYTES = 200  # one of them: a long quotation is known by its beginning

# --- Tools ----------------------------------------------------------------------------------------
TOOL_OUTPUT_CHARS = 20_000  # what one tool result may add to a conversation; the rest is read by `read_output`
TOOL_KEPT_CHARS = 200_000  # of one tool result in the store: ten pages, as many as figures are looked up in
TOOL_CALLS_PER_TURN = 16  # one turn asking for more is answered with errors for the surplus
TOOL_TIMEOUT = timedelta(seconds=60)  # one attempt of one tool call
TOOL_MARGIN = timedelta(seconds=10)  # the tool's own timeout ends it first and tells the model
ODD_TOOL_ATTEMPTS = 3  # errors of a call's surroundings that nobody anticipates
TOOL_RETRY_INITIAL = timedelta(seconds=1)

TEAM_FILE_BYTES = KIB * KIB  # a team file is written by hand
TEAM_READ_TIMEOUT = timedelta(seconds=20)  # team.toml, the import of tools.py, the index of documents; in a thread
TEAM_THREAD_PATIENCE = timedelta(seconds=1)  # a loop that is silent for so long after a call's timeout is blocked
TEAM_DATA_BYTES = 64 * KIB * KIB  # one data file or document of a team: loaded into each Worker process
TEAM_DATA_FILES = 1000  # a wider glob is a mistake
TOOL_SOURCES = 50  # sources of one tool result: they travel in history
CALCULATOR_CHARS = 500  # longer is a program, not an expression
CALCULATOR_MAGNITUDE = 1e300  # near the end of floats: whatever is above is a bomb
SQL_CHARS = 5000  # more is a program, not a question
SQL_JOINS = 20  # with conditions they parse in milliseconds; nobody asks for more of a handful of tables
SQL_TIMEOUT = timedelta(seconds=3)  # of bundled data a query takes milliseconds
SQL_PROCESSES = 2  # per team: a query that runs into its timeout does not block the next run's
SQL_MEMORY_BYTES = 256 * KIB * KIB  # what the engine may use by its own accounting
SQL_ADDRESS_BYTES = 1536 * KIB * KIB  # what its process may map: strings escape the engine's accounting
SQL_ROWS = 200  # more belongs into an aggregate
SQL_CELL_CHARS = 300
TABLE_VALUES = 200  # distinct values of a text column that `list_tables` shows
CHILD_REPLY_BYTES = 4 * KIB * KIB  # one answer of a child process; a tool's output is a hundredth of it
CHILD_START_TIMEOUT = timedelta(seconds=30)  # of a child process: 0.3 s on a quiet machine, and the tables of a team
BOUNDED_TIME = timedelta(seconds=3)  # one function on foreign text; honest text takes milliseconds
BOUNDED_ADDRESS_BYTES = 512 * KIB * KIB  # what its process may map
BOUNDED_PROCESSES = 2  # per kind of text: a slow one does not block the next run's
SEARCH_HITS = 10
SEARCH_TERMS = 32  # words of a query that count
PASSAGE_CHARS = 1500  # one search hit
QUESTION_BYTES = 300  # the question of an example query, on one line
HEADING_BYTES = 300  # a title or heading of a document
REPORT_SECTIONS = 50  # of a formatted document

# --- Supervision ----------------------------------------------------------------------------------
PLAN_REPLY_BYTES = 224 * KIB  # a plan in history, packed: 1,000 subtasks of 200 bytes, or 50,000 dependencies
PLAN_TRIES = 3  # the first plan and two repairs, by contract
NEW_ROLES = 5  # that one plan may define: more is a team to be written down
TEAM_ROLES = 50  # each is a line of the planner's prompt
ROLE_DESCRIPTION_CHARS = 1000  # the planner chooses by it: a paragraph
ROLE_CAPABILITIES = 50  # each a word or two; a run keeps them for as long as it is open
CAPABILITY_CHARS = 100
ROLE_PROMPT_CHARS = 40_000  # ~11k tokens that every turn pays for
ROLE_LABEL_CHARS = 80  # a line above an answer
PLANNING_INSTRUCTIONS_CHARS = 4000  # a team's own words to the planner: a page
PLANNING_EXAMPLES = 5  # of a team's plans; more cost every run and teach little
EXAMPLE_CHARS = 500  # of an example's goal or of one of its subtasks: a sentence or two
TEAM_ROUTES = 50
ROUTE_PATTERN_CHARS = 200  # some words of a goal
ON_FAILURE_CHARS = 600  # it is part of an error message
TRIED_SHOWN = 10  # subtasks that a failed run lists as tried
LEAST_TURN_TOKENS = 256  # of a role's own limit: a short finding and the call that hands it in
CATALOGUE_CHARS = 6000  # of a team's data in the planner's prompt: ~1,700 tokens, paid once or twice a run
CATALOGUE_LINE_CHARS = 600  # one table with its columns
CATALOGUE_VALUES = 5  # of a text column: enough to see what kind of names there are
CATALOGUE_TIMEOUT = timedelta(seconds=8)  # loading the tables of a team takes about one
TOOL_SHOWN_BYTES = 160  # a tool's description in the planner's prompt: its first sentence
SMALL_ATTACHMENT_BYTES = 4 * KIB  # in the brief itself: a tool call costs more than its text
REASON_BYTES = 300  # why a plan or a role was chosen: one sentence in the trace
HINT_ROLES = 10  # among more, models choose the wrong one too often: a team of teams does better
HINT_TOOLS = 15  # of one role: with more, models mistake one for another
HINT_OVERLAP = 0.6  # share of common words above which two descriptions mean the same
CANDIDATES = 5  # attempts at one subtask of which the best is kept, by contract
FEEDBACK_BYTES = 1000  # of a reviewer on one finding: it should be specific
PLAN_LACKS = 5  # things that a reviewer misses in a plan
VERDICTS = 50  # of one review: feedback travels in history
CONFLICTS = 20  # of one review
SUBTASK_ATTEMPTS = 3  # by contract
DECLINED_REFINES = 1  # a subtask that was refused or called impossible is described better once, by contract
ATTEMPT_PAUSE = timedelta(seconds=1)  # after the first failed attempt; doubled by each further one, by contract
WARM_REVIEWS = 2  # rounds of review in which a finding is corrected in its own conversation; then a fresh eye helps
ATTEMPT_CALLS_SHOWN = 30  # the last tool calls of a failed attempt, to the one who rewrites its description
LAST_WORDS_BYTES = 2 * KIB  # of a failed attempt, to the same
DESCRIPTION_CHARS = 4000  # a subtask's description
MIN_DESCRIPTION_BYTES = 12  # shorter ones can't say what to do; bytes, as Chinese says more with a character
TURN_GROWTH_TOKENS = 500  # by how much a worker agent's next call is expected to be larger than its last one
NOTE_BYTES = 600  # one finding in the planner's prompt
NOTES_BYTES = 40 * KIB  # and of all of them
PROMPT_LIST_BYTES = 60 * KIB  # of one list in a prompt: the descriptions of all subtasks, the missing findings
PROMPT_LIST_SHARE = 0.25  # of the room for what can be cut, where that is less
NOTE_LEAST_BYTES = 60  # of a subtask's description and its note, however many there are: the first words
GAPS_SHOWN = 100  # missing findings named one by one in a prompt; the answer's own list has all
PUBLISH_BYTES = 200 * KIB  # a result or trace on its way into the store, as an activity's input
JUDGED_CONFLICTS = 5  # conflicts settled one by one; more than that are listed as found
PROVIDER_PAUSE = timedelta(seconds=30)  # first durable wait for a provider; grows by PROVIDER_PAUSE_FACTOR
PROVIDER_PAUSE_FACTOR = 1.5
PROVIDER_PAUSE_MAX = timedelta(minutes=10)
NESTED_DEADLINE_SHARE = 0.9  # of what is left: the parent must still write its answer
NESTED_STEPS = 20  # reports of a nested run on its progress: each costs two histories some five events
NESTED_WAITS = 50  # changed waits in one report; the others follow with the next
NESTED_RESULT_BYTES = 16 * KIB  # what a nested run returns goes into two histories: its whole result is in the store
NESTED_GAPS = 20  # missing subtasks of a nested run that the run above lists one by one
ROLE_BREAKER_FAILURES = 3  # failed attempts in a row, by contract
ROLE_BREAKER_COOLDOWN = timedelta(seconds=10)  # a role that fails at once may not burn a run's attempts in seconds
ROLE_REST_TOTAL = timedelta(minutes=1)  # that a run may stand still because its roles fail, by contract
ROLE_BREAKER_COOLDOWN_MAX = timedelta(minutes=5)  # doubled by each failed probe up to here
SYNTHESIS_RESERVE = timedelta(seconds=60)  # kept back from the deadline, at most this
SYNTHESIS_RESERVE_SHARE = 0.2  # and at most this share of the whole deadline
CHILD_CLOSE_WAIT = timedelta(seconds=20)  # a cancelled child answers in 0.1 s; a worker restart takes some seconds
CHILD_CLOSE_SHARE = 0.5  # of what is left of the deadline, if that is less: the other half is for the answer
CHILD_GIVE_UP_WAIT = timedelta(seconds=5)  # reading from the journal what children consumed that do not answer
SYNTHESIS_HOLDBACK_SHARE = 0.1  # of the budget: an answer costs about a tenth of a run of a dozen subtasks
SYNTHESIS_HOLDBACK_TOKENS = 20_000  # the findings of a dozen subtasks and an answer
LEAST_GRANT_TOKENS = 4000  # two turns with one small tool output: less brings no finding
USUAL_REPLY_TOKENS = 1500  # for estimates: most plans, turns and answers are shorter
PLAN_PROMPT_BYTES = 12 * KIB  # the planner's instructions, a team of some roles, its data and the schema
JUDGEMENT_PROMPT_BYTES = 6 * KIB  # the instructions of a reviewer, a judge or the synthesis, and the plan
COVER_TRIES = 20_000  # combinations of roles tried for one subtask: some 10 ms

# --- Model calls ----------------------------------------------------------------------------------
PLAN_MAX_TOKENS = 64_000  # here and below: a backstop, not a target; what is cut is paid and asked for again
REFINE_MAX_TOKENS = 32_000  # one description, and the thinking before it
REVIEW_MAX_TOKENS = 64_000
JUDGE_MAX_TOKENS = 32_000  # one choice with its reason, and the thinking before it
TURN_MAX_TOKENS = 64_000
SYNTHESIS_MAX_TOKENS = 64_000
UNKNOWN_OUTPUT_SHARE = 0.25  # of these for a model whose limit nobody knows: 16,000 fits into most windows
LEAST_OUTPUT_TOKENS = 1024  # beside a prompt: with less room there is no answer
MAX_TOKENS_CEILING = 128_000  # output limit of current models
CUT_RETRIES = 2  # how often a reply cut by max_tokens is asked for again with more room
EMPTY_RETRIES = 1  # how often an answer without words is asked for again: a second one is no accident
TURNS_NOTICE = 2  # a worker agent hears so many turns before its last that it will be the last
PAUSE_TURNS = 5  # `pause_turn` rounds of one call
CONTEXT_TOKENS = 100_000  # of findings in one prompt, however large the window: above it small models cost more
CONTEXT_SHARE = 0.5  # of the window, where that is less: the rest is for instructions, thinking and the reply
AGENT_CONTEXT_TOKENS = 17_000  # of findings in a worker agent's brief: every turn reads them again
AGENT_CONTEXT_SHARE = 0.4  # of the room that a prompt has for findings, where that is less: tool outputs come on top
UNKNOWN_WINDOW_TOKENS = 128_000  # of a model without a known window: most have it, and a smaller one refuses
CLEARED_OUTPUT_CHARS = 600  # of a tool output that has made room: enough to know whether to read it again
REDUCE_BYTES = 40_000  # of findings in one prompt when the plan asks for reduction: ~10k tokens, a dozen of them
FINDING_SUMMARY_CHARS = 1200  # what findings of less weight are cut to before others are: two paragraphs
MODEL_CALL_TIMEOUT = timedelta(minutes=5)  # one attempt, beside the time for what it may write
MODEL_WRITES_PER_SECOND = 30  # tokens of a slow model; a dead stream is ended long before
LEAST_CALL_TIME = timedelta(seconds=1)  # a call begun at the deadline fails by its timeout
MODEL_IDLE_TIMEOUT = timedelta(seconds=90)  # nothing for this long, or pings outside a block: the stream is dead
MODEL_ERROR_BODY_BYTES = 64 * KIB  # the provider's errors have some hundred; gateways' HTML pages are cut here
MODEL_EVENT_BYTES = KIB * KIB  # one event of a stream: a web search's results in one block are the largest
MODEL_EVENT_LINES = 100  # an event has two; the SDK joins lines in quadratic time
MODEL_REPLY_BYTES = 4 * KIB * KIB  # 128k tokens are half a MiB of text, thinking and signatures come on top
MODEL_TOOL_INPUT_BYTES = 512 * KIB  # of one call: the SDK parses arguments anew with each piece
MODEL_WIRE_BYTES = 64 * KIB * KIB  # a reply with its framing, which is up to thirty times the text of a small piece
MODEL_REPLY_DEPTH = 100  # JSON in JSON: parsers give up at 200, and stored replies are nested in other objects
MODEL_NAME_BYTES = 200  # ids, model names and stop reasons of a reply
MODEL_USAGE_TOKENS = 10**9  # of one call: a thousand times the largest window
SCHEMA_OPTIONAL = 24  # parameters of a schema that may be left out: the API compiles no more
SCHEMA_UNIONS = 16  # and those of several types
STRICT_TOOLS = 20  # of one request, by the API's documentation
KNOWN_MODELS = 256  # models of which a process remembers something: more than a fleet uses
MODEL_CONNECT_TIMEOUT = timedelta(seconds=5)
MODEL_LINGER = timedelta(seconds=1)  # a finished answer waits this long for its connection to become reusable
GROUNDED_CHARS = 200_000  # of one text, when its figures are looked up: a chapter of a book, at most 2 s of CPU
GROUNDING_SOURCES_CHARS = 800_000  # of all texts that they are looked up in: at most 8 s of CPU, off the event loop
CHARS_PER_TOKEN = 3.5  # English text; only for estimates before the provider has counted
MODEL_RETRY_INITIAL = timedelta(seconds=1)
MODEL_RETRY_MAX = timedelta(seconds=60)
MODEL_RETRY_FACTOR = 2.0
RETRY_AFTER_MAX = timedelta(minutes=15)  # a provider's wish is honoured up to here
RETRY_JITTER = 0.2  # share added at random, so that many runs do not return in step
ODD_REPLY_ATTEMPTS = 3  # answers nobody understands (HTML, no content): two more tries, then a typed failure

# --- The gate before the provider -----------------------------------------------------------------
BREAKER_FAILURES = 5  # outages in a row: fewer happen by chance, more are wasted
BREAKER_COOLDOWN = timedelta(seconds=10)  # one probe per 10 s, by contract
BREAKER_COOLDOWN_MAX = timedelta(minutes=5)  # a provider in an outage that names a longer wait is asked after this
BREAKER_WINDOW = 4  # unanswered calls while nothing proves that the provider serves: 5 failures + 3 in flight < 10
BREAKER_TRUST = timedelta(seconds=30)  # a provider that answered this recently gets any number of calls at once
CIRCUIT_RETRY_BELOW = timedelta(seconds=30)  # longer outages are the workflow's to wait for, by contract
PACE_MAX = timedelta(seconds=60)  # a 429 holds the model's other calls back for at most this
GATE_WAIT = timedelta(seconds=5)  # a known wait that long is spent in the process; a longer one is a later attempt
GATE_PATIENCE = timedelta(seconds=60)  # in line for room: of an attempt's five minutes and more, most is left after it
LED_PREFIX_TOKENS = 1500  # system and tools of a role: what shorter ones cost is not worth anybody's wait
PREFIX_WAIT = timedelta(seconds=3)  # for the first content of the call that leads; most models begin sooner
PREFIX_LIFE = timedelta(minutes=4)  # since a prefix was last used: providers keep it for five minutes
KNOWN_PREFIXES = 1000  # prefixes of which a process knows when they were used
FAIRNESS_KEY_BYTES = 64  # the server refuses longer ones, and the workflow task with them

# --- Heartbeats and recovery ----------------------------------------------------------------------
HEARTBEAT_EVERY = timedelta(seconds=1)  # carries cancellation to a call and the text's tail to `follow`; 4 may be late
HEARTBEAT_THROTTLE = timedelta(seconds=0.1)  # far below the beat: what an attempt says of itself is sent at once
HEARTBEAT_SENT = timedelta(seconds=0.2)  # by then the server has a heartbeat, one that waited for its window, too
CALL_DEATHS = 3  # a call that ended its process three times is not tried again
HEARTBEAT_TIMEOUT = timedelta(seconds=4)  # a killed worker's calls are retried 1 s after this: within 5 s in all
HEARTBEAT_TAIL_CHARS = 200
STICKY_TIMEOUT = timedelta(seconds=2)  # a killed worker's workflows move to a live one after this (default 10 s)
GRACEFUL_SHUTDOWN = timedelta(minutes=2)  # SIGTERM lets calls in flight finish: most model calls are shorter

# --- The store -------------------------------------------------------------------------------------
SETUP_TIMEOUT = timedelta(seconds=30)  # reads a team file, writes two small objects
PUBLISH_TIMEOUT = timedelta(seconds=60)
STORE_ATTEMPTS = 20  # a store that is away for minutes delays a run, it does not end it
MISSING_ATTEMPTS = 3  # a folder that machines share may show a new file a little later
STORE_RETRY_INITIAL = timedelta(milliseconds=200)
STORE_RETRY_MAX = timedelta(seconds=15)
ARTIFACT_BYTES = 16 * KIB * KIB  # one object
CACHED_PLANS = 32  # parsed plans kept in a process: more than runs that plan at the same time
CACHED_TEAMS = 256  # parsed teams kept in a process
ENTRY_CACHE_BYTES = 64 * KIB * KIB  # parsed conversation entries kept in a process
KEY_SEGMENT_BYTES = 200  # file names hold 255 bytes, and the store adds a suffix while it writes
STORE_READS = 32  # objects read at once by one load: a cold process needs no more connections to be fast
STORE_CONNECT_TIMEOUT = timedelta(seconds=5)
STORE_REQUEST_TIMEOUT = timedelta(seconds=20)  # one request of a 16 MiB object on a slow line
STORE_REQUEST_RETRIES = 3  # inside one operation; Temporal's retries come on top
STORE_RETRY_TIMEOUT = timedelta(seconds=15)  # all retries of one operation end before SETUP_TIMEOUT

# --- Reaching Temporal ----------------------------------------------------------------------------
CONNECT_TIMEOUT = timedelta(seconds=5)  # one try; a local server answers in milliseconds
CONNECT_RETRY = timedelta(seconds=1)
TRACES_WAIT = timedelta(seconds=2)  # a collector nearby answers in 0.1 s; nobody waits for traces at the end
WORKER_CONNECT_WAIT = timedelta(seconds=60)  # a Worker may be started together with its server

# --- Worker processes -----------------------------------------------------------------------------
ACTIVITY_SLOTS = 1000  # more than live children, so that waiting for a tool never queues
MODEL_SLOTS = 200  # model calls in flight: as many as one run may have agents; more streams than a process reads well
CACHED_TASK_SLOTS = 10  # polls that wait hold one each: with fewer a task waits for a poll
REPLAY_SLOTS = 3  # they share one interpreter: side by side, large replays would outlast their ten seconds
# Made and not let go of, before Python looks for garbage: its own 700 had two runs of 1,000 subtasks spend a sixth of
# their Worker's time on looking through the workflows in its cache, which are nearly all alive.
NEW_OBJECTS = 10_000
# A replay goes to and fro between the event loop and a thread some hundred times, and each time it waits for the
# interpreter as often as other threads compute: at Python's 5 ms a large replay would take longer than its task may.
SWITCH_INTERVAL = timedelta(milliseconds=0.5)
HEALTH_BEAT = timedelta(seconds=5)  # how often a Worker shows that its event loop runs
HEALTH_STALE = timedelta(seconds=60)  # a busy loop is late by seconds, never by a minute
CACHED_WORKFLOWS = 3000  # more than live workflows: replaying on each task costs 1.9 times
LOOP_SILENCE = timedelta(seconds=15)  # by then its heartbeats are overdue and others do its work: it only harms
NATIVE_CPU = timedelta(seconds=10)  # of the process in a tick: only code that holds the interpreter takes so much
WATCHDOG_TICK = timedelta(seconds=1)
SHUTDOWN_MARGIN = timedelta(seconds=15)  # after GRACEFUL_SHUTDOWN what is left is cancelled; then the process ends
