"""The rules that a plan must pass before any child starts."""

import re
from collections import Counter
from collections.abc import Iterable, Set
from graphlib import CycleError, TopologicalSorter

from supervision.base import limits
from supervision.base.text import quoted, size
from supervision.contract.plan import Plan, Subtask
from supervision.planning.expansion import NO_DATA, Data, for_each_problems

_MIN_DESCRIPTION_BYTES = 12  # shorter ones can't say what to do; bytes, as Chinese says more with a character
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def plan_problems(plan: Plan, max_subtasks: int, attachments: Iterable[str] = (), data: Data = NO_DATA) -> list[str]:
    """Returns the problems of `plan`, a sentence each; empty if it can run. Unknown roles go to the generalist."""
    try:
        plan.model_dump_json()
    except ValueError:  # "\ud800" in JSON that a model wrote becomes text that no encoding takes
        return ["the plan holds half of a surrogate pair: write whole characters"]
    if plan.direct_answer is not None and plan.direct_answer.strip():
        if plan.subtasks:
            return ["give either a direct_answer or subtasks, not both"]
        return []
    if not plan.subtasks:
        return ["the plan has no subtasks and no direct_answer"]
    problems = []
    if len(plan.subtasks) > max_subtasks:
        problems.append(f"the plan has {len(plan.subtasks)} subtasks, at most {max_subtasks} are allowed")
    ids = Counter(subtask.id for subtask in plan.subtasks)
    problems += [
        f"subtask id {quoted(subtask_id)} must be 1 to 64 letters, digits, hyphens or underscores"
        for subtask_id in ids
        if not _ID.fullmatch(subtask_id)
    ]
    problems += [f"subtask id {quoted(subtask_id)} is used twice" for subtask_id, count in ids.items() if count > 1]
    names = set(attachments)
    for subtask in plan.subtasks:
        problems += _subtask_problems(subtask, ids.keys(), names)
        problems += for_each_problems(subtask, data)
    cycle = find_cycle(plan.subtasks)
    if cycle:
        problems.append("these subtasks depend on each other in a circle: " + " -> ".join(cycle))
    return problems


def _subtask_problems(subtask: Subtask, known: Set[str], attachments: Set[str]) -> list[str]:
    name = f"subtask {quoted(subtask.id)}"
    problems = description_problems(subtask, name)
    for dependency in subtask.depends_on:
        if dependency == subtask.id:
            problems.append(f"{name} depends on itself")
        elif dependency not in known:
            problems.append(f"{name} depends on {quoted(dependency)}, which is not in the plan")
    for attachment in subtask.attachments:
        if attachment not in attachments:
            problems.append(f"{name} lists the attachment {quoted(attachment)}, which does not exist")
    if not 1 <= subtask.candidates <= limits.CANDIDATES:
        problems.append(f"{name} asks for {subtask.candidates} candidates, 1 to {limits.CANDIDATES} are allowed")
    longest = limits.MAX_DEADLINE.total_seconds()
    if subtask.timeout_seconds is not None and not 0 < subtask.timeout_seconds <= longest:
        problems.append(f"{name} has a timeout_seconds that is not above 0 and at most {longest:.0f}")
    return problems


def description_problems(subtask: Subtask, name: str = "the subtask") -> list[str]:
    """Returns the problem of a subtask's description, at most one; `name` begins it."""
    words = subtask.description.split()
    # Chinese, Japanese or Thai write no spaces
    if size(subtask.description.strip()) < _MIN_DESCRIPTION_BYTES or (len(words) < 2 and words[0].isascii()):
        return [f"{name} has no concrete description: say what to find out or produce"]
    if len(subtask.description) > limits.DESCRIPTION_CHARS:
        return [f"{name} has a description of more than {limits.DESCRIPTION_CHARS} characters"]
    return []


def find_cycle(subtasks: list[Subtask]) -> list[str]:
    """Returns the ids of one dependency circle, first and last the same; empty if there is none.

    Self-dependencies and unknown ids are ignored: other rules find them.
    """
    known = {subtask.id for subtask in subtasks}
    graph = {s.id: [d for d in sorted(set(s.depends_on)) if d in known and d != s.id] for s in subtasks}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []
