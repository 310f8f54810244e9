"""The rules that a plan must pass before any worker agent starts."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from graphlib import CycleError, TopologicalSorter

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import quoted, size
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.planning.expansion import NO_DATA, Data, for_each_problems

# Shorter ones can't say what to do; bytes, as Chinese says more with a character.
_MIN_DESCRIPTION_BYTES = 12
_LEAST_NAMED = 2  # names, or one with a number
_ENGLISH = """
a about all also an and any are as at be best better by can do each every few for from full further
general get give good have help how i if important in into is it its key make many may more most
much must need needed no not of on one or other our out overall own please possible proper relevant
required several should so some such that the their them then these this those through to up use
used useful user various we well what when where which who why will with you additional analyse
analysis analyze answer appropriate check collect complete comprehensive conduct consider content
create data deep depth detailed document documents draft evaluate examine explore facts figures
final find finding findings finish first gather generate goal goals identify information input
insight insights investigate issue issues item items look main material materials necessary output
part parts patterns perform plan point points prepare present problem problems process project
provide question questions read recommendations report request research result results review search
solution source sources step steps study subtask suitable summarise summarize summary support task
tasks thing things topic topics trends understand understanding work write
"""
_GENERIC = frozenset(_ENGLISH.split())

# In scripts without spaces two characters are a word.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")
_WORD = re.compile(r"\w+")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_concrete(description: str, *, reads: bool = False) -> bool:
    """True if a description names its object, or `reads` attachments or items."""
    spaced, unspaced = _UNSPACED.subn(" ", description)
    words = {word.casefold() for word in _WORD.findall(spaced)}
    names = [word for word in words if word not in _GENERIC and (len(word) > 1 or word.isdigit())]
    has_number = any(character.isdigit() for word in names for character in word)
    return has_number or len(names) + unspaced // 2 + int(reads) >= _LEAST_NAMED


def is_subtask_id(text: str) -> bool:
    """True if a text is a valid id for a subtask in a plan."""
    return _ID.fullmatch(text) is not None


def plan_problems(
    plan: Plan,
    max_subtasks: int,
    attachments: Iterable[str] = (),
    data: Data = NO_DATA,
) -> list[str]:
    """Returns the problems of `plan`, a sentence each; empty if it can run.

    Unknown roles are no problem: the generalist takes their subtasks.
    """
    try:
        plan.model_dump_json()
    except ValueError:  # "\ud800" in JSON that a model wrote becomes text that no encoding takes
        return ["the plan holds half of a surrogate pair: write whole characters"]
    if is_empty(plan):
        return ["the plan has no subtasks and no direct_answer"]
    planned = len(plan.subtasks)
    if _is_direct(plan):
        return ["give either a direct_answer or subtasks, not both"] if planned else []
    problems = []
    if planned > max_subtasks:
        problems.append(f"the plan has {planned} subtasks, at most {max_subtasks} are allowed")
    ids = Counter(subtask.id for subtask in plan.subtasks)
    problems += _id_problems(ids)
    names = set(attachments)
    for subtask in plan.subtasks:
        problems += _subtask_problems(subtask, ids.keys(), names)
        problems += for_each_problems(subtask, data)
    problems += _answer_problems(plan)
    cycle = find_cycle(plan.subtasks)
    if cycle:
        problems.append("these subtasks depend on each other in a circle: " + " -> ".join(cycle))
    return problems


def is_empty(plan: Plan) -> bool:
    """True if a plan has neither subtasks nor a direct answer."""
    return not plan.subtasks and not _is_direct(plan)


def _is_direct(plan: Plan) -> bool:
    return plan.direct_answer is not None and bool(plan.direct_answer.strip())


def _id_problems(ids: Mapping[str, int]) -> list[str]:
    """Returns the problems of ids, each with the position of its subtask."""
    form = "must be 1 to 64 letters, digits, hyphens or underscores"
    wrong = [f"subtask id {quoted(id_)} {form}" for id_ in ids if not is_subtask_id(id_)]
    repeated = [id_ for id_, count in ids.items() if count > 1]
    return [*wrong, *(f"subtask id {quoted(id_)} is used twice" for id_ in repeated)]


def own_plan_problems(plan: Plan, max_subtasks: int) -> list[str]:
    """Returns the problems of a caller's plan that do not depend on data or team."""
    # Only the run knows its data: whatever the plan names counts as attached here.
    sources = [(subtask.for_each or "").partition(":")[2] for subtask in plan.subtasks]
    attached = {name for subtask in plan.subtasks for name in subtask.attachments}
    # The same holds for findings of earlier runs, such as `r1/t2`.
    own = [_without_earlier(subtask) for subtask in plan.subtasks]
    checked = plan.model_copy(update={"subtasks": own})
    if "/" in (plan.answer_from or ""):
        checked = checked.model_copy(update={"aggregation": "merge", "answer_from": None})
    return plan_problems(checked, max_subtasks, attached, dict.fromkeys(NO_DATA, sources))


