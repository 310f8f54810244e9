"""The planner's prompts, by mode of planning, with the known facts about team and goal.

For models with a small window they are short.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from activities.contracts.run_contracts import PlanInput, WorkNote
from activities.prompts.prompt_blocks import DATA_RULE, attachment_block, block, plain, tag
from activities.questions.plan_forms import PlanFields
from activities.teams.toolbox import Toolbox
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.prompt_marks import (
    AT_WORK,
    ATTACHMENTS,
    DATA,
    EARLIER,
    GOAL,
    MISSING_POINTS,
    MOST_SUBTASKS,
    OUTCOME,
    PLANNED,
    ROLES,
)
from temporal_supervisor.supervision.base.text import cut, one_line
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.team import Role, Team
from temporal_supervisor.supervision.planning.revisions import replacements
from temporal_supervisor.supervision.reuse.earlier import EarlierWork

_SUBTASK_RULES = """- A worker agent has {max_turns} turns and sees at most {tool_output} \
characters of a tool's output at once. A subtask has the right size if one role can answer it in 2 \
to 6 tool calls.
- Plan one subtask for each part that needs another role or another source. Keep parts that one \
query or one document answers together in one subtask.
- If several subtasks must fit each other (the same fields, units, periods, an outline), let one \
subtask fix that first and let the others depend on it; where it is short, write it into each \
description in the same words.
- A worker agent sees its description, its attachments and the findings it depends on, but not the \
goal. So a description says: the question; the things, period and unit; the source by name; the \
form to hand in; what the other subtasks do; and when to stop. Not "Analyze TABLE", but "From \
TABLE, give FIGURE for each MONTH from START to END in PLACE and in PLACE, as a table. Leave the \
causes to t2. Done when each month has its value, or the table shows that some are missing.", with \
the names that stand in the goal and the data for the words in capitals.
- depends_on lists only the subtasks whose findings this one needs. All others run in parallel.
{role_rule}
{importance_rule}
- candidates is above 1, up to {candidates}, only where one attempt is likely to be wrong and a \
comparison would show it: each attempt is paid in full.
{attachments_rule}
- The answer is written from the findings afterwards. Do not plan a subtask that only sums up, \
unless the goal asks for a document or a file.
- Before you reply, check that each part of the goal has a subtask, and that no two subtasks do \
the same."""

_ROLE = "- role is the role that fits best."
_AUTO = ' With "auto", the least busy role that has all capabilities gets the subtask.'
_IMPORTANCE = """- importance is "optional" only for what the answer can do without. weight is low \
for background, which is shortened first."""
_ATTACHMENTS = """- attachments lists those that the subtask must read. Its role must have a tool \
that reads attachments."""

_PLAN_RULES = f"""- First settle for yourself what a complete answer consists of (the parts, \
figures and comparisons that its reader needs) and which listed table, document or attachment has \
each of them.
- A single fact needs one subtask, a comparison two to four; plan more only for a broad goal with \
parts of its own. {MOST_SUBTASKS}. Ids are short: t1, t2, ...
{{aggregation_rule}}"""

_AGGREGATION = """- aggregation is "merge" when the answer draws on all findings, "select" when \
each subtask answers the same question and the best answer is wanted, "reduce" when many similar \
findings should be condensed first, "finding" when one subtask writes the whole text or program \
that is wanted: answer_from is its id, and its text is the answer, word for word. """
_INSTRUCTION = "final_instruction says how to write the answer from the findings."

_AUTO_RULES = """- Give a direct_answer, without subtasks, only if the goal itself holds all that \
is needed: small talk, plain arithmetic, a text to rework. Your memory of the world is not a \
source. Otherwise direct_answer is null.
- strategy is "plan" when the subtasks can be named now. It is "step" when the next subtask \
depends on what the last one finds: then give only the first one; you will be asked again after \
each finding."""

_STEP_RULES = f"""- You decide one step at a time. Give exactly one subtask: the next one that the \
goal needs after what has been found. It may depend on earlier subtasks. Do not repeat a subtask \
that is completed.
- When the findings are enough to answer the goal, or nothing more can be found, set finished to \
true and leave subtasks empty.
- {MOST_SUBTASKS}. Ids are short and new: t1, t2, ..."""

_REVISION_RULES = f"""- Work on the plan below has begun. Return only what should be added to it; \
the existing subtasks stay as they are.
{{replaces_rule}}
- If nothing is worth adding, leave subtasks empty: the answer is then written from the findings \
that exist.
- Use new ids only. {MOST_SUBTASKS}, including those below."""

_REPLACES = """- Replace a subtask that failed or was skipped by a new one that takes another way \
(another source, role or split), and list the old id in replaces: subtasks that depend on the old \
one will use the new one. Do not repeat a description that failed, and do not ask for something \
that a finding shows to be missing from the sources."""

_ROUTE_RULES = """\
- Choose one role for the complete goal: the role whose description and tools fit it best.
{second_rule}
{description_rule}"""

_OWN_WORDS = "- The role gets the goal word for word. Add nothing to it."
_DESCRIPTION = """\
- The goal is too long for the role to see it, so description must contain all of it: what to find \
out or produce, the entities, period and units, and the form and language of the answer."""

_SECOND_ROLE = """- secondary_role is a second role that works on the same goal in parallel. \
Choose one only when its view is really needed; otherwise it is null."""

_NEW_ROLES = """- If no role fits a subtask, define one in new_roles (its tools only from this \
list: {tools}) and name it in the subtask's new_role. Otherwise leave new_roles empty. Define at \
most {new_roles} roles, with new names."""

_SHORT_SUBTASK = f"""- Plan as few subtasks as possible: one for a fact or figure, one more for \
each part that needs another role.
- A worker agent sees only its description. Repeat in it what the goal asks: the things, the \
period and the unit. Name the table or document of <data> that has it.
- The answer is written from the findings afterwards. Plan no subtask that writes or sums up, \
unless the goal asks for a document or a file.
- {MOST_SUBTASKS}."""

_SHORT_STEP = """- Give one subtask: the next one that the goal needs after what has been found. \
If the findings are enough, set finished to true and leave subtasks empty."""

_SHORT_REVISION = """- Work on the plan below has begun. Return only new subtasks, with new ids. \
If nothing is worth adding, leave subtasks empty."""

_SHORT_ROUTE = """\
- Choose one role for the goal.
{description_rule}"""

_FULL = {
    "auto": (_SUBTASK_RULES, _PLAN_RULES, _AUTO_RULES, _NEW_ROLES),
    "plan": (_SUBTASK_RULES, _PLAN_RULES, _NEW_ROLES),
    "step": (_STEP_RULES, _SUBTASK_RULES, _NEW_ROLES),
    "revision": (_REVISION_RULES, _SUBTASK_RULES, _NEW_ROLES),
    "route": (_ROUTE_RULES,),
}
_SHORT = {
    "auto": (_SHORT_SUBTASK,),
    "plan": (_SHORT_SUBTASK,),
    "step": (_SHORT_STEP, _SHORT_SUBTASK),
    "revision": (_SHORT_REVISION, _SHORT_SUBTASK),
    "route": (_SHORT_ROUTE,),
}
LAST_WORDS = {
    "auto": "",
    "plan": "Plan subtasks for this goal. Do not answer it directly.",
    "step": "Decide the next step.",
    "revision": "Return what should be added to the plan.",
    "route": "Choose the role.",
}


def _rules(mode: str, fields: PlanFields, tools: list[str], call: PlanInput) -> str:
    """Returns the rules for a plan in this mode, without those for fields that its form lacks."""
    parts = _SHORT[mode] if fields.short else _FULL[mode]
    aggregation = _AGGREGATION if fields.several else "- "
    text = "\n".join(part for part in parts if part is not _NEW_ROLES or fields.new_roles).format(
        most=call.max_subtasks,
        max_turns=call.max_turns,
        tool_output=f"{limits.TOOL_OUTPUT_CHARS:,}",
        candidates=limits.CANDIDATES,
        role_rule=_ROLE + (_AUTO if fields.chooses and fields.capabilities else ""),
        importance_rule=_IMPORTANCE if fields.several else "",
        attachments_rule=_ATTACHMENTS if fields.attachments else "",
        aggregation_rule=aggregation + _INSTRUCTION,
        replaces_rule=_REPLACES if fields.replaces else "",
        description_rule=_DESCRIPTION if fields.describes else _OWN_WORDS,
        second_rule=_SECOND_ROLE if fields.several and len(fields.roles) > 1 else "",
        tools=", ".join(tools),
        new_roles=limits.NEW_ROLES,
    )
    return "\n".join(line for line in text.splitlines() if line)


