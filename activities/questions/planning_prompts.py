"""The planner's prompts and forms, by the mode of planning, with what is known of the team and goal."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from activities.contracts.run_contracts import PlanInput, WorkNote
from activities.prompts.agent_prompts import DATA_RULE, attachment_block, block, plain, tag
from activities.teams.toolbox import Toolbox
from supervision.base import limits
from supervision.base.prompt_marks import (
    ATTACHMENTS,
    DATA,
    GOAL,
    MISSING_POINTS,
    MOST_SUBTASKS,
    OUTCOME,
    PLANNED,
    ROLES,
)
from supervision.base.text import one_line
from supervision.contract.base import Model
from supervision.contract.plan import Aggregation, NewRole, Plan
from supervision.contract.team import Role, Team
from supervision.planning.revisions import replacements

_SUBTASK_RULES = f"""\
- A worker agent has {{max_turns}} turns and sees at most {{tool_output}} characters of a tool's output at once. A \
subtask has the right size if one role can answer it in 2 to 6 tool calls.
- Plan one subtask for each part that needs another role or another source. Keep parts that one query or one document \
answers together in one subtask.
- If several subtasks must fit each other (the same fields, units, periods, an outline), let one subtask fix that \
first and let the others depend on it; where it is short, write it into each description in the same words.
- A worker agent sees its description, its attachments and the findings it depends on, but not the goal. So a \
description says: the question; the things, period and unit; the source by name; the form to hand in; what the other \
subtasks do; and when to stop. Not "Analyze the orders", but "From the table of orders, give the number of orders per \
month of 2023 in France and in Spain, as a table. Leave the causes to t2. Done when both have twelve values, or the \
table shows that some are missing."
- depends_on lists only the subtasks whose findings this one needs. All others run in parallel.
- role is the role that fits best. With "auto", the least busy role that has all capabilities gets the subtask.
- importance is "optional" only for what the answer can do without. weight is low for background, which is shortened \
first.
- candidates is above 1, up to {limits.CANDIDATES}, only where one attempt is likely to be wrong and a comparison \
would show it: each attempt is paid in full.
- attachments lists those that the subtask must read. Its role must have a tool that reads attachments.
- The answer is written from the findings afterwards. Do not plan a subtask that only sums up, unless the goal asks \
for a document or a file.
- Before you reply, check that each part of the goal has a subtask, and that no two subtasks do the same."""

_PLAN_RULES = f"""\
- First settle for yourself what a complete answer consists of (the parts, figures and comparisons that its reader \
needs) and which listed table, document or attachment has each of them.
- A single fact needs one subtask, a comparison two to four; plan more only for a broad goal with parts of its own. \
{MOST_SUBTASKS}. Ids are short: t1, t2, ...
- aggregation is "merge" when the answer draws on all findings, "select" when each subtask answers the same question \
and the best answer is wanted, "reduce" when many similar findings should be condensed first. final_instruction says \
how to write the answer from the findings."""

_AUTO_RULES = """\
- Give a direct_answer, without subtasks, only if the goal itself holds all that is needed: small talk, plain \
arithmetic, a text to rework. Your memory of the world is not a source. Otherwise direct_answer is null.
- strategy is "plan" when the subtasks can be named now. It is "step" when the next subtask depends on what the last \
one finds: then give only the first one; you will be asked again after each finding."""

_STEP_RULES = f"""\
- You decide one step at a time. Give exactly one subtask: the next one that the goal needs after what has been found. \
It may depend on earlier subtasks. Do not repeat a subtask that is completed.
- When the findings are enough to answer the goal, or nothing more can be found, set finished to true and leave \
subtasks empty.
- {MOST_SUBTASKS}. Ids are short and new: t1, t2, ..."""

_REVISION_RULES = f"""\
- Work on the plan below has begun. Return only what should be added to it; the existing subtasks stay as they are.
- Replace a subtask that failed or was skipped by a new one that takes another way (another source, role or split), \
and list the old id in replaces: subtasks that depend on the old one will use the new one. Do not repeat a \
description that failed, and do not ask for something that a finding shows to be missing from the sources.
- If nothing is worth adding, leave subtasks empty: the answer is then written from the findings that exist.
- Use new ids only. {MOST_SUBTASKS}, including those below."""

_ROUTE_RULES = """\
- Choose one role for the complete goal: the role whose description and tools fit it best.
- secondary_role is a second role that works on the same goal in parallel. Choose one only when its view is really \
needed; otherwise it is null.
- The role does not see the goal, so description must contain all of it: what to find out or produce, the entities, \
period and units, and the form and language of the answer."""

_NEW_ROLES = """\
- If no role fits a subtask, define one in new_roles (its tools only from this list: {tools}) and name it in the \
subtask's new_role. Otherwise leave new_roles empty. Define at most {new_roles} roles, with new names."""


MODES = {
    "auto": ((_SUBTASK_RULES, _PLAN_RULES, _AUTO_RULES, _NEW_ROLES), ""),
    "plan": ((_SUBTASK_RULES, _PLAN_RULES, _NEW_ROLES), "Plan subtasks for this goal. Do not answer it directly."),
    "step": ((_STEP_RULES, _SUBTASK_RULES, _NEW_ROLES), "Decide the next step."),
    "revision": ((_REVISION_RULES, _SUBTASK_RULES, _NEW_ROLES), "Return what should be added to the plan."),
    "route": ((_ROUTE_RULES,), "Choose the role."),
}


def planner_system(mode: str, team: Team, roles: list[Role], toolbox: Toolbox, call: PlanInput) -> str:
    """Returns the planner's instructions: the roles that it may use, their tools, and how to plan."""
    listed = "\n".join(map(_role_line, roles))
    described = _tool_lines([tool for role in roles for tool in role.tools] + team.toolbox, toolbox)
    # New roles would have no tools in a team without a toolbox: they could only recall, not find out.
    rules = "\n".join(part for part in MODES[mode][0] if part is not _NEW_ROLES or team.toolbox).format(
        most=call.max_subtasks,
        max_turns=call.max_turns,
        tool_output=f"{limits.TOOL_OUTPUT_CHARS:,}",
        tools=", ".join(team.toolbox),
        new_roles=limits.NEW_ROLES,
    )
    parts = [
        "You supervise worker agents. You split a goal into subtasks and give each to one role. You do not do the "
        "subtasks yourself.",
        f"The team: {one_line(team.description, limits.LINE_BYTES)}" if team.description.strip() else "",
        f"{ROLES}\n{listed}",
        "\n".join(["Tools of these roles:", *described]) if described else "",
        f"How to plan\n{rules}",
        f"How this team plans\n{team.planning.instructions.strip()}" if team.planning.instructions.strip() else "",
        DATA_RULE,
    ]
    return "\n\n".join(part for part in parts if part)


def role_means(role: Role | None, toolbox: Toolbox, catalogue: str) -> str:
    """Returns the tools and data of a role, as far as they are known."""
    described = _tool_lines(role.tools, toolbox) if role else []
    parts = ["\n".join(["Its tools:", *described])] if described else ["It has no tools of its own."]
    if described and catalogue:
        parts.append(f"The data of its team:\n{tag(DATA, catalogue)}")
    return "\n\n".join(parts)


def _tool_lines(names: Iterable[str], toolbox: Toolbox) -> list[str]:
    return [
        f"- {tool.name}: {one_line(tool.description, limits.LINE_BYTES)}"
        + " (a person approves each call)" * (tool.approve == "always")
        for tool in toolbox.named(names)
    ]


def planner_request(
    goal: str,
    attachments: Mapping[str, str],
    plan_so_far: str = "",
    missing: Iterable[str] = (),
    last_words: str = "",
    form: str = "",
    catalogue: str = "",
) -> str:
    """Returns the goal as the planner sees it, with beginnings of attachments and what a review found `missing`.

    `form` is the JSON schema of the answer, `catalogue` the data that the roles' tools can read.
    """
    lines = [tag(GOAL, goal)]
    if catalogue:  # names of files and columns, and words about them, are others' texts: no instructions
        lines += ["Data that the tools of the roles can read:", tag(DATA, catalogue)]
    if form:
        words = "The answer is to fill this form. Name in each description the fields that its finding has to give:"
        lines += [words, tag("answer_form", form)]
    if attachments:
        shown = block(ATTACHMENTS, [attachment_block(name, text) for name, text in attachments.items()])
        lines += ["The beginnings of the attachments:", shown]
    if plan_so_far:
        lines.append(plan_so_far)
    if points := [f"- {point}" for point in missing]:
        words = "A review found that this is missing for the goal. Add subtasks for what can be found out:"
        lines += [words, tag(MISSING_POINTS, "\n".join(points))]
    return "\n\n".join(filter(None, [*lines, last_words]))


