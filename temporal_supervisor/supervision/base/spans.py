"""Names of spans, metrics and their attributes, and the ids of a run's spans.

Names that begin with `gen_ai` follow the OpenTelemetry conventions for generative AI, version 1.41.
A run has one trace. Its ids are hashes of the run's ids, so that each process can compute the
parent of its spans, even of a parent span that is only written when the run ends.
"""

import hashlib

SCOPE = "temporal-supervisor"

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION = "gen_ai.conversation.id"
WORKFLOW = "gen_ai.workflow.name"
AGENT = "gen_ai.agent.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
TOOL = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
TOKEN_TYPE = "gen_ai.token.type"
ERROR = "error.type"
SYSTEM_TEXT = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

# The workflow that asked, below its run: `t1/1` is the first attempt of t1.
PLACE = "supervisor.place"
CALL = "supervisor.call"  # the name of a model call in its workflow, such as turn.2
ATTEMPT = "supervisor.attempt"  # of the activity: Temporal's
ATTEMPTS = "supervisor.subtask_attempts"
JOURNAL = "supervisor.from_journal"  # true for an answer that an earlier attempt had paid
STATUS = "supervisor.status"
USD = "supervisor.usd"
KIND = "supervisor.kind"

CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
INVOKE_AGENT = "invoke_agent"
INVOKE_WORKFLOW = "invoke_workflow"
START = "start_run"

TOKEN_USAGE = "gen_ai.client.token.usage"
OPERATION_DURATION = "gen_ai.client.operation.duration"
RUN_DURATION = "supervisor.run.duration"
RETRIES = "supervisor.retries"
BREAKER_OPEN = "supervisor.breaker.open"
WAITING = "supervisor.waiting"

TRACE_ID_KEY, SPAN_ID_KEY = "supervisor.trace_id", "supervisor.span_id"
"""What the OpenTelemetry context holds while a span of a given id is made."""


def trace_id(run_id: str, first_run_id: str) -> int:
    """Returns the id of a run's trace, which resets keep: `first_run_id` is the root's."""
    return int.from_bytes(_digest(run_id, first_run_id)[:16])


def span_id(first_run_id: str, place: str) -> int:
    """Returns the id of the span of a run or, if `place` is a subtask, of that subtask."""
    return int.from_bytes(_digest(first_run_id, place)[:8])


def place_of(workflow_id: str, run_id: str) -> str:
    """Returns the parent span of a workflow's work: its run, or the subtask that it attempts."""
    return run_id if workflow_id == run_id else workflow_id.rpartition("/")[0]


def _digest(*names: str) -> bytes:
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).digest()
