"""The rules that a plan must pass before any child starts."""

import re
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from supervision.base import limits
from supervision.base.text import quoted, size
from supervision.contract.plan import Plan, Subtask
from supervision.planning.expansion import NO_DATA, Data, for_each_problems

_MIN_DESCRIPTION_BYTES = 12  # shorter ones can't say what to do; bytes, as Chinese says more with a character
_LEAST_NAMED = 2  # names, or one with a number
_ENGLISH = """
a about above accordingly across again all also an and any anything appropriate are as at available be been best better
both but by can could deal do does done each either else enough etc every everything few following for from full
fully further general generally get give given go going good great had has have help helpful her here high his how i if
important in initial into is it its itself just key know known last least let like main make many may me might
more most much must my necessary need needed needs next no not now of off on once one only or other others our out over
overall own per please possible proper properly quick quickly really regarding related relevant required right same
see several she should so some somehow someone something specific still such take task tasks than that the
their them then there these they thing things this those through thorough thoroughly to too top under up upon us
use used useful user users various very via want was way ways we well were what whatever when where whether which
while who whole why will with within without would you your
additional comprehensive complete completely deep depth detailed different early entire existing final first
high-quality in-depth interesting meaningful quality several suitable clear clearly accurate accurately basic carefully
address analyse analysed analyses analysis analyze analyzing answer answers apply approach area areas arrange aspect
aspects assess assessment assist background bring care carry check collect conduct consider content context continue
contribute cover create data deliver details determine develop dig discover discuss dive doing draft evaluate
evaluation examine execute explore fact facts figure file files find finding findings finish fix gather generate goal
goals handle helping idea ideas identify implement improve info information input insight insights inspect
investigate investigation issue issues item items job learn look looking manage material materials matter matters
method methods objective obtain optimize option options organize output outputs overview part parts pattern patterns
perform piece pieces plan point points prepare present problem problems proceed process produce project provide
question questions read recommendation recommendations report request research resolve respond response result results
review run search section solution solutions solve sort source sources start step steps stuff studies study
subject subtask subtasks suggest suggestions summarise summarize summary support situation text topic topics
trend trends try understand understanding update verify work working write document documents conclusion conclusions
stakeholders stakeholder requirements requirement necessary everyone tool tools
"""
_GENERIC = frozenset(_ENGLISH.split())

# In scripts without spaces two characters are a word.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")
_WORD = re.compile(r"\w+")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_concrete(description: str, *, reads: bool = False) -> bool:
    """True if a description names its object; attachments or items that it `reads` are a part of that."""
    spaced, unspaced = _UNSPACED.subn(" ", description)
    words = {word.casefold() for word in _WORD.findall(spaced)}
    named = sum(_weight(word) for word in words if word not in _GENERIC)
    return named + unspaced // 2 + int(reads) >= _LEAST_NAMED


def _weight(word: str) -> int:
    if any(character.isdigit() for character in word):
        return _LEAST_NAMED
    return int(len(word) > 1)


def plan_problems(plan: Plan, max_subtasks: int, attachments: Iterable[str] = (), data: Data = NO_DATA) -> list[str]:
    """Returns the problems of `plan`, a sentence each; empty if it can run. Unknown roles go to the generalist."""
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
        problems += for_each_problems(subtask, data)
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
        if not _ID.fullmatch(subtask.id):
            problems.append(f"subtask id {quoted(subtask.id)} must be 1 to 64 letters, digits, hyphens or underscores")
        elif subtask.id in seen:
            problems.append(f"subtask id '{subtask.id}' is used twice")
        seen.add(subtask.id)
    return problems


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
    """Returns the problem of a subtask's description, at most one; `name` begins it."""
    words = subtask.description.split()
    # Chinese, Japanese or Thai write no spaces
    if size(subtask.description.strip()) < _MIN_DESCRIPTION_BYTES or (len(words) < 2 and words[0].isascii()):
        return [f"{name} has no concrete description: say what to find out or produce"]
    if len(subtask.description) > limits.DESCRIPTION_CHARS:
        return [f"{name} has a description of more than {limits.DESCRIPTION_CHARS} characters"]
    if not is_concrete(subtask.description, reads=bool(subtask.attachments or subtask.for_each or subtask.item)):
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