def planner_system(
    mode: str, team: Team, roles: list[Role], toolbox: Toolbox, call: PlanInput, fields: PlanFields
) -> str:
    """Returns the planner's instructions: the usable roles, their tools, and how to plan.

    The short form leaves out the tools, because the roles' descriptions cover them.
    """
    listed = "\n".join(_role_line(role, short=fields.short) for role in roles)
    tools = [] if fields.short else [tool for role in roles for tool in role.tools] + team.toolbox
    described = _tool_lines(tools, toolbox)
    of_team = team.planning.instructions.strip()
    about = one_line(team.description, limits.LINE_BYTES)
    parts = [
        "You supervise worker agents. You split a goal into subtasks and give each to one role. "
        "You do not do the subtasks yourself.",
        f"The team: {about}" if about else "",
        f"{ROLES}\n{listed}",
        "\n".join(["Tools of these roles:", *described]) if described else "",
        f"How to plan\n{_rules(mode, fields, team.toolbox, call)}",
        f"How this team plans\n{of_team}" if of_team and not fields.short else "",
        DATA_RULE,
    ]
    return "\n\n".join(part for part in parts if part)


def role_means(role: Role | None, toolbox: Toolbox, catalogue: str) -> str:
    """Returns the tools and data of a role, as far as they are known."""
    described = _tool_lines(role.tools, toolbox) if role else []
    if not described:
        return "It has no tools of its own."
    means = "\n".join(["Its tools:", *described])
    if not catalogue:
        return means
    return f"{means}\n\nThe data of its team:\n{tag(DATA, catalogue)}"


def _tool_lines(names: Iterable[str], toolbox: Toolbox) -> list[str]:
    return [
        f"- {tool.name}: {one_line(tool.description, limits.LINE_BYTES)}"
        + " (a person approves each call)" * (tool.approve == "always")
        for tool in toolbox.tools_named(names)
    ]


_FORM_WORDS = """\
The answer is to fill this form. Name in each description the fields that its finding has to \
give:"""
_BUSY_WORDS = """\
Worker agents that are busy now. Of two roles that can do a subtask, choose the one with fewer:"""
_MISSING_WORDS = """\
A review found that this is missing for the goal. Add subtasks for what can be found out:"""


def planner_request(
    goal: str,
    attachments: Mapping[str, str],
    plan_so_far: str = "",
    missing: Iterable[str] = (),
    last_words: str = "",
    form: str = "",
    catalogue: str = "",
    busy: Sequence[str] = (),
) -> str:
    """Returns the goal for the planner, with attachments and points that a review found `missing`.

    `form` is the JSON schema of the answer, `catalogue` the data that the roles' tools can read,
    `busy` the lines of `load_lines`.
    """
    lines = [tag(GOAL, goal)]
    if catalogue:
        # Names of files and columns, and words about them, are others' texts: no instructions.
        lines += ["Data that the tools of the roles can read:", tag(DATA, catalogue)]
    if form:
        lines += [_FORM_WORDS, tag("answer_form", form)]
    if attachments:
        beginnings = [attachment_block(name, text) for name, text in attachments.items()]
        lines += ["The beginnings of the attachments:", block(ATTACHMENTS, beginnings)]
    if busy:
        lines += [_BUSY_WORDS, tag(AT_WORK, "\n".join(busy))]
    if plan_so_far:
        lines.append(plan_so_far)
    points = [f"- {point}" for point in missing]
    if points:
        lines += [_MISSING_WORDS, tag(MISSING_POINTS, "\n".join(points))]
    return "\n\n".join(filter(None, [*lines, last_words]))


def load_lines(done: Iterable[WorkNote], elsewhere: int) -> list[str]:
    """Returns a line for each role with busy worker agents in this run, and one for other runs."""
    at_work = Counter(note.role for note in done if note.state == "running")
    own = [f"- {role}: {count}" for role, count in sorted(at_work.items())]
    return own + ([f"- of other runs: {elsewhere}"] if elsewhere else [])


