"""The planner: its drafts, its forms and prompts for a run, and the reading of its replies."""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import field_validator

from activities.contracts.run_contracts import PlanInput
from activities.model.port import ModelMessage
from activities.questions.plan_forms import PlanFields, reply_form
from activities.questions.planning_prompts import planner_system
from activities.questions.question import read_reply
from activities.teams.team_files import LoadedTeam
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import cut
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.strategy import STRATEGIES, StrategyName
from temporal_supervisor.supervision.contract.team import Role, Team
from temporal_supervisor.supervision.planning.expansion import NO_DATA, Data, asks_for_each
from temporal_supervisor.supervision.planning.named_tables import named_tables, table_lines
from temporal_supervisor.supervision.planning.plan_graph import description_problems
from temporal_supervisor.supervision.planning.question_reach import reach_of
from temporal_supervisor.supervision.planning.revisions import REPLACEABLE
from temporal_supervisor.supervision.replies.loose_form import says_nothing
from temporal_supervisor.supervision.reuse.earlier import EarlierWork, with_earlier

_ANSWER_GOAL = "Answer this goal: "
# A longer goal is described in the model's words.
_OWN_WORDS_CHARS = limits.DESCRIPTION_CHARS - len(_ANSWER_GOAL)
_FIGURES_ONLY = "Give only the figures that tables have. Another agent reads the documents."
_TEXTS_ONLY = "Give only what documents have. Another agent queries the tables for the figures."
_IN_TEXTS = "documents can answer it whole"
_SHORT_GOAL_CHARS = 1200  # a question with the form of its answer; more is a task of several parts


class SubtaskDraft(Subtask):
    """A subtask as the planner writes it.

    `new_role` names a role that the plan itself defines; it is taken in place of `role`.
    """

    id: str = ""
    new_role: str | None = None


class PlanDraft(Plan):
    """A plan as the planner writes it, or an addition to one.

    `finished` ends a plan that is made step by step.
    """

    finished: bool = False
    strategy: Literal["plan", "step"] = "plan"
    subtasks: list[SubtaskDraft] = []  # type: ignore[assignment]

    @field_validator("new_roles", mode="before")
    @classmethod
    def _defined(cls, written: object) -> object:
        """Returns the roles that are defined, without words that a model wrote in their place."""
        if not isinstance(written, list):
            return []
        return [role for role in written if isinstance(role, dict)]

    @field_validator("finished", mode="before")
    @classmethod
    def _ended(cls, written: object) -> object:
        """Returns True for true alone: with any other words there is work left."""
        return written is True or str(written).strip().casefold() == "true"


class RouteDraft(Model):
    """The choice of a role for the whole goal; a `secondary_role` gets the goal, too.

    The goal is the description of the subtask. Only if it is too long for one, the model's
    `description` is used instead.
    """

    role: str
    secondary_role: str | None = None
    description: str = ""
    reasoning: str = ""


def plan_of(draft: PlanDraft, goal: str, revision: int) -> Plan:
    """Returns the plan in a draft."""
    defined = {role.name for role in draft.new_roles}
    direct = None if draft.subtasks or says_nothing(draft.direct_answer) else draft.direct_answer
    return Plan(
        goal=goal,
        direct_answer=direct,  # beside subtasks it is what a model writes into every field
        reasoning=cut(draft.reasoning.strip(), limits.SENTENCE_BYTES),
        aggregation=draft.aggregation,
        answer_from=None if says_nothing(draft.answer_from) else (draft.answer_from or "").strip(),
        final_instruction="" if says_nothing(draft.final_instruction) else draft.final_instruction,
        subtasks=[_subtask_of(item, defined) for item in draft.subtasks],
        new_roles=draft.new_roles,
        revision=revision,
    )


def _subtask_of(draft: SubtaskDraft, new_roles: Set[str]) -> Subtask:
    new_role = (draft.new_role or "").strip()
    meant = {
        "id": draft.id.strip(),
        "role": new_role if new_role in new_roles else draft.role.strip(),
        "depends_on": _names(draft.depends_on),
        "attachments": _names(draft.attachments),
        "capabilities": _names(draft.capabilities),
        "replaces": _names(draft.replaces),
        # A model's guess would end honest work: only a caller's plan sets one.
        "timeout_seconds": None,
        "weight": min(max(draft.weight, 0.0), 1.0),
        "estimated_tokens": min(max(draft.estimated_tokens, 0), limits.MAX_BUDGET_TOKENS),
        "reasoning": cut(draft.reasoning.strip(), limits.SENTENCE_BYTES),
        "for_each": None if says_nothing(draft.for_each) else (draft.for_each or "").strip(),
        "max_items": draft.max_items or None,
        "item": "",
        "taken_from": None,
    }
    return Subtask.model_validate(draft.model_dump(exclude={"new_role"}) | meant)


