"""A team: roles with their prompts and tools, and the small card of it that travels in history."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from supervision.base import limits
from supervision.base.text import did_you_mean, one_line, quoted
from supervision.contract.base import Model, StrictModel
from supervision.contract.finding import Grounding
from supervision.contract.model_choice import Efforts, ModelChain

_ROLE_CAPABILITIES = 50  # each a word or two; a run keeps them for as long as it is open
_CAPABILITY_CHARS = 100
_ROLE_LABEL_CHARS = 80  # a line above an answer
_PLANNING_INSTRUCTIONS_CHARS = 4000  # a team's own words to the planner: a page
_PLANNING_EXAMPLES = 5  # of a team's plans; more cost every run and teach little
_EXAMPLE_CHARS = 500  # of an example's goal or of one of its subtasks: a sentence or two
_TEAM_ROUTES = 50
_ROUTE_PATTERN_CHARS = 200  # some words of a goal
_ON_FAILURE_CHARS = 600  # it is part of an error message
_LEAST_TURN_TOKENS = 256  # of a role's own limit: a short finding and the call that hands it in

Effects = Literal["read", "write"]
Table = Mapping[str, object]
M = TypeVar("M", bound=StrictModel)


def is_name(text: str) -> bool:
    """True if `text` may name a team or a role."""
    return re.fullmatch(r"[a-z][a-z0-9_-]{0,47}", text) is not None


def is_pool(text: str) -> bool:
    """True if `text` may name a pool of Workers: it is part of a task queue's name."""
    return re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", text) is not None


def _pool(text: str) -> str:
    if not is_pool(text):
        raise ValueError("must be 1 to 32 lower-case letters, digits or hyphens")
    return text


def _name(text: str) -> str:
    if not is_name(text):
        raise ValueError("must be 1 to 48 lower-case letters, digits, hyphens or underscores, a letter first")
    return text


def _tool_name(text: str) -> str:
    if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}", text):
        raise ValueError("must be 1 to 64 letters, digits, hyphens or underscores, a letter first")
    return text


def tables(value: object) -> list[Table]:
    """Returns the tables of a list; none if it is something else."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def texts(value: object) -> list[str]:
    """Returns the texts of a list; none if it is something else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def names_of(entries: Iterable[Table]) -> list[str]:
    """Returns the names of those that have one."""
    return texts([entry.get("name") for entry in entries])


Name = Annotated[str, AfterValidator(_name)]
Capability = Annotated[str, Field(max_length=_CAPABILITY_CHARS)]


class PlanExample(StrictModel):
    """A goal, and how a good plan of this team would split it: a line for each subtask."""

    goal: Annotated[str, Field(min_length=1, max_length=_EXAMPLE_CHARS)]
    subtasks: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=_EXAMPLE_CHARS)]],
        Field(min_length=1, max_length=12),
    ]


class Planning(StrictModel):
    """What a team tells the planner: instructions of its own, and examples of good plans."""

    instructions: Annotated[str, Field(max_length=_PLANNING_INSTRUCTIONS_CHARS)] = ""
    examples: Annotated[list[PlanExample], Field(max_length=_PLANNING_EXAMPLES)] = []


class Route(StrictModel):
    """Goals that go to one role without the planner: a pattern is words of theirs, or has `*` for any text."""

    pattern: Annotated[str, Field(min_length=1, max_length=_ROUTE_PATTERN_CHARS)]
    role: str