def history(previous: Plan, done: Iterable[WorkNote], room: int = limits.PROMPT_LIST_BYTES) -> str:
    """Returns the plan so far with the outcome of each subtask; `room` is for all descriptions, and all outcomes."""
    notes, previous = {note.subtask_id: note for note in done}, previous.folded()
    share = min(limits.PARAGRAPH_BYTES, max(limits.NOTE_LEAST_BYTES, room // max(1, len(previous.subtasks))))
    replaced, listed = replacements(previous.subtasks), []
    for subtask in previous.subtasks:
        after = f' depends_on="{", ".join(subtask.depends_on)}"' if subtask.depends_on else ""
        after += f' replaced_by="{", ".join(replaced[subtask.id])}"' if replaced.get(subtask.id) else ""
        note = notes.get(subtask.id) or WorkNote(subtask_id=subtask.id, role=subtask.role, state="waiting", note="")
        text = one_line(note.note, share)
        lines = [
            f'<{PLANNED} id="{subtask.id}" role="{note.role}" state="{note.state}"{after}>',
            plain(one_line(subtask.description, share)),
            *([tag(OUTCOME, text)] if text else []),
        ]
        listed.append("\n".join([*lines, f"</{PLANNED}>"]))
    return block("plan_so_far", listed)


def plan_change(comment: str) -> str:
    """Returns the words that ask for another plan by what a person says about the one that was shown."""
    return f"The person who approves the plan wants it to be different:\n{tag('feedback', comment)}"


def _role_line(role: Role) -> str:
    extras = [f"tools: {', '.join(role.tools) or 'none'}"] if role.team is None else ["tools: those of its own team"]
    if role.person is not None:
        extras.append("a person, who gets the description and the findings it depends on, and replies in writing")
    if role.ask:
        extras.append("may ask a person")
    if role.grounding == "knowledge":
        extras.append("answers from the model's own knowledge")
    if role.capabilities:
        extras.append(f"capabilities: {', '.join(role.capabilities)}")
    if role.columns:
        extras.append(f"hands in a row of: {', '.join(role.columns)}")
    return f"- {role.name}: {role.description} ({'; '.join(extras)})"


# --- forms ----------------------------------------------------------------------------------------

_ESTIMATE = (
    "What its agent reads and writes in all: about 6000 for a lookup, 20000 for some documents, 60000 for a broad "
    "search. Leave it out if you cannot tell."
)
_FOR_EACH = (
    "Makes one subtask of this one for each item, when there are several of a kind or their number is not known yet. "
    'Write "files:*.pdf" for those of the user\'s files whose names fit the pattern, "rows:NAME" for the rows of a '
    'table among these, "lines:NAME" for the lines of a text among them, or "items:t1" for the items that subtask t1, '
    "listed in depends_on, is to find and name. The description then says what to do with one item, and "
    "estimated_tokens is that of one. "
    "Leave it out for a single subtask."
)
_REASONING = Annotated[str, Field(description="Why you plan it this way, in one short sentence.")]
_MODE_FIELDS: dict[str, dict[str, Any]] = {
    "auto": {"direct_answer": str | None, "strategy": Literal["plan", "step"]},
    "step": {"finished": bool},
}


@lru_cache(limits.KNOWN_FORMS)
def reply_form(mode: str, roles: tuple[str, ...], able: tuple[str, ...], *, new_roles: bool) -> type[Model]:
    """Returns the model whose schema asks for a plan, an addition to one, or a route; see `Planner`.

    The subtasks are its first list of objects, as model servers expect that fill a form without understanding it.
    """
    names: Any = Literal[roles]
    if mode == "route":
        return _form("RouteDraft", reasoning=_REASONING, role=names, secondary_role=names | None, description=str)
    subtask: Any = _subtask_form(mode, roles, able, new_roles=new_roles)
    more: dict[str, Any] = {"new_roles": list[NewRole]} if new_roles else {}
    if mode != "revision":  # the final instruction stays
        more |= {"aggregation": Aggregation, "final_instruction": str}
    return _form("PlanDraft", reasoning=_REASONING, **_MODE_FIELDS.get(mode, {}), subtasks=list[subtask], **more)


def _subtask_form(mode: str, roles: tuple[str, ...], able: tuple[str, ...], *, new_roles: bool) -> type[Model]:
    """Returns the model of a subtask, its `role` one of `roles` or a new one."""
    names: Any = Literal[roles]
    known: Any = Literal[able] if able else None
    more: dict[str, Any] = {}
    if mode == "revision":
        more["replaces"] = Annotated[list[str], Field(description="The ids that this subtask replaces.")]
    if new_roles:
        more["new_role"] = _optional(str, "The name of one of new_roles, in place of role.")
    if known:
        more["capabilities"] = _optional(list[known], 'Only with role "auto": what the subtask needs.')
    if len(roles) > 1:
        more["candidate_roles"] = _optional(list[names], "Other roles for the candidates.")
    return _form(
        "SubtaskDraft",
        id=str,
        description=str,
        reasoning=Annotated[str, Field(description="Why this role, in a few words.")],
        role=Literal[(*roles, "auto")],
        depends_on=list[str],
        **more,
        importance=_optional(Literal["required", "optional"], "Leave it out if it is required."),
        weight=_optional(float, "From 0 to 1, how much the answer depends on it. Leave it out for 0.5."),
        candidates=_optional(int, f"Independent attempts, at most {limits.CANDIDATES}. Leave it out for one."),
        estimated_tokens=_optional(int, _ESTIMATE),
        attachments=_optional(list[str], "The attachments that the subtask must read, by name."),
        for_each=_optional(str, _FOR_EACH),
        max_items=_optional(int, "The most items for which for_each makes a subtask. Leave it out for all."),
    )


def _optional(kind: Any, words: str) -> Any:
    """Returns a field that may be left out, as a plan of many subtasks would pay for each usual value.

    A factory leaves no default in the schema, which would be asked for; `PlanDraft`, which reads replies, has them.
    """
    return (kind, Field(default_factory=lambda: None, description=words))


def _form(name: str, **fields: Any) -> type[Model]:
    typed: dict[str, Any] = {key: kind if isinstance(kind, tuple) else (kind, ...) for key, kind in fields.items()}
    form: type[Model] = create_model(name, __base__=Model, **typed)
    return form
