"""The planner's prompts, one set of rules for each strategy."""

from collections.abc import Iterable

from activities.contracts.planning_contracts import WorkNote
from activities.contracts.run_contracts import AttachmentRef
from activities.prompts.agent_prompts import DATA_RULE, block, plain, tag
from supervision import limits
from supervision.contract.plan import Plan, Subtask
from supervision.contract.team import Role, Team
from supervision.planning.revisions import replacements
from supervision.prompt_marks import ATTACHMENTS, GOAL, MOST_SUBTASKS, OUTCOME, ROLES, SUBTASK
from supervision.text import one_line

_SUBTASK_RULES = f"""\
- Each description stands alone: a worker agent sees its own subtask, the goal and the findings it depends on, \
nothing else. Name what to find out or produce, the entities, the period, the units.
- Subtasks that do not need each other's findings have no dependency, so that they run in parallel. List in \
depends_on only what a subtask really needs.
- role is the role that fits best, or "auto" when several do: then capabilities says what is needed, and the least \
busy role that has it all gets the subtask.
- importance is "optional" only for what the answer can do without.
- candidates is 1. Ask for 2 to {limits.CANDIDATES} only where one attempt is likely to be wrong and a comparison \
would show it: each is paid in full and only the best is kept.
- List in a subtask's attachments the names of the attachments it must read."""

_PLAN_RULES = f"""\
- As few subtasks as the goal needs. {MOST_SUBTASKS}. Ids are short: t1, t2, ...
- final_instruction says how the final answer should be written from the findings."""

_AUTO_RULES = """\
- A goal that needs no tool and no research gets direct_answer and no subtasks; otherwise direct_answer is null.
- strategy is "plan" when the subtasks can be named now. It is "step" when the next subtask depends on what the last \
one finds: then give only the first subtask, you will be asked again after each finding."""

_STEP_RULES = f"""\
- You decide one step at a time. Give exactly one subtask: the next one that the goal needs after what has been \
found. It may depend on earlier ones; never repeat one that is completed.
- When what was found is enough to answer the goal, or nothing more can be found, finished is true and subtasks is \
empty.
- {MOST_SUBTASKS}. Ids are short and new: t1, t2, ..."""

_REVISION_RULES = f"""\
- The plan below has been worked on. Return only what is to be added to it; what is there stays as it is.
- A subtask that failed or was skipped is replaced by a new one that goes another way and lists it in replaces; what \
depends on the old one will use the new one. Never repeat a description that failed.
- With nothing worth adding, subtasks is empty: the answer will then be written from what is there.
- New ids only. {MOST_SUBTASKS}, those below counted."""

_ROUTE_RULES = """\
- The whole goal goes to one role: the one whose description and tools fit it best.
- secondary_role is a second role that works on the goal beside it, only when its view is really needed; else null.
- description says what to find out or produce, so that it stands alone: entities, period, units."""

_NEW_ROLES = """\
- When no role fits a subtask, define one in new_roles ({tools}) and name it in the subtask's new_role; \
otherwise new_roles is empty and new_role is null. At most {most}, with new names."""


def planner_system(roles: list[Role], rules: str) -> str:
    """Returns the planner's instructions with the roles that it may use."""
    listed = "\n".join(_role_line(role) for role in roles)
    known = sorted({capability for role in roles for capability in role.capabilities})
    capabilities = f"\nCapabilities that exist: {', '.join(known)}\n" if known else ""
    return f"""You are the supervisor of a team of worker agents. You plan: you split a goal into subtasks and give \
each to the role that fits it best. You do no subtask yourself.

{ROLES}
{listed}
{capabilities}
How to plan
{rules}

{DATA_RULE}"""


def plan_rules(team: Team, max_subtasks: int) -> str:
    """Returns the rules of a whole graph up front."""
    return "\n".join([_SUBTASK_RULES, _PLAN_RULES.format(most=max_subtasks), _new_roles(team)])