class Role(StrictModel):
    """A worker agent's definition.

    `tools` names the tools that it may use; no other tool is ever run for it. `model` overrides the default models of
    worker agents, by a name or a fallback chain, `effort` that of the request. `max_turns` lowers the run's turn cap
    for this role, `max_parallel` limits its worker agents that run at the same time. A subtask whose attempts failed
    is tried once more by the role `fallback`. `team` makes the role a team of that name: a supervisor of its own works
    on each of its subtasks. Activities of a role with a `pool` go to the Workers of that pool; while work there has
    waited longer than `backlog_seconds`, new subtasks go to the role `backup`. `max_tokens` limits what one of its
    turns may write. An answer that is a finding of this role begins with its `label`. With the `grounding`
    "knowledge" its findings may say what no tool output has, and are marked so.
    """

    name: Name
    description: Annotated[str, Field(min_length=1, max_length=limits.ROLE_DESCRIPTION_CHARS)]
    system_prompt: Annotated[str, Field(max_length=limits.ROLE_PROMPT_CHARS)] = ""
    tools: list[str] = []
    capabilities: Annotated[list[Capability], Field(max_length=_ROLE_CAPABILITIES)] = []
    model: ModelChain | None = None
    effort: Efforts | None = None
    max_turns: Annotated[int, Field(ge=1, le=200)] | None = None
    max_parallel: Annotated[int, Field(ge=1, le=200)] | None = None
    fallback: str | None = None
    team: str | None = None
    pool: Annotated[str, AfterValidator(_pool)] | None = None
    backup: str | None = None
    backlog_seconds: Annotated[float, Field(gt=0)] = 30.0
    max_tokens: Annotated[int, Field(ge=_LEAST_TURN_TOKENS, le=limits.TURN_MAX_TOKENS)] | None = None
    label: Annotated[str, Field(min_length=1, max_length=_ROLE_LABEL_CHARS)] | None = None
    grounding: Grounding = "tools"

    @model_validator(mode="wrap")
    @classmethod
    def _able(cls, value: object, handler: ModelWrapValidatorHandler["Role"]) -> "Role":
        return _checked(value, handler, _role_problems)


class ToolEntry(StrictModel):
    """A tool that a team file sets up: `uses` names a tool kind, `options` are that kind's own.

    With `inline = false` no team inside a request may name it.
    """

    name: Annotated[str, AfterValidator(_tool_name)]
    uses: str
    options: dict[str, Any] = {}
    inline: bool = True


class Team(StrictModel):
    """Roles and their tools. `generalist` takes subtasks whose role is unknown.

    `toolbox` names the tools that roles defined by a plan may use. `planning` is for the planner, `routes` are taken
    before it is asked, the first that fits. `on_failure` is what users read when a run gave no answer.
    """

    name: Name
    description: str = ""
    generalist: str
    roles: Annotated[list[Role], Field(min_length=1, max_length=limits.TEAM_ROLES)]
    tools: list[ToolEntry] = []
    share_tools: bool = False
    toolbox: list[str] = []
    planning: Planning = Planning()
    routes: Annotated[list[Route], Field(max_length=_TEAM_ROUTES)] = []
    on_failure: Annotated[str, Field(max_length=_ON_FAILURE_CHARS)] = ""

    @model_validator(mode="wrap")
    @classmethod
    def _consistent(cls, value: object, handler: ModelWrapValidatorHandler["Team"]) -> "Team":
        return _checked(value, handler, _reference_problems)

    def role(self, name: str) -> Role:
        """Returns the role of that name. Raises KeyError if there is none."""
        for role in self.roles:
            if role.name == name:
                return role
        raise KeyError(name)


class ToolCard(Model):
    """The part of a tool that a workflow knows: its name and how its calls are run, never its schema."""

    name: str
    effects: Effects = "read"
    reads_attachments: bool = False


class RoleCard(Model):
    """The part of a role that a workflow knows.

    Where `model` cannot be used, the first of `fallback_models` that can takes over.
    """

    name: str
    description: str = ""
    capabilities: list[str] = []
    tools: list[ToolCard] = []
    model: str
    fallback_models: list[str] = []
    effort: Efforts | None = None
    max_turns: int | None = None
    max_parallel: int | None = None
    fallback: str | None = None
    team: str | None = None
    pool: str | None = None
    backup: str | None = None
    backlog_seconds: float = 30.0
    max_tokens: Annotated[int, Field(ge=1, le=limits.MAX_TOKENS_CEILING)] | None = None
    label: str | None = None

    @property
    def reads_attachments(self) -> bool:
        """True if it has a tool that reads them, or may have one in its own team."""
        return self.team is not None or any(tool.reads_attachments for tool in self.tools)

    @property
    def models(self) -> list[str]:
        """All models of the role, in the order of preference."""
        return [self.model, *self.fallback_models]


