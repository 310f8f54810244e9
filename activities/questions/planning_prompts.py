"""The planner's prompts, one set of rules for each strategy."""

from collections.abc import Iterable, Mapping

from activities.contracts.planning_contracts import WorkNote
from activities.contracts.run_contracts import AttachmentRef
from activities.prompts.agent_prompts import DATA_RULE, block, plain, tag
from supervision.base import limits
from supervision.base.prompt_marks import ATTACHMENTS, GOAL, MISSING_POINTS, MOST_SUBTASKS, OUTCOME, PLANNED, ROLES
from supervision.base.text import one_line
from supervision.contract.plan import Plan, Subtask
from supervision.contract.team import PlanExample, Role, Team
from supervision.planning.revisions import replacements

_SUBTASK_RULES = f"""\
- Each description stands alone: a worker agent sees its subtask, its attachments and the findings it depends on, not \
the goal. It says what to hand in and in which form; the things, period and units; the sources; what other subtasks \
do, so that none does it twice; and when to stop. Not "Analyze the orders", but "From the table of \
orders, give the number of orders per month of 2023 in France and in Spain, as a table. Leave the causes to t2. Done \
when both have twelve values, or the table shows that some are missing."
- depends_on lists only subtasks whose findings it needs: the others run in parallel.
- Split what needs the sources or tools of different roles; leave whole what one role gets from one source. Subtasks \
whose findings are put side by side have the same fields, units and period, in the same words.
- role is the one that fits best; with "auto" the least busy one that has all capabilities gets the subtask.
- importance is "optional" only for what the answer can do without; weight is low for background, which is cut first.
- candidates is 1; 2 to {limits.CANDIDATES} only where one attempt is likely to be wrong and a comparison would show \
it: each is paid in full. candidate_roles names other roles for them.
- attachments lists those that the subtask must read; its role must read attachments.
- The answer needs no subtask of its own: none only sums up, unless the goal asks for a document or a file."""

_PLAN_RULES = f"""\
- Effort follows the goal: one subtask for a fact, two to four for a comparison, more only for a broad goal with \
parts of its own. {MOST_SUBTASKS}. Ids are short: t1, t2, ...
- aggregation is "merge" when the answer draws on all findings, "select" when the subtasks are rival answers, "reduce" \
when many like findings are to be condensed first. final_instruction says how to write the answer from them."""

_AUTO_RULES = """\
- direct_answer, without subtasks, is only for what the goal itself holds: small talk, plain arithmetic, a text that \
it gives; what you remember of the world is no source. Else it is null.
- strategy is "plan" when the subtasks can be named now, "step" when the next one depends on what the last one finds: \
then give only the first, you will be asked again after each finding."""

_STEP_RULES = f"""\
- You decide one step at a time. Give exactly one subtask: the next one that the goal needs after what has been \
found. It may depend on earlier ones; never repeat one that is completed.
- When what was found is enough to answer the goal, or nothing more can be found, finished is true and subtasks is \
empty.
- {MOST_SUBTASKS}. Ids are short and new: t1, t2, ..."""

_REVISION_RULES = f"""\
- The plan below has been worked on. Return only what is to be added; what is there stays as it is.
- A subtask that failed or was skipped is replaced by a new one that goes another way (another source, role or split) \
and lists it in replaces; what depends on the old one will use the new one. Never repeat a description that failed, \
nor ask for what a finding shows to be missing from the sources.
- With nothing worth adding, subtasks is empty: the answer is then written from what is there.
- New ids only. {MOST_SUBTASKS}, those below counted."""

_ROUTE_RULES = """\
- The whole goal goes to one role: the one whose description and tools fit it best.
- secondary_role is a second role that works on the goal beside it, only when its view is really needed; else null.
- description stands alone, as the role does not see the goal: what to find out or produce, the whole wish, entities, \
period, units, form and language of the answer."""

_NEW_ROLES = """\
- When no role fits a subtask, define one in new_roles (tools only out of: {tools}) and name it in the subtask's \
new_role; otherwise new_roles is empty and new_role is null. At most {new_roles}, with new names."""


PLAN_RULES = (_SUBTASK_RULES, _PLAN_RULES, _NEW_ROLES)
AUTO_RULES = (_SUBTASK_RULES, _PLAN_RULES, _AUTO_RULES, _NEW_ROLES)
STEP_RULES = (_STEP_RULES, _SUBTASK_RULES, _NEW_ROLES)
REVISION_RULES = (_REVISION_RULES, _SUBTASK_RULES, _NEW_ROLES)
ROUTE_RULES = (_ROUTE_RULES,)


