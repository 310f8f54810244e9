"""The request of a run, validated and bounded."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from fractions import Fraction
from types import NoneType
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.text import cut, did_you_mean, one_line, size
from temporal_supervisor.supervision.contract.base import (
    Duration,
    StrictModel,
    Undecodable,
    depth_exceeds,
)
from temporal_supervisor.supervision.contract.model_choice import Effort, ModelChain, OutputTokens
from temporal_supervisor.supervision.contract.plan import NewRole, Plan, Subtask, WrittenPlan
from temporal_supervisor.supervision.contract.strategy import StrategyName
from temporal_supervisor.supervision.contract.team import Team

REQUEST_BYTES = 200 * limits.KIB  # the start event must stay below PAYLOAD_HARD_BYTES
# JSON in JSON: parsers give up at 200, and a request is nested in other objects.
REQUEST_DEPTH = 100
# Inline text travels in the start event; longer ones go by `starter.py put`.
ATTACHMENT_TEXT_BYTES = 16 * limits.KIB

_FRACTION = re.compile(r"\d{1,9}/\d{1,9}|\d{0,9}\.?\d{1,20}", re.ASCII)
_SHOWN_NAME_CHARS = 64  # of an item that is wrong: a longer one would hide the field behind it
_OWNER_BYTES = 200  # databases that lists are kept in take 255
_Label = Annotated[str, Field(max_length=200)]
_RunId = Annotated[str, Field(min_length=1, max_length=1000)]
_DURATION = 'must be a duration such as "30m" or "PT30M", or a number of seconds'


def _bounded(time: timedelta) -> timedelta:
    if not timedelta(seconds=1) <= time <= limits.MAX_DEADLINE:
        raise ValueError(f"must be from 1 second to {limits.MAX_DEADLINE.days} days")
    return time


_Time = Annotated[Duration, AfterValidator(_bounded)]


class Budget(StrictModel):
    """Totals for the whole tree of a run; None means no limit of that kind."""

    tokens: Annotated[int, Field(ge=1, le=limits.MAX_BUDGET_TOKENS)] | None = 1_000_000
    usd: Annotated[float, Field(gt=0, le=limits.MAX_BUDGET_USD, allow_inf_nan=False)] | None = 5.0


class Models(StrictModel):
    """Models that override the defaults, each a name or a fallback chain.

    Roles may still name their own. `roles` has models by role name, which override the team's.
    """

    supervisor: ModelChain | None = None
    workers: ModelChain | None = None
    roles: Annotated[
        dict[_Label, ModelChain],
        Field(max_length=limits.TEAM_ROLES, exclude_if=lambda roles: not roles),
    ] = {}


class Attachment(StrictModel):
    """Text or data that worker agents may read: inline, or stored before by the command `put`.

    A stored folder has the media type that `put` prints; any other type is a hint for people. One
    that is not `trusted` was written by others: all data of the run are untrusted then, whatever
    the team says of its own.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    text: str | None = None
    ref: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    media_type: Annotated[str, Field(max_length=200)] | None = None
    trusted: bool = True

    @model_validator(mode="after")
    def _one_source(self) -> "Attachment":
        if (self.text is None) == (self.ref is None):
            raise ValueError(f"attachment '{self.name}' needs exactly one of text and ref")
        if self.text is not None and size(self.text) > ATTACHMENT_TEXT_BYTES:
            problem = f"has more than {ATTACHMENT_TEXT_BYTES} bytes of text"
            advice = "store it with the command `put` and pass ref"
            raise ValueError(f"attachment '{self.name}' {problem}: {advice}")
        return self


