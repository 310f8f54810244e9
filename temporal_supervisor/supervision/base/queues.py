"""The task queues, and the fairness keys of their tasks.

Operators and recorded runs rely on these names.
"""

import hashlib

# Workflows and tools: eager activities work only on the workflow's own queue.
WORKFLOW_QUEUE = "supervisor"
# Model calls, so that their rate can be limited without slowing anything else.
MODEL_QUEUE = "supervisor-model"
TOOLS_QUEUE = "supervisor-tools"  # tools, where processes are split by role
# Tools that reach other systems, where processes are split by role.
OUTWARD_QUEUE = "supervisor-outward"

DEPLOYMENT = "supervisor"  # the Worker Deployment of Workers with a build id


def pool_queue(pool: str) -> str:
    """Returns the task queue of a pool, for the tools and model calls of its roles."""
    return f"supervisor.{pool}"


_STORE_MARK = " store "
_STORE_DIGITS = 12  # of a store's random id, enough to tell two apart
_TEAMS_MARK = " teams "


def worker_identity(process: str, store_id: str | None, teams: str = "") -> str:
    """Returns the identity of a Worker: its process, its teams' mark and its store's id."""
    told = f"{process}{_TEAMS_MARK}{teams}" if teams else process
    return f"{told}{_STORE_MARK}{store_id[:_STORE_DIGITS]}" if store_id else told


def process_of(identity: str) -> str:
    """Returns the process in a Worker's identity, as `pid@host`."""
    return identity.partition(_STORE_MARK)[0].partition(_TEAMS_MARK)[0]


def teams_of(identity: str) -> str:
    """Returns the mark of a Worker's team folders; empty if its identity has none."""
    return identity.partition(_STORE_MARK)[0].partition(_TEAMS_MARK)[2]


def other_store(identity: str, store_id: str | None) -> str:
    """Returns the first characters of a Worker's store id if it is not `store_id`, else ""."""
    told = identity.partition(_STORE_MARK)[2]
    return "" if not told or (store_id or "").startswith(told) else told


def fairness_key(run_id: str) -> str:
    """Returns the fairness key of a run's model calls; behind a rate limit, keys take turns.

    `run_id` is the root's, so that nested supervisors do not enlarge a run's share. The key is a
    hash: the server rejects keys above 64 bytes, and the workflow task with them.
    """
    return hashlib.sha256(run_id.encode()).hexdigest()