def _names(written: list[str]) -> list[str]:
    """Returns the names without duplicates, and without words that models write for none."""
    return [name for name in dict.fromkeys(written) if not says_nothing(name)]


@dataclass(frozen=True)
class Planner:
    """The planning of one run: the planner's input, the run's team, its goal, and its data.

    `catalogue` lists the data that the team's tools read, `data` the names that templates may use.
    With `short` the model gets short prompts and forms. A plan may use findings of the earlier
    `works`.
    """

    call: PlanInput
    loaded: LoadedTeam
    goal: str
    catalogue: str
    data: Data = field(default_factory=lambda: NO_DATA)
    short: bool = False
    works: Sequence[EarlierWork] = ()

    @property
    def mode(self) -> str:
        """The strategy; "revision" for an addition to a plan, unless it is made step by step."""
        strategy = self.call.strategy
        if self.call.plan_ref and not STRATEGIES[strategy].plans_steps:
            return "revision"
        return strategy

    @property
    def roles(self) -> list[Role]:
        """The roles that a plan may use; those that are teams only while nesting is possible."""
        if self.call.nesting_left > 0:
            return self.loaded.team.roles
        return [role for role in self.loaded.team.roles if role.team is None]

    @property
    def querying(self) -> list[str]:
        """The names of the roles that can query tables."""
        return [role.name for role in self.roles if self.loaded.toolbox.queries_tables(role)]

    @property
    def fields(self) -> PlanFields:
        """The fields of a plan that the planner is asked for: those that can apply to this run."""
        call = self.call
        several = call.max_subtasks > 1
        capabilities: set[str] = set()
        for role in self.roles:
            capabilities.update(role.capabilities)
        has_replaceable = any(note.state in REPLACEABLE for note in call.done)
        return PlanFields(
            roles=tuple(role.name for role in self.roles),
            capabilities=tuple(sorted(capabilities)),
            items=tuple(self._kinds_of_items(several)),
            attachments=bool(call.attachments),
            # Without tools for them they could only recall, not find out.
            new_roles=bool(self.loaded.team.toolbox),
            replaces=self.mode == "revision" and has_replaceable,
            several=several,
            short=self.short,
            describes=len(self.goal.strip()) > _OWN_WORDS_CHARS,
        )

    def _kinds_of_items(self, several: bool) -> list[str]:
        """Returns the kinds of items for each of which a subtask may be repeated.

        A small model gets none if the goal does not ask for each of something: it fills in every
        field, and one question would be asked of each row of a table.
        """
        if self.short and not asks_for_each(self.goal):
            return []
        kinds = [kind for kind in ("files", "rows", "lines") if self.data[kind]]
        # Of items that a subtask is yet to find; a small model takes them for known ones.
        if several and not self.short:
            kinds.append("items")
        return kinds

    def system(self) -> str:
        """Returns the planner's instructions."""
        team, toolbox = self.loaded.team, self.loaded.toolbox
        return planner_system(self.mode, team, self.roles, toolbox, self.call, self.fields)

    def form(self) -> type[Model]:
        """Returns the model whose schema is sent."""
        return reply_form(self.mode, self.fields)

    def parse_reply(self, message: ModelMessage) -> tuple[StrategyName, Plan | None]:
        """Returns the strategy of the run, and its plan; None as plan if nothing more is needed.

        Raises ValueError, with the reason, for an unusable reply.
        """
        mode = self.mode
        if mode == "route":
            return "route", self._read_route(message)
        draft = read_reply(PlanDraft, message, root="plan")
        plan = plan_of(draft, self.goal, self.call.revision)
        for subtask in plan.subtasks:
            subtask.role = self._role(subtask.role)
        strategy = draft.strategy
        if mode != "auto":
            strategy = "step" if mode == "step" else "plan"
        if strategy == "step" and plan.aggregation == "finding":
            plan.aggregation = "merge"  # the finding that comes last is not known yet
        if mode == "auto":
            return strategy, plan
        plan.direct_answer = None  # no field of these forms
        if mode == "step":
            plan.subtasks = plan.subtasks[:1]
            may_end = draft.finished and bool(self.call.done)
        else:
            may_end = bool(self.call.plan_ref)
        if may_end and not plan.subtasks:
            return strategy, None
        return strategy, plan

    def with_whole_goal(self, plan: Plan, strategy: StrategyName) -> Plan:
        """Returns a small model's first plan; an only subtask gets the words of the goal.

        Its finding becomes the answer.
        """
        is_one = len(plan.subtasks) == 1 and plan.subtasks[0].for_each is None
        if not is_one or self.call.plan_ref:
            return plan

        only = plan.subtasks[0]
        only = only.model_copy(update={"description": self._with_goal(only.description)})
        changes: dict[str, object] = {"subtasks": [only]}
        if strategy != "step":  # which finding comes last is not known there
            # Written again, it would only be changed.
            changes |= {"aggregation": "finding", "answer_from": None}
        return plan.model_copy(update=changes)

    def _with_goal(self, description: str) -> str:
        """Returns a description after a short goal, because small models drop words of the goal."""
        goal = self.goal.strip()
        if len(goal) > _SHORT_GOAL_CHARS or goal.casefold() in description.casefold():
            return description
        if not _is_usable(description):  # it is sent back as it is
            return description
        return f"{goal}\n{description}"

    def with_earlier(self, plan: Plan) -> tuple[Plan, list[str]]:
        """Returns the plan with the earlier findings that it names as subtasks, and problems."""
        team = self.loaded.team
        return with_earlier(plan, self.works, [role.name for role in team.roles], team.generalist)

    def with_able_roles(self, plan: Plan) -> tuple[Plan, list[str]]:
        """Returns the plan with a querying role for each subtask that names a table.

        The second value is a sentence for each change.
        """
        querying = self.querying
        if not querying:
            return plan, []
        tables = table_lines(self.catalogue)
        new_roles = {role.name for role in plan.new_roles}
        subtasks, notes = [], []
        for subtask in plan.subtasks:
            named = named_tables(subtask.description, tables)
            # One with dependencies may write about a table that another subtask has queried.
            is_first = not subtask.depends_on and subtask.role not in new_roles
            if named and is_first and not self._may_query(subtask.role):
                able = f"{querying[0]} can query the table {named[0]}"
                notes.append(f"{subtask.id}: {able}, {subtask.role} cannot")
                subtask = subtask.model_copy(update={"role": querying[0]})
            subtasks.append(subtask)
        return plan.model_copy(update={"subtasks": subtasks}), notes

    def _may_query(self, name: str) -> bool:
        """True if a role can query tables, or may have another way: a team, a person."""
        role = next((role for role in self.roles if role.name == name), None)
        if role is None:  # `auto`, or an unknown name, for which the generalist would be taken
            return False
        has_another_way = role.team is not None or role.person is not None
        return has_another_way or self.loaded.toolbox.queries_tables(role)

    def _read_route(self, message: ModelMessage) -> Plan:
        """Returns the route as a plan.

        In the last try an unreadable reply becomes a route to the generalist.
        """
        try:
            return self._routed(read_reply(RouteDraft, message))
        except ValueError:
            if self.call.attempt < limits.PLAN_TRIES:
                raise
            return self._routed(RouteDraft(role=self.loaded.team.generalist))

    def _role(self, written: str) -> str:
        """Returns the role with that name in any case; `written` itself if there is none."""
        said = written.strip().casefold()
        for role in self.roles:
            if role.name.casefold() == said:
                return role.name
        return written

    def fixed_route(self) -> Plan | None:
        """Returns the first plan of a goal that needs no planning; None for others.

        Such a goal matches a fixed route of the team, or, for a model with a small window, is a
        question that a single query or search can answer.
        """
        call = self.call
        is_first = call.revision <= 1 and call.head is None and not call.problems
        if not is_first or not STRATEGIES[call.strategy].fixed_routes:
            return None
        routes = (route for route in self.loaded.team.routes if fits(route.pattern, self.goal))
        route = next(routes, None)
        if route is None:
            return self._route_by_words()
        if all(role.name != route.role for role in self.roles):
            return None
        why = f"the team's route for goals such as: {route.pattern}"
        return self._routed(RouteDraft(role=route.role, reasoning=why))

    def _route_by_words(self) -> Plan | None:
        """Returns the plan of a question that a query or a search can answer; None for others.

        If it is uncertain that a query can, a role that reads documents is asked, too. A question
        for figures and their reasons is divided between both.
        """
        if not self.short or self.call.attachments or len(self.goal) > _SHORT_GOAL_CHARS:
            return None
        querying = self.querying
        reach = reach_of(self.goal, self.catalogue)
        if not querying or reach == "elsewhere":
            return None
        reading = self._reading_role()
        if reach == "documents":
            if reading is None:
                return None
            return self._routed(RouteDraft(role=reading, reasoning=_IN_TEXTS))
        if reach == "tables and documents":
            return self._divided(querying[0], reading)

        draft = RouteDraft(role=querying[0], reasoning="a query can answer it whole")
        if reach == "perhaps tables":
            draft.secondary_role = reading
        return self._routed(draft)

    def _divided(self, querying: str, reading: str | None) -> Plan | None:
        """Returns the plan of a question for figures and for words; None without a reading role."""
        if reading is None or self.call.max_subtasks < 2:
            return None

        goal = self.goal.strip()
        from_tables = Subtask(id="t1", role=querying, description=f"{goal}\n{_FIGURES_ONLY}")
        from_texts = Subtask(id="t2", role=reading, description=f"{goal}\n{_TEXTS_ONLY}")
        return Plan(
            goal=self.goal,
            reasoning="its figures are in tables, the rest in documents",
            subtasks=[from_tables, from_texts],
            revision=self.call.revision,
        )

    def _reading_role(self) -> str | None:
        """Returns the name of a role that reads documents but queries no tables; None without."""
        toolbox = self.loaded.toolbox
        for role in self.roles:
            reads = any(tool.evidence == "data" for tool in toolbox.tools_named(role.tools))
            if reads and role.name not in self.querying:
                return role.name
        return None

    def _routed(self, draft: RouteDraft) -> Plan:
        """Returns the plan of a route.

        The generalist gets the goal if the chosen role is not allowed.
        """
        team = self.loaded.team
        names = [role.name for role in self.roles]
        draft.role = self._role(draft.role)
        if draft.role not in names:
            draft = RouteDraft(role=team.generalist, reasoning=draft.reasoning)
        reasoning = cut(draft.reasoning.strip(), limits.SENTENCE_BYTES)
        description = self._description_of_route(draft)
        subtasks = [Subtask(id="t1", description=description, role=draft.role, reasoning=reasoning)]
        second = self._role(draft.secondary_role or "")
        if second in names and second != draft.role:
            beside = Subtask(id="t2", description=description, role=second, importance="optional")
            subtasks.append(beside)
        return Plan(
            goal=self.goal,
            reasoning=reasoning,
            final_instruction=_label_words(team, subtasks),
            subtasks=subtasks[: self.call.max_subtasks],
            revision=self.call.revision,
        )

    def _description_of_route(self, draft: RouteDraft) -> str:
        """Returns the user's goal word for word; for a long goal the model's description."""
        own_words = self.goal.strip()
        if len(own_words) > _OWN_WORDS_CHARS and _is_usable(draft.description):
            return draft.description
        shown = cut(own_words, _OWN_WORDS_CHARS)
        return shown if _is_usable(shown) else f"{_ANSWER_GOAL}{shown}"


def _label_words(team: Team, subtasks: Sequence[Subtask]) -> str:
    """Returns the instruction to put several findings under the labels of their roles."""
    labels = []
    for subtask in subtasks:
        label = team.role(subtask.role).label
        if label:
            labels.append(f"{label} for {subtask.id}")
    if not labels or len(subtasks) == 1:
        return ""
    return f"Set what each of them says under its label: {', '.join(labels)}."


def _is_usable(description: str) -> bool:
    return not description_problems(Subtask(id="t1", description=description))


def fits(pattern: str, goal: str) -> bool:
    """True if a goal contains the words of the pattern of a route; `*` matches anything."""
    wanted = " ".join(pattern.casefold().split())
    text = " ".join(goal.casefold().split())
    if "*" in wanted:
        # Linear in the text: it never tries again.
        return fnmatchcase(text, re.sub(r"[?[]", r"[\g<0>]", wanted))
    words = " ".join(re.findall(r"\w+", wanted))
    goal_words = " ".join(re.findall(r"\w+", text))
    return bool(words) and f" {words} " in f" {goal_words} "
