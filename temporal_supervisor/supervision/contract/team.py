"""A team: roles with their prompts and tools, and the card that is kept in history."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from itertools import chain
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, ValidationInfo, field_validator, model_validator

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import did_you_mean, one_line, quoted
from temporal_supervisor.supervision.base.trust import is_loopback, require_http
from temporal_supervisor.supervision.contract.base import Duration, Model, StrictModel, matching
from temporal_supervisor.supervision.contract.finding import Grounding
from temporal_supervisor.supervision.contract.model_choice import Efforts, ModelChain, OutputTokens

_LINE_CHARS = 200  # a capability, a label, the pattern of a route
_PARAGRAPH_CHARS = 600  # words that are part of an error message
_PAGE_CHARS = 4000  # a team's own words to the planner
_LISTED = 50  # capabilities of a role, routes of a team

Reads = Literal["public", "private"]
Returns = Literal["trusted", "untrusted"]
Effects = Literal["read", "outward", "write"]
Approval = Literal["never", "tainted", "always"]
Targets = dict[str, list[JsonValue]]
"""Of an argument, the values with which a call goes where the team wants it to go."""


GENERAL = "general"
"""The bundled team for any goal: for requests without a team. An inline team may name its tools."""
NAME_RULE = "1 to 48 lower-case letters, digits, hyphens or underscores, a letter first"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,47}")
_TOOL_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")
_SERVER_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_NO_TOOL_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_SECRET_IN_TEXT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}")
_SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def is_name(text: str) -> bool:
    """True if `text` is a valid name of a team, role or pool."""
    return _NAME.fullmatch(text) is not None


Name = Annotated[str, matching(_NAME, NAME_RULE)]
ToolName = Annotated[
    str, matching(_TOOL_NAME, "1 to 64 letters, digits, hyphens or underscores, a letter first")
]
ServerName = Annotated[
    str, matching(_SERVER_NAME, "1 to 32 lower-case letters, digits or hyphens, a letter first")
]
SecretName = Annotated[
    str, matching(_SECRET_NAME, "the name of a variable, such as TICKETS_TOKEN, never its value")
]
Capability = Annotated[str, Field(max_length=_LINE_CHARS)]
Line = Annotated[str, Field(min_length=1, max_length=_LINE_CHARS)]


class Planning(StrictModel):
    """A team's own instructions to the planner."""

    instructions: Annotated[str, Field(max_length=_PAGE_CHARS)] = ""


class Route(StrictModel):
    """Goals that go to one role without asking the planner.

    A pattern is some words of the goal; `*` stands for any text.
    """

    pattern: Line
    role: str


class Person(StrictModel):
    """A person who has a role: `who` it is, and the time for which its subtasks wait."""

    who: Line
    expires: Annotated[Duration, Field(gt=timedelta(), le=limits.MAX_DEADLINE)] = timedelta(days=7)


class RoleBase(Model):
    """The common fields of a role's definition and its card.

    `effort` and `max_tokens`, the most that one of its replies may have, override the request's.
    `max_turns` lowers the run's turn limit for this role. A subtask whose attempts failed is tried
    once more by the role `fallback`. `team` makes the role a team of that name: a supervisor of its
    own works on each of its subtasks. Activities of a role with a `pool` go to the Workers of that
    pool, model calls only with `pool_model`. New subtasks go to the role `backup` while work in the
    pool has waited longer than `backlog_seconds`, and once the role's last subtasks took longer
    than `latency_seconds`. An answer that is a finding of this role begins with its `label`. With
    `ask` its worker agents may ask a person. A role that is a `person` has no worker agents: its
    subtasks wait in the inbox, and the replies are their findings.
    """

    name: Name
    description: Annotated[str, Field(max_length=limits.ROLE_DESCRIPTION_CHARS)] = ""
    capabilities: Annotated[list[Capability], Field(max_length=_LISTED)] = []
    effort: Efforts | None = None
    max_turns: Annotated[int, Field(ge=1, le=200)] | None = None
    max_tokens: OutputTokens | None = None
    fallback: str | None = None
    backup: str | None = None
    backlog_seconds: Annotated[float, Field(gt=0)] = 30.0
    latency_seconds: Annotated[float, Field(gt=0)] | None = None
    team: str | None = None
    pool: Name | None = None
    pool_model: bool = True
    label: Line | None = None
    ask: bool = False
    person: Person | None = None


