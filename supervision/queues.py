"""The task queues, in one place: names that operators and recorded runs rely on."""

WORKFLOW_QUEUE = "supervisor"
"""Workflows and tools: eager activities work only on the workflow's own queue."""
MODEL_QUEUE = "supervisor-model"
"""Model calls: a queue of their own, so that its rate can be limited without slowing anything else."""
TOOLS_QUEUE = "supervisor-tools"
"""Tools, where processes are split by role."""


def pool_queue(pool: str) -> str:
    """The queue of a pool's Workers, for the model calls and tools of its roles."""
    return f"supervisor.{pool}"
