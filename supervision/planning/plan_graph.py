"""The graph of a plan: every rule that a plan must pass before any child starts."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from supervision import limits
from supervision.contract.plan import Plan, Subtask
from supervision.planning.concreteness import is_concrete
from supervision.text import quoted, size


def plan_problems(plan: Plan, max_subtasks: int, attachments: Iterable[str] = ()) -> list[str]:
    """Returns the problems of `plan`, each in one sentence that its author can act on; empty if it can run.

    A role that the team does not have is no problem: its subtask goes to the generalist.
    """
    if not _writable(plan):
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
    problems += _id_problems(plan.subtasks)
    known = {subtask.id for subtask in plan.subtasks}
    names = set(attachments)
    for subtask in plan.subtasks:
        problems += _subtask_problems(subtask, known, names)
    cycle = find_cycle(plan.subtasks)
    if cycle:
        problems.append("these subtasks depend on each other in a circle: " + " -> ".join(cycle))
    return problems


def _writable(plan: Plan) -> bool:
    try:
        plan.model_dump_json()
    except ValueError:  # "\ud800" in JSON that a model wrote becomes text that no encoding takes
        return False
    return True


def _id_problems(subtasks: list[Subtask]) -> list[str]:
    problems, seen = [], set()
    for subtask in subtasks:
        if not _good_id(subtask.id):
            problems.append(f"subtask id {quoted(subtask.id)} must be 1 to 64 letters, digits, hyphens or underscores")
        elif subtask.id in seen:
            problems.append(f"subtask id '{subtask.id}' is used twice")
        seen.add(subtask.id)
    return problems


def _good_id(text: str) -> bool:
    return 0 < len(text) <= 64 and text.isascii() and all(c.isalnum() or c in "-_" for c in text)


def _subtask_problems(subtask: Subtask, known: set[str], attachments: set[str]) -> list[str]:
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
    """Returns why nobody could work by a subtask's description, at most one reason; `name` begins it."""
    words = subtask.description.split()
    # Chinese, Japanese or Thai write no spaces
    if size(subtask.description.strip()) < limits.MIN_DESCRIPTION_BYTES or (len(words) < 2 and words[0].isascii()):
        return [f"{name} has no concrete description: say what to find out or produce"]
    if len(subtask.description) > limits.DESCRIPTION_CHARS:
        return [f"{name} has a description of more than {limits.DESCRIPTION_CHARS} characters"]
    if not is_concrete(subtask.description, reads=bool(subtask.attachments)):
        return [
            f"{name} is vague, any plan could have it: name what to find out or produce, of which things, period or "
            "kind, and from which source"
        ]
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