def auto_rules(team: Team, max_subtasks: int) -> str:
    """Returns the rules of a plan whose strategy the planner chooses."""
    return "\n".join([_SUBTASK_RULES, _PLAN_RULES.format(most=max_subtasks), _AUTO_RULES, _new_roles(team)])


def step_rules(team: Team, max_subtasks: int) -> str:
    """Returns the rules of one subtask at a time."""
    return "\n".join([_STEP_RULES.format(most=max_subtasks), _SUBTASK_RULES, _new_roles(team)])


def revision_rules(team: Team, max_subtasks: int) -> str:
    """Returns the rules of additions to a plan of which something failed."""
    return "\n".join([_REVISION_RULES.format(most=max_subtasks), _SUBTASK_RULES, _new_roles(team)])


def route_rules() -> str:
    """Returns the rules of choosing one role for the whole goal."""
    return _ROUTE_RULES


def planner_request(
    goal: str,
    attachments: Iterable[AttachmentRef],
    in_flight: dict[str, int],
    plan_so_far: str = "",
    last_words: str = "",
) -> str:
    """Returns the goal as the planner sees it; `plan_so_far` is the `history` of the plan that it adds to."""
    lines = [tag(GOAL, goal)]
    if names := [f"- {a.name} ({a.bytes} bytes)" for a in attachments]:
        lines.append(tag(ATTACHMENTS, "\n".join(names)))
    if busy := [f"- {role}: {count}" for role, count in sorted(in_flight.items()) if count]:
        lines.append(tag("at_work", "Worker agents that are busy now, by role:\n" + "\n".join(busy)))
    return "\n\n".join([*lines, *([plan_so_far] if plan_so_far else []), *([last_words] if last_words else [])])


PLAN_WORDS = "Plan subtasks for this goal: a direct answer is not wanted."
STEP_WORDS = "Decide the next step."
REVISION_WORDS = "Return what should be added to the plan."
ROUTE_WORDS = "Choose the role."


def history(previous: Plan, done: Iterable[WorkNote]) -> str:
    """Returns the plan so far with the outcome of each subtask."""
    notes = {note.subtask_id: note for note in done}
    replaced = replacements(previous.subtasks)
    listed = [_outcome(subtask, notes.get(subtask.id), replaced.get(subtask.id, [])) for subtask in previous.subtasks]
    return block("plan_so_far", listed)


def plan_repair(problems: list[str]) -> str:
    """Returns the message that sends a plan back with its problems."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    return f"This plan can't run:\n{listed}\n\nReturn the whole reply again with these points fixed."


def _role_line(role: Role) -> str:
    extras = [f"tools: {', '.join(role.tools) or 'none'}"] if role.team is None else ["tools: those of its own team"]
    if role.capabilities:
        extras.append(f"capabilities: {', '.join(role.capabilities)}")
    return f"- {role.name}: {role.description} ({'; '.join(extras)})"


def _new_roles(team: Team) -> str:
    tools = f"tools only out of: {', '.join(team.toolbox)}" if team.toolbox else "without tools: the toolbox is empty"
    return _NEW_ROLES.format(tools=tools, most=limits.NEW_ROLES)


def _outcome(subtask: Subtask, note: WorkNote | None, replaced_by: list[str]) -> str:
    after = f' depends_on="{", ".join(subtask.depends_on)}"' if subtask.depends_on else ""
    after += f' replaced_by="{", ".join(replaced_by)}"' if replaced_by else ""
    state, role = (note.state, note.role) if note else ("waiting", subtask.role)
    text = plain(one_line(note.note, limits.NOTE_BYTES)) if note else ""
    outcome = f"\n{OUTCOME}{text}" if text else ""
    return (
        f'<{SUBTASK} id="{subtask.id}" role="{role}" state="{state}"{after}>\n'
        f"{plain(one_line(subtask.description, limits.NOTE_BYTES))}{outcome}\n</{SUBTASK}>"
    )
