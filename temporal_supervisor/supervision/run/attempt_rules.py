"""The rules after a worker agent has ended: whether to continue, retry or give up."""

from datetime import timedelta
from enum import Enum, auto

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ACCOUNT, FATAL, RESUMABLE, STORE, ErrorKind

DECLINED = {ErrorKind.REFUSED, ErrorKind.CANNOT_DO}
"""Failures by the subtask itself: its description would fail again, whatever its role is worth."""

OF_THE_REQUEST = {ErrorKind.PROVIDER_REJECTED, ErrorKind.ARTIFACT_TOO_LARGE}
"""Failures by a role's request: it would be made again, and another role makes another one."""

_OTHERS_DOING = {ErrorKind.BUDGET_EXHAUSTED, ErrorKind.CANCELLED}


class AfterAgent(Enum):
    """The next step of an attempt whose worker agent has ended."""

    END = auto()  # the attempt has ended, too
    # With the run if that is paused, with another grant if its own is used up, or after going
    # first.
    RESUME = auto()
    WAIT_PROVIDER = auto()  # the provider's breaker is open: wait, then resume it
    WAIT_RESUME = auto()  # a person must act at the provider: wait for `resume`
    WAIT_PERSON = auto()  # a person must reply or decide: wait, then resume it


def after_agent(
    problem: ErrorKind | None,
    *,
    can_resume: bool,
    had_last_grant: bool,
    has_finding: bool,
) -> AfterAgent:
    """Returns the next step of an attempt; if it has a finding, it waits rather than fails."""
    if not can_resume or (problem is not None and problem not in RESUMABLE):
        return AfterAgent.END
    if problem in ACCOUNT:
        return AfterAgent.WAIT_RESUME if has_finding else AfterAgent.END
    if problem is ErrorKind.NEEDS_PERSON:
        return AfterAgent.WAIT_PERSON
    if problem is ErrorKind.CIRCUIT_OPEN:
        return AfterAgent.WAIT_PROVIDER
    if had_last_grant and problem is ErrorKind.BUDGET_EXHAUSTED:
        return AfterAgent.END
    return AfterAgent.RESUME


def is_tried_again(problem: ErrorKind, failures: int, declined: int) -> bool:
    """True if the same role tries again after this many failed attempts.

    `problem` is the last failure. `declined` attempts were refusals or `CannotDo`: their subtask
    gets a better description only once.
    """
    may_do_better = problem not in DECLINED or declined <= limits.DECLINED_REFINES
    if problem in OF_THE_REQUEST:
        return False
    return failures < limits.SUBTASK_ATTEMPTS and may_do_better


def is_retried(problem: ErrorKind) -> bool:
    """True if another attempt may succeed, by the same role or by its fallback.

    It may not if the failure was caused by the account, the store, the budget or a person.
    """
    return problem in OF_THE_REQUEST or problem not in FATAL | STORE | _OTHERS_DOING


def back_off(failures: int) -> timedelta:
    """Returns the time before the next attempt, which doubles with each failure."""
    return limits.ATTEMPT_PAUSE * float(2 ** (failures - 1))


def child_id(workflow_id: str, subtask_id: str, attempt: int, candidate: int = 0) -> str:
    """Returns the workflow id of a subtask attempt, or of one candidate of it.

    `run-1/t2/1` is the first attempt of t2, and `run-1/t2/1.2` its second candidate.
    """
    return f"{workflow_id}/{subtask_id}/{attempt}" + (f".{candidate}" if candidate else "")


def is_child_id(workflow_id: str, parent_id: str | None) -> bool:
    """True if `workflow_id` was made by `child_id` for a child of `parent_id`.

    A run has no parent, or a parent that is a workflow of another kind.
    """
    above, _, attempt = workflow_id.rpartition("/")
    return above.rpartition("/")[0] == parent_id and attempt.replace(".", "").isdecimal()


def supervisor_of(root_id: str, wait_id: str) -> str:
    """Returns the workflow id of the supervisor whose run has the wait with that id.

    It is the root's for a text that is no wait id.
    """
    place = wait_id.partition(":")[0].split("/")
    above = place[:-1] if place[-1].startswith("plan.") else place[:-2]
    return root_id if len(above) % 2 else "/".join([root_id, *above])


def subtask_path(workflow_id: str, run_id: str) -> str:
    """Returns the path of a worker agent's subtask from the root, such as t3/t1.

    It is "" for the run itself.
    """
    return "/".join(workflow_id.removeprefix(run_id).split("/")[1::2])