class RunRequest(StrictModel):
    """All fields but `goal` are optional; bounds and defaults as in docs/reference.md.

    Without a `team` a run takes the one that its Worker was set up with. Findings of the runs in
    `reuse_from` are taken where their recipe is the same; a run has the attached texts of the first
    of them beside its own, and its files if it brings none.
    """

    goal: str
    team: str | Team | None = None
    strategy: StrategyName = "auto"
    approve_plan: bool = False
    approval_timeout: _Time = timedelta(days=7)
    on_approval_timeout: Literal["reject", "approve"] = "reject"
    max_subtasks: Annotated[int, Field(ge=1, le=limits.MAX_SUBTASKS)] = 12
    max_parallel: Annotated[int, Field(ge=1, le=limits.MAX_PARALLEL)] = 8
    max_turns: Annotated[int, Field(ge=1, le=limits.MAX_TURNS)] = 10
    max_depth: Annotated[int, Field(ge=1, le=limits.MAX_DEPTH)] = 2
    max_reviews: Annotated[int, Field(ge=0, le=20)] = 3
    max_replans: Annotated[int, Field(ge=0, le=20)] = 2
    plan: WrittenPlan | None = None
    subtask_timeout: _Time | None = None
    max_tokens: OutputTokens | None = None
    on_subtask_failure: Literal["gap", "ask"] = "gap"
    on_no_answer: Literal["fail", "answer"] = "fail"
    deadline: _Time = timedelta(minutes=30)
    budget: Budget = Budget()
    success: str | float = "any"
    incremental_synthesis: Annotated[int, Field(ge=0, le=limits.MAX_SUBTASKS)] = 0
    models: Models = Models()
    effort: Effort | None = None
    reuse_from: Annotated[list[_RunId], Field(max_length=limits.REUSED_RUNS)] = []
    answer_schema: dict[str, Any] | None = None
    attachments: Annotated[list[Attachment], Field(max_length=limits.ATTACHMENTS)] = []
    metadata: Annotated[dict[_Label, _Label], Field(max_length=16)] = {}

    @field_validator("team", mode="before")
    @classmethod
    def _team(cls, team: object) -> object:
        # Only the complaints about an object, not that it is no name either.
        if isinstance(team, dict):
            return Team.model_validate(team)
        if not isinstance(team, (str, Team, NoneType)):
            raise ValueError("must be a name or a team object")
        return team

    @property
    def team_name(self) -> str:
        """The name of the team, named or inline; empty if the Worker chooses it."""
        if self.team is None:
            return ""
        return self.team if isinstance(self.team, str) else self.team.name

    @property
    def owner(self) -> str:
        """The owner that the caller claims; empty without one."""
        return one_line(self.metadata.get("owner", ""), _OWNER_BYTES)

    @property
    def data_from_others(self) -> bool:
        """True if some of the data was written by others."""
        return any(not attachment.trusted for attachment in self.attachments)

    def without_content(self) -> "RunRequest":
        """Returns the request without stored content.

        The goal is cut, the team is a name, and attachments and schema are left out.
        """
        shown = cut(self.goal, limits.SUMMARY_BYTES)
        changed: dict[str, Any] = {
            "goal": shown,
            "team": self.team_name or None,
            "answer_schema": None,
            "attachments": [],
        }
        return self.model_copy(update=changed)

    @field_validator("reuse_from")
    @classmethod
    def _distinct_runs(cls, runs: list[str]) -> list[str]:
        return list(dict.fromkeys(runs))

    @field_validator("goal")
    @classmethod
    def _goal(cls, goal: str) -> str:
        if not goal.strip():
            raise ValueError("the goal is empty: say what the run should find out or produce")
        if size(goal) > limits.GOAL_BYTES:
            problem = f"the goal has more than {limits.GOAL_BYTES} bytes"
            raise ValueError(f"{problem}: pass long text as an attachment")
        return goal

    @field_validator("success", mode="before")
    @classmethod
    def _success(cls, value: object) -> object:
        success_fraction(value)
        return value

    @model_validator(mode="after")
    def _whole(self) -> "RunRequest":
        names = [attachment.name for attachment in self.attachments]
        if len(set(names)) < len(names):
            raise ValueError("attachment names must differ")
        try:
            total = size(self.model_dump_json())
        except ValueError:
            raise ValueError("it contains an unpaired surrogate, or is nested too deeply") from None
        if total > REQUEST_BYTES:
            advice = "`put` attachments, keep a large team in a team file"
            raise ValueError(f"it has more than {REQUEST_BYTES} bytes: {advice}")
        return self


def success_fraction(value: object) -> Fraction | None:
    """Returns the required share of subtasks: None for `any`, 1 for `all`, 2/3 for "2/3".

    Raises ValueError for anything outside (0, 1].
    """
    if value == "any":
        return None
    share = Fraction(value == "all")
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # "1e-999999999" takes all memory.
    if is_number or (isinstance(value, str) and _FRACTION.fullmatch(value.strip())):
        with suppress(ValueError, ZeroDivisionError):
            share = Fraction(str(value))  # the digits of a float: 0.1 means 1/10
    if not 0 < share <= 1:
        fraction = 'a fraction above 0 and at most 1 such as "2/3" or 0.5'
        raise ValueError(f'must be "any", "all", or {fraction}')
    return share


def parse_request(value: object, surplus: tuple[object, ...] = ()) -> RunRequest:
    """Returns the request in a run's raw input.

    Raises SupervisionError `InvalidRequest`, whose message lists the problems.
    """
    problem = _input_problem(value, surplus)
    try:
        if not problem:
            return RunRequest.model_validate(value)
    except ValidationError as error:
        problem = describe_errors(error, value=value)
    raise invalid_request(problem)


def invalid_request(problem: str) -> SupervisionError:
    """Returns the error for a request with this problem."""
    return SupervisionError(ErrorKind.INVALID_REQUEST, problem)


def _input_problem(value: object, surplus: tuple[object, ...]) -> str:
    """Returns the reason why the input is no request at all; "" if it may be one."""
    if surplus:
        return f"a run takes one input, {1 + len(surplus)} were given: put all fields in one object"
    if value is None:
        return 'no input: pass an object such as {"goal": "..."}'
    if isinstance(value, Undecodable):
        problem = f"the input can't be decoded ({value.reason})"
        return f"{problem}: pass an object in UTF-8 JSON, encoding json/plain"
    if not isinstance(value, (dict, RunRequest)):
        kind = type(value).__name__
        return f'the input must be an object such as {{"goal": "..."}}, not of type {kind}'
    if isinstance(value, dict) and depth_exceeds(value, REQUEST_DEPTH):
        return f"the request is nested too deeply: at most {REQUEST_DEPTH} levels"
    return ""


def describe_errors(error: ValidationError, root: str = "request", value: object = None) -> str:
    """Returns the lines of `complaint_lines` joined into one, of at most ERROR_BYTES."""
    return cut("; ".join(complaint_lines(error, root, value)), limits.ERROR_BYTES)


def complaint_lines(
    error: ValidationError,
    root: str = "request",
    value: object = None,
    shown: Callable[[Sequence[str]], str] = ".".join,
) -> list[str]:
    """Returns a line for each error, with its place in the form that `shown` gives it.

    An error about all fields is attributed to `root`. Items of lists in the validated `value` are
    shown by their `name`, if they have one.
    """
    lines: list[str] = []
    errors = error.errors(include_url=False, include_input=False)  # of perhaps 100,000
    for item in errors[: limits.FIELD_COMPLAINTS]:
        where = one_line(shown([*_named(item["loc"], value)] or [root]), limits.LINE_BYTES)
        complaint = _complaint(item["type"], item["msg"])
        if item["type"] == "extra_forbidden":
            known = _fields(StrictModel, Plan, Subtask, NewRole)
            complaint += did_you_mean(str(item["loc"][-1]), known)
        lines.append(f"{where}: {one_line(complaint, limits.PARAGRAPH_BYTES)}")

    more = error.error_count() - len(lines)
    if more > 0:
        lines.append(f"and {more} more")
    return lines


def _named(location: tuple[int | str, ...], value: Any) -> Iterator[str]:
    """Yields the parts of an error's place, with an item of a list by its `name` if it has one."""
    for part in location:
        try:
            value = value[part]
        except (LookupError, TypeError):
            value = None
        name = value.get("name") if isinstance(part, int) and isinstance(value, dict) else None
        yield name if isinstance(name, str) and len(name) <= _SHOWN_NAME_CHARS else str(part)


def _fields(*kinds: type[BaseModel]) -> set[str]:
    """Returns the names of all fields of these models, and of the models nested in them."""
    names: set[str] = set()
    for kind in kinds:
        names.update(kind.model_fields)
        names |= _fields(*kind.__subclasses__())
    return names


_PLAIN_WORDS: Mapping[str, str] = {
    "extra_forbidden": "unknown field",
    "bool_parsing": "must be true or false",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
}
"""Of kinds of errors the words that people read in place of the library's."""


def _complaint(error_type: str, message: str) -> str:
    """Returns the message of an error in words for people."""
    if error_type == "string_too_short" and message.endswith("least 1 character"):
        return "must not be empty"
    if error_type in _PLAIN_WORDS:
        return _PLAIN_WORDS[error_type]
    if error_type.startswith("time_delta_"):
        return _DURATION
    return message.removeprefix("Value error, ")