class TeamCard(Model):
    """The part of a team that a workflow knows; prompts and schemas stay in the artifact store."""

    name: str
    generalist: str
    roles: list[RoleCard]
    on_failure: str = ""

    def find(self, name: str | None) -> RoleCard | None:
        """Returns the role of that name, None if there is none."""
        return next((role for role in self.roles if role.name == name), None)

    def role(self, name: str) -> RoleCard:
        """Returns the role of that name, else the generalist."""
        by_name = {role.name: role for role in self.roles}
        return by_name.get(name) or by_name[self.generalist]


def _checked(value: object, handler: Callable[[object], M], problems: Callable[[Table], Iterable[str]]) -> M:
    """Returns the model of a value; raises what is wrong with its fields together with its `problems`."""
    errors, made, whole = list[InitErrorDetails](), None, value
    try:
        made = handler(value)
        whole = made.model_dump()
    except ValidationError as error:
        if error.error_count() > limits.FIELD_COMPLAINTS:  # no more are shown, and of many a copy takes seconds
            raise
        errors = [
            InitErrorDetails(type=item["type"], loc=item["loc"], input=item["input"], ctx=item.get("ctx", {}))
            for item in error.errors(include_url=False)
        ]
    for text in islice(problems(whole), limits.FIELD_COMPLAINTS) if isinstance(whole, Mapping) else ():
        errors.append(InitErrorDetails(type="value_error", input=value, ctx={"error": ValueError(text)}))
    if errors or made is None:
        raise ValidationError.from_exception_data("Team", errors)
    return made


def _reference_problems(team: Table) -> Iterator[str]:
    roles, tools = tables(team.get("roles")), tables(team.get("tools"))
    names = names_of(roles)
    if repeated := _repeated(names):
        yield f"role names must differ: {repeated}"
    if len(names) == len(roles) in range(1, limits.TEAM_ROLES + 1):  # else an unknown one may be without its name
        yield from _unknown_roles(team, roles, names)
    if repeated := _repeated(names_of(tools)):
        yield f"tool names must differ: {repeated}"
    shared = _repeated(tool for role in roles for tool in dict.fromkeys(texts(role.get("tools"))))
    if shared and not team.get("share_tools"):
        yield f"roles share the tools {shared}: give each tool to one role, or set share_tools = true if that is meant"


def _role_problems(role: Table) -> Iterator[str]:
    name, prompt = quoted(str(role.get("name"))), role.get("system_prompt", "")
    if role.get("team") is None and isinstance(prompt, str) and not prompt.strip():
        yield f"role {name} needs a system_prompt"
    if role.get("team") is not None and role.get("tools"):
        yield f"role {name} is a team: tools belong to that team's roles"


def _unknown_roles(team: Table, roles: list[Table], names: list[str]) -> Iterator[str]:
    if (generalist := _other(team.get("generalist"), names)) is not None:
        yield f"generalist {_unknown(generalist, names)}"
    for role in roles:
        for field in ("fallback", "backup"):
            if role.get(field) == role["name"]:
                yield f"role {quoted(str(role['name']))} is its own {field}: name another role"
            elif (other := _other(role.get(field), names)) is not None:
                yield f"role {quoted(str(role['name']))}: {field} {_unknown(other, names)}"
    for route in tables(team.get("routes")):
        if (other := _other(route.get("role"), names)) is not None:
            yield f"routes: {_unknown(other, names)}"


def _other(name: object, names: list[str]) -> str | None:
    return name if isinstance(name, str) and name not in names else None


def _unknown(role: str, names: list[str]) -> str:
    meant = did_you_mean(role, names).replace(", ", "; ", 1)
    listed = one_line(", ".join(names), limits.PARAGRAPH_BYTES)
    return f"{quoted(role)} is not one of the roles: {listed}{meant}"


def _repeated(names: Iterable[str]) -> str:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    return one_line(", ".join(repeated), limits.PARAGRAPH_BYTES)