class Role(RoleBase, StrictModel):
    """A worker agent's definition.

    `tools` names the tools that it may use; no other tool is ever run for it. `model` overrides the
    default models of worker agents, by a name or a fallback chain. With the `grounding` "knowledge"
    its findings may say what no tool output has, and are marked so. The JSON schema `output_schema`
    asks for an object in each finding: a row of a table.
    """

    description: Annotated[str, Field(min_length=1, max_length=limits.ROLE_DESCRIPTION_CHARS)]
    system_prompt: Annotated[str, Field(max_length=limits.ROLE_PROMPT_CHARS)] = ""
    grounding: Grounding = "tools"
    tools: list[str] = []
    model: ModelChain | None = None
    output_schema: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _able(self) -> "Role":
        if self.team is None and self.person is None:
            if not self.system_prompt.strip():
                raise ValueError("a role needs a system_prompt")
            if self.output_schema is not None and not self.columns:
                raise ValueError('output_schema: it needs type = "object" and properties')
            return self
        is_both = bool(self.team and self.person)
        has_agents_fields = bool(self.tools) or self.ask or self.output_schema is not None
        if is_both or has_agents_fields:
            fields = "no other of these, no tools, `ask`, output_schema"
            raise ValueError(f"a role that is a team or a person has {fields}")
        return self

    @property
    def columns(self) -> list[str]:
        """The property names of `output_schema`; empty without one."""
        schema = self.output_schema or {}
        properties = schema.get("properties") if schema.get("type") == "object" else None
        return list(properties) if isinstance(properties, dict) else []

    @property
    def wanted_columns(self) -> list[str]:
        """The columns that need values: the required ones of `output_schema`, else all."""
        required = (self.output_schema or {}).get("required")
        if not isinstance(required, list):
            return self.columns
        return [name for name in self.columns if name in required] or self.columns


class ToolRights(StrictModel):
    """A team file's rights for a tool, which override those of its kind.

    See `supervision.agent.policy.ToolWords`. With `inline = false` no team inside a request may
    name it.
    """

    reads: Reads | None = None
    returns: Returns | None = None
    effects: Effects | None = None
    approve: Approval | None = None
    targets: Targets | None = None
    inline: bool | None = None

    @property
    def as_tool_fields(self) -> dict[str, Any]:
        """The rights that are set, as fields of a Tool."""
        rights = {name: getattr(self, name) for name in ToolRights.model_fields}
        return {name: right for name, right in rights.items() if right is not None}


class ToolEntry(ToolRights):
    """A tool in a team file: `uses` is its kind, `options` are the kind's own settings.

    An `optional` tool of the provider is left out of runs whose endpoint does not run it.
    """

    name: ToolName
    uses: str
    options: dict[str, Any] = {}
    optional: bool = False


class McpTool(ToolRights):
    """A team file's rights for a tool of an MCP server; the server's own hints are ignored."""

    reads: Reads = "private"
    returns: Returns = "untrusted"
    effects: Effects = "write"


class McpServer(StrictModel):
    """A server of tools: a `command`, which is run in the team's folder, or a `url`.

    Only its `tools` are offered. `env` names variables that the command gets in addition to PATH
    and HOME. `headers` has the secret of each header; in a longer text it is written `${NAME}`. A
    call may take `timeout` seconds.
    """

    command: Annotated[str, Field(min_length=1)] | None = None
    args: list[str] = []
    env: list[SecretName] = []
    url: str | None = None
    headers: dict[str, str] = {}
    timeout: Annotated[float, Field(gt=0, le=limits.MCP_TIMEOUT_MAX.total_seconds())] = 60.0
    tools: dict[str, McpTool] = {}

    @field_validator("env", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        if isinstance(value, dict):
            raise ValueError(
                'write the names alone, as in env = ["TOKEN"], and put the values where Workers run'
            )
        return value

    @model_validator(mode="after")
    def _reachable(self) -> "McpServer":
        if (self.command is None) == (self.url is None):
            raise ValueError("give it either a command or a url")
        misplaced = self.headers if self.url is None else self.args
        if misplaced:
            raise ValueError("headers belong to a url; args belong to a command, which has env")
        if self.url is not None:
            problem = require_http(self.url, secret=bool(self.headers))
            if problem:
                raise ValueError(problem)
        for text in self.headers.values():
            if not secrets_in(text):
                helps = "write NAME, or ${NAME} in a longer text"
                raise ValueError(f"headers: {quoted(text)} names no secret: {helps}")
        return self

    @property
    def remote_host(self) -> str:
        """The host of the URL; empty for a command and for this machine."""
        host = urlsplit(self.url or "").hostname or ""
        return "" if is_loopback(host) else host

    @property
    def secrets(self) -> list[str]:
        """The names of all secrets that are sent to it."""
        names = [*self.env]
        for text in self.headers.values():
            names += secrets_in(text)
        return list(dict.fromkeys(names))


def secrets_in(header: str) -> list[str]:
    """Returns the names of the secrets in a header's text, such as `Bearer ${TOKEN}`."""
    return [header] if _SECRET_NAME.fullmatch(header) else _SECRET_IN_TEXT.findall(header)


def with_secrets(header: str, secrets: Mapping[str, str]) -> str:
    """Returns a header's text with the values of its secrets inserted."""
    return secrets.get(header) or _SECRET_IN_TEXT.sub(lambda match: secrets[match[1]], header)


def server_tool(server: str, tool: str) -> str:
    """Returns the name of an MCP server's tool for models and roles: `server__tool`."""
    return f"{server}__{_NO_TOOL_NAME.sub('_', tool)}"


class Team(StrictModel):
    """Roles and their tools.

    `generalist` takes subtasks whose role is unknown. `mcp_servers` have further tools. `toolbox`
    names the tools that roles defined by a plan may use. `planning` is for the planner, `routes`
    are taken before it is asked, the first that fits. `on_failure` is what users read when a run
    gave no answer, `example` a goal that shows them what to ask.
    """

    name: Name
    description: str = ""
    example: Annotated[str, Field(max_length=_LINE_CHARS)] = ""
    share_tools: bool = False
    roles: Annotated[list[Role], Field(min_length=1, max_length=limits.TEAM_ROLES)]
    # Behind `roles`, as it is compared with them: a validator sees only the fields before its own.
    generalist: str
    tools: list[ToolEntry] = []
    mcp_servers: dict[ServerName, McpServer] = {}
    toolbox: list[str] = []
    planning: Planning = Planning()
    routes: Annotated[list[Route], Field(max_length=_LISTED)] = []
    on_failure: Annotated[str, Field(max_length=_PARAGRAPH_CHARS)] = ""

    @field_validator("roles")
    @classmethod
    def _require_consistent_roles(cls, roles: list[Role], info: ValidationInfo) -> list[Role]:
        """Checks the roles' names, the names in them, and the tools that they share."""
        names = [role.name for role in roles]
        problems: list[str] = []
        repeated = _repeated(names)
        if repeated:
            problems.append(f"role names must differ: {repeated}")

        for role in roles:
            for field, other in (("fallback", role.fallback), ("backup", role.backup)):
                if other == role.name:
                    problems.append(f"role '{role.name}' is its own {field}: name another role")
                elif other is not None and other not in names:
                    problems.append(f"role '{role.name}': {field} {_unknown(other, names)}")

        # A tool may be written twice in one role.
        tools = chain.from_iterable(dict.fromkeys(role.tools) for role in roles)
        shared = _repeated(tools)
        if shared and not info.data.get("share_tools"):
            helps = "give each tool to one role, or set share_tools = true"
            problems.append(f"roles share the tools {shared}: {helps}")
        if problems:
            raise ValueError("; ".join(problems))
        return roles

    @field_validator("generalist", "routes")
    @classmethod
    def _require_known_roles(cls, value: Any, info: ValidationInfo) -> Any:
        names = [role.name for role in info.data.get("roles", [])]
        if not names:  # a role has problems of its own
            return value
        used = [value] if isinstance(value, str) else [route.role for route in value]
        unknown = [_unknown(name, names) for name in used if name not in names]
        if unknown:
            raise ValueError("; ".join(unknown))
        return value

    @field_validator("tools")
    @classmethod
    def _require_distinct_names(cls, tools: list[ToolEntry]) -> list[ToolEntry]:
        repeated = _repeated(tool.name for tool in tools)
        if repeated:
            raise ValueError(f"tool names must differ: {repeated}")
        return tools

    @property
    def named_tools(self) -> list[str]:
        """The names of all tools that roles have, or may get from a plan."""
        names: list[str] = []
        for role in self.roles:
            names += role.tools
        return list(dict.fromkeys([*names, *self.toolbox]))

    @property
    def server_tools(self) -> list[str]:
        """The names of all tools of its MCP servers."""
        names: list[str] = []
        for server_name, server in self.mcp_servers.items():
            names += [server_tool(server_name, tool) for tool in server.tools]
        return names

    def role(self, name: str) -> Role:
        """Returns the role with that name. Raises KeyError if there is none."""
        return {role.name: role for role in self.roles}[name]

    def as_served(self, worker_models: list[str], runs_tools: Callable[[str], bool]) -> "Team":
        """Returns the team without optional tools in roles whose models do not run tools.

        `worker_models` are the models of roles that name none. A role that loses all of its tools
        answers from knowledge.
        """
        optional = {tool.name for tool in self.tools if tool.optional}
        roles = []
        for role in self.roles:
            models = role.model or worker_models
            kept = [tool for tool in role.tools if tool not in optional]
            if kept != role.tools and not all(runs_tools(model) for model in models):
                grounding = role.grounding if kept else "knowledge"
                role = role.model_copy(update={"tools": kept, "grounding": grounding})
            roles.append(role)
        return self.model_copy(update={"roles": roles})


def call_time(timeout_seconds: float | None) -> timedelta:
    """Returns the time for one call of a tool: its own timeout, else the default."""
    return timedelta(seconds=timeout_seconds) if timeout_seconds else limits.TOOL_TIMEOUT


class ToolCard(Model):
    """The part of a tool that a workflow knows, never its schema.

    `searches` are those of one model call, at most.
    """

    name: str
    reads_attachments: bool = False
    outward: bool = False
    timeout_seconds: float | None = None
    searches: Annotated[int, Field(exclude_if=lambda most: not most)] = 0

    @property
    def timeout(self) -> timedelta:
        """The time that one call may take."""
        return call_time(self.timeout_seconds)


class RoleCard(RoleBase):
    """The part of a role that a workflow knows.

    Where `model` cannot be used, the first of `fallback_models` that can takes over.
    """

    tools: list[ToolCard] = []
    model: str
    fallback_models: list[str] = []

    @property
    def reads_attachments(self) -> bool:
        """True if it has a tool that reads them, or may have one in its own team."""
        return self.team is not None or any(tool.reads_attachments for tool in self.tools)

    @property
    def models(self) -> list[str]:
        """All models of the role, in the order of preference."""
        return [self.model, *self.fallback_models]

    def tool(self, name: str) -> ToolCard:
        """The card of a tool; a plain one for a tool that every role has."""
        return next((card for card in self.tools if card.name == name), ToolCard(name=name))


class TeamCard(Model):
    """The part of a team that a workflow knows; prompts and schemas stay in the artifact store."""

    name: str
    generalist: str
    roles: list[RoleCard]
    on_failure: str = ""

    def assignable(self, *, nesting: bool) -> "TeamCard":
        """Returns the card of the roles that subtasks may have: without `nesting` no teams.

        The generalist stays in any case, as it takes the subtasks of unknown roles.
        """
        if nesting:
            return self
        roles = [role for role in self.roles if role.team is None or role.name == self.generalist]
        return self.model_copy(update={"roles": roles})

    def find(self, name: str | None) -> RoleCard | None:
        """Returns the role of that name, None if there is none."""
        for role in self.roles:
            if role.name == name:
                return role
        return None

    def role(self, name: str) -> RoleCard:
        """Returns the role of that name, else the generalist."""
        by_name = {role.name: role for role in self.roles}
        return by_name.get(name) or by_name[self.generalist]


def _unknown(role: str, names: list[str]) -> str:
    listed = one_line(", ".join(names), limits.PARAGRAPH_BYTES)
    return f"{quoted(role)} is not one of the roles: {listed}{did_you_mean(role, names)}"


def _repeated(names: Iterable[str]) -> str:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    return one_line(", ".join(repeated), limits.PARAGRAPH_BYTES)