def planner_system(team: Team, roles: list[Role], tools: Mapping[str, str], catalogue: str, rules: str) -> str:
    """Returns the planner's instructions: the roles that it may use, their `tools`, the team's data, and how to plan.

    `tools` are descriptions by name; `catalogue` is empty for a team without data of its own.
    """
    listed = "\n".join(_role_line(role) for role in roles)
    used = dict.fromkeys([tool for role in roles for tool in role.tools] + team.toolbox)
    described = [f"- {name}: {one_line(tools[name], limits.LINE_BYTES)}" for name in used if name in tools]
    parts = [
        "You supervise worker agents. You split a goal into subtasks, one role each, and do none yourself.",
        f"The team: {one_line(team.description, limits.LINE_BYTES)}" if team.description.strip() else "",
        f"{ROLES}\n{listed}",
        "\n".join(["Tools of these roles:", *described]) if described else "",
        f"Data that these tools reach:\n{catalogue}" if catalogue else "",
        f"How to plan\n{rules}",
        f"How this team plans\n{team.planning.instructions.strip()}" if team.planning.instructions.strip() else "",
        *map(_example, team.planning.examples),
        DATA_RULE,
    ]
    return "\n\n".join(part for part in parts if part)


def rules_for(team: Team, max_subtasks: int, parts: Iterable[str]) -> str:
    """Returns the rules of planning; without those of new roles where they would have no tools, only recall."""
    named = [part for part in parts if part is not _NEW_ROLES or team.toolbox]
    return "\n".join(named).format(most=max_subtasks, tools=", ".join(team.toolbox), new_roles=limits.NEW_ROLES)


def planner_request(
    goal: str,
    attachments: Iterable[AttachmentRef],
    in_flight: dict[str, int],
    plan_so_far: str = "",
    missing: Iterable[str] = (),
    last_words: str = "",
) -> str:
    """Returns the goal as the planner sees it; `plan_so_far` is the `history` of the plan that it adds to.

    `missing` is what a review found to be missing from that plan.
    """
    lines = [tag(GOAL, goal)]
    if names := [f"- {a.name} ({a.bytes} bytes)" for a in attachments]:
        lines.append(tag(ATTACHMENTS, "\n".join(names)))
    busy = [f"- {role}: {count}" for role, count in sorted(in_flight.items()) if count]
    if busy:
        lines.append(tag("at_work", "Worker agents that are busy now, by role:\n" + "\n".join(busy)))
    if plan_so_far:
        lines.append(plan_so_far)
    if points := [f"- {point}" for point in missing]:
        lines.append("A review of the findings misses this for the goal; add subtasks for what can be found out:")
        lines.append(tag(MISSING_POINTS, "\n".join(points)))
    return "\n\n".join([*lines, *([last_words] if last_words else [])])


PLAN_WORDS = "Plan subtasks for this goal: a direct answer is not wanted."
STEP_WORDS = "Decide the next step."
REVISION_WORDS = "Return what should be added to the plan."
ROUTE_WORDS = "Choose the role."


def history(previous: Plan, done: Iterable[WorkNote], room: int = limits.PROMPT_LIST_BYTES) -> str:
    """Returns the plan so far with the outcome of each subtask; `room` is for all descriptions, and all outcomes."""
    notes = {note.subtask_id: note for note in done}
    share = min(limits.PARAGRAPH_BYTES, max(limits.NOTE_LEAST_BYTES, room // max(1, len(previous.subtasks))))
    replaced = replacements(previous.subtasks)
    listed = [
        _outcome(subtask, notes.get(subtask.id), replaced.get(subtask.id, []), share) for subtask in previous.subtasks
    ]
    return block("plan_so_far", listed)


def plan_repair(problems: list[str]) -> str:
    """Returns the message that sends a plan back with its problems."""
    listed = "\n".join(f"- {plain(problem)}" for problem in problems)
    return f"This plan can't run:\n{listed}\n\nReturn the whole reply again with these points fixed."


def _role_line(role: Role) -> str:
    extras = [f"tools: {', '.join(role.tools) or 'none'}"] if role.team is None else ["tools: those of its own team"]
    if role.capabilities:
        extras.append(f"capabilities: {', '.join(role.capabilities)}")
    return f"- {role.name}: {role.description} ({'; '.join(extras)})"


def _example(example: PlanExample) -> str:
    return "\n".join([f"A good plan for: {example.goal}", *(f"- {subtask}" for subtask in example.subtasks)])


def _outcome(subtask: Subtask, note: WorkNote | None, replaced_by: list[str], share: int) -> str:
    after = f' depends_on="{", ".join(subtask.depends_on)}"' if subtask.depends_on else ""
    after += f' replaced_by="{", ".join(replaced_by)}"' if replaced_by else ""
    state, role = (note.state, note.role) if note else ("waiting", subtask.role)
    text = one_line(note.note, share) if note else ""
    outcome = f"\n{tag(OUTCOME, text)}" if text else ""
    return (
        f'<{PLANNED} id="{subtask.id}" role="{role}" state="{state}"{after}>\n'
        f"{plain(one_line(subtask.description, share))}{outcome}\n</{PLANNED}>"
    )