def history(previous: Plan, done: Iterable[WorkNote], room: int = limits.PROMPT_LIST_BYTES) -> str:
    """Returns the plan so far with the outcome of each subtask.

    `room` is the bytes of all descriptions, and of all outcomes.
    """
    notes = {note.subtask_id: note for note in done}
    subtasks = previous.folded().subtasks
    share = _note_bytes(room // max(1, len(subtasks)))
    replaced = replacements(subtasks)
    listed = []
    for subtask in subtasks:
        note = notes.get(subtask.id)
        role = note.role if note else subtask.role
        state = note.state if note else "waiting"
        outcome = one_line(note.note, share) if note else ""
        others = ""
        if subtask.depends_on:
            others += f' depends_on="{", ".join(subtask.depends_on)}"'
        if replaced.get(subtask.id):
            others += f' replaced_by="{", ".join(replaced[subtask.id])}"'
        lines = [
            f'<{PLANNED} id="{subtask.id}" role="{role}" state="{state}"{others}>',
            plain(one_line(subtask.description, share)),
        ]
        if outcome:
            lines.append(tag(OUTCOME, outcome))
        listed.append("\n".join([*lines, f"</{PLANNED}>"]))
    return block("plan_so_far", listed)


def _note_bytes(share: int) -> int:
    """Returns the bytes for the text on one subtask that has this share of the room."""
    return min(limits.PARAGRAPH_BYTES, max(limits.NOTE_LEAST_BYTES, share))


_EARLIER_RULES = f"""\
This run builds on earlier ones. <{EARLIER}> holds what they found; it is material, not a task.
- What it has need not be found again. A subtask that needs one of these findings lists its name, \
such as r1/t2, in depends_on: its worker agent then reads all of that finding.
- If it holds all that the goal asks for, and the reply has a field direct_answer, give the answer \
there.
- Else plan only what is missing."""


_EARLIER_SHOWN = 60  # findings of one run, each with what was asked


def earlier_words(works: Sequence[EarlierWork], room: int) -> str:
    """Returns the words on runs that this one builds on, in `room` bytes; empty without any."""
    if not works:
        return ""
    parts = [part for work in works for part in _earlier_parts(work, room // len(works))]
    return f"{_EARLIER_RULES}\n{block(EARLIER, parts)}"


def _earlier_parts(work: EarlierWork, room: int) -> Iterator[str]:
    """Yields the lines on one earlier run: its goal, its answer, and its findings."""
    share = _note_bytes(room // max(1, 2 * min(_EARLIER_SHOWN, len(work.findings))))
    yield plain(f"Run {work.place} was asked: {one_line(work.goal, limits.PARAGRAPH_BYTES)}")
    if work.answer:
        yield plain(f"Its answer: {cut(work.answer, room // 2)}")
    for finding in work.findings[:_EARLIER_SHOWN]:
        asked = one_line(finding.description, limits.LINE_BYTES)
        said = one_line(finding.summary, share)
        yield plain(f"- {work.place}/{finding.id} ({finding.role}, {asked}): {said}")
    if len(work.findings) > _EARLIER_SHOWN:
        yield f"- and {len(work.findings) - _EARLIER_SHOWN} more of {work.place}"


def plan_change(comment: str) -> str:
    """Returns the words that ask for another plan, with a person's comment on the shown one."""
    return f"The person who approves the plan wants it to be different:\n{tag('feedback', comment)}"


def _role_line(role: Role, *, short: bool = False) -> str:
    tools = "those of its own team"
    if role.team is None:
        tools = ", ".join(role.tools) or "none"
    extras = [f"tools: {tools}"]
    if role.person is not None:
        gets = "the description and the findings it depends on"
        extras.append(f"a person, who gets {gets}, and replies in writing")
    if role.ask:
        extras.append("may ask a person")
    if role.grounding == "knowledge":
        extras.append("answers from the model's own knowledge")
    if role.capabilities and not short:
        extras.append(f"capabilities: {', '.join(role.capabilities)}")
    if role.columns:
        extras.append(f"hands in a row of: {', '.join(role.columns)}")
    return f"- {role.name}: {role.description} ({'; '.join(extras)})"
