"""Tags, headings and phrases that mark the parts of prompts and tool outputs.

The code that writes prompts and the code that reads them share these marks.
"""

GOAL = "goal"
SUBTASK = "subtask"
ITEM = "item"  # what a template's subtask is for
PLANNED = "planned"  # a subtask of the plan so far
PLAN_REASONING = "plan_reasoning"  # why the planner divided the work so, or chose a role for it
OUTCOME = "outcome"  # of one that has ended
FINDING = "finding"
MISSING = "missing"
CANDIDATE = "candidate"
MISSING_POINTS = "missing_points"
ATTACHMENTS = "attachments"
ATTACHMENT = "attachment"
DRAFT = "draft"
AT_WORK = "at_work"  # worker agents that are busy while a plan is made
ERROR = "error"
ATTEMPT = "attempt"  # what a failed attempt did
CHECKED = "checked"  # where code found the claims of a finding
STEER = "steer"  # a person's word to those at work
DATA = "data"  # the tables and documents that tools reach, and what is said of them
EARLIER_OUTPUTS = "earlier_outputs"  # of tools, in a conversation that begins anew
EARLIER = "earlier_runs"  # what the runs found that this one builds on
DONE = "already_done"  # calls with effects that were made before
EXAMPLE = "example"  # a query that a tool's output shows

TAGS = (
    *(
        GOAL,
        DATA,
        SUBTASK,
        ITEM,
        FINDING,
        MISSING,
        CANDIDATE,
        ATTACHMENTS,
        DRAFT,
        ERROR,
        ATTEMPT,
        EXAMPLE,
        STEER,
    ),
    *(
        PLANNED,
        OUTCOME,
        CHECKED,
        ATTACHMENT,
        MISSING_POINTS,
        "subtasks",
        "findings",
        "candidates",
        "feedback",
    ),
    *(
        "previous_finding",
        "final_instruction",
        "conflict",
        "contradiction",
        "open_point",
        "former_verdicts",
    ),
    *("plan_so_far", PLAN_REASONING, EARLIER, EARLIER_OUTPUTS, DONE, AT_WORK),
)

DIGEST = "digest"  # the role of a finding that condenses others
ADDED_UP_TOTAL = "looks like the sum of the rows above"  # in a note on a row of a table
TIED = "LIMIT leaves out a row that ties with the last one"
QUERY_WANTED = "in one sql block"  # how a small model is asked for another query
FINISH_TOOL = "finish"  # takes a worker agent's finding
READ_OUTPUT_TOOL = "read_output"  # shows what earlier tool calls returned
ASK_TOOL = "ask_person"  # its output is a person's reply
OWN_TOOLS = (FINISH_TOOL, READ_OUTPUT_TOOL, ASK_TOOL)  # the project's, beside those of a role

UNSUPPORTED = "No tool output has: "  # before a claim of a finding, in the prompt of its readers
DOUBT = "Doubt of a program: "  # likewise, before a doubt about its query

NO_HITS = "No document contains any of these keywords."  # how a search says that it found nothing
NO_TABLES = "There are no tables."

ROLES = "Roles:"  # before the list of roles
MOST_SUBTASKS = "At most {most} subtasks in all"
LAST_TURN_MARK = "This is your last turn"
# The error of a tool call.
DEADLY = "this call ended its process three times and is not tried again"
JSON_AS_TEXT = "JSON text that fits this JSON schema: "  # before a schema that can't be sent as one