def _without_earlier(subtask: Subtask) -> Subtask:
    """Returns a subtask without its dependencies on findings of earlier runs."""
    own = [other for other in subtask.depends_on if "/" not in other]
    return subtask.model_copy(update={"depends_on": own})


def _answer_problems(plan: Plan) -> list[str]:
    """Returns at most one problem: of a plan in which a finding is the answer."""
    if plan.aggregation != "finding":
        return ['answer_from is only for the aggregation "finding"'] if plan.answer_from else []
    subtask = next((each for each in plan.subtasks if each.id == plan.answer_subtask), None)
    if plan.answer_subtask is None:
        return ['aggregation is "finding": answer_from has to name the subtask of the answer']
    if subtask is None:
        return [f"answer_from names {quoted(plan.answer_subtask)}, which is not in the plan"]
    if subtask.for_each is not None or subtask.template is not None:
        many = "which has a finding for each item: write the answer from them"
        return [f"answer_from names {quoted(subtask.id)}, {many}"]
    return []


def _subtask_problems(subtask: Subtask, known: Set[str], attachments: Set[str]) -> list[str]:
    """Returns the problems of a subtask by itself, in a plan with the `known` ids."""
    name = f"subtask {quoted(subtask.id)}"
    problems = description_problems(subtask, name)
    for dependency in subtask.depends_on:
        if dependency not in known:
            problems.append(f"{name} depends on {quoted(dependency)}, which is not in the plan")
    for attachment in subtask.attachments:
        if attachment not in attachments:
            listed = f"{name} lists the attachment {quoted(attachment)}"
            problems.append(f"{listed}, which does not exist")
    if not 1 <= subtask.candidates <= limits.CANDIDATES:
        allowed = f"1 to {limits.CANDIDATES} are allowed"
        problems.append(f"{name} asks for {subtask.candidates} candidates, {allowed}")
    longest = limits.MAX_DEADLINE.total_seconds()
    if subtask.timeout_seconds is not None and not 0 < subtask.timeout_seconds <= longest:
        allowed = f"above 0 and at most {longest:.0f}"
        problems.append(f"{name} has a timeout_seconds that is not {allowed}")
    return problems


def description_problems(subtask: Subtask, name: str = "the subtask") -> list[str]:
    """Returns at most one problem of a subtask's description; it begins with `name`."""
    description = subtask.description
    if _is_too_short(description):
        return [f"{name} has no concrete description: say what to find out or produce"]
    if len(description) > limits.DESCRIPTION_CHARS:
        return [f"{name} has a description of more than {limits.DESCRIPTION_CHARS} characters"]
    reads = bool(subtask.attachments or subtask.for_each or subtask.item)
    if not is_concrete(description, reads=reads):
        wanted = "name what to find out, of which things, from which source"
        return [f"{name} is vague, any plan could have it: {wanted}"]
    return []


def _is_too_short(description: str) -> bool:
    """True if a description has few bytes or a single word."""
    if size(description.strip()) < _MIN_DESCRIPTION_BYTES:
        return True
    words = description.split()
    # Chinese, Japanese or Thai write no spaces: a whole sentence is one word there.
    return len(words) < 2 and words[0].isascii()


def find_cycle(subtasks: list[Subtask]) -> list[str]:
    """Returns the ids of one dependency cycle, such as [t1, t2, t1]; empty without one."""
    try:
        TopologicalSorter({subtask.id: subtask.depends_on for subtask in subtasks}).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []
