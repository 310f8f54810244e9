"""The policy of tools: whether a call may be run, by the tool's words and by what its agent has read.

It assumes that a model does what the last text that it read asks for. So an agent that has read
untrusted text has no effects without a person, or beyond the targets that its team names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from temporal_supervisor.supervision.base.text import clean, one_line
from temporal_supervisor.supervision.contract.finding import Labels
from temporal_supervisor.supervision.contract.team import (
    Approval,
    Effects,
    Reads,
    Returns,
    Role,
    Targets,
)

_CLOSED_NUMBER = 10**15  # above, a number has the digits of a sentence
_CLOSED_ITEMS = 20  # of a list, and of no list in it
# Of a call that returned untrusted text: findings that are made of it carry these words along.
_CALL_BYTES = 80

Verdict = Literal["allowed", "ask", "refused"]


@dataclass(frozen=True, kw_only=True)
class ToolWords:
    """The words by which a tool is judged.

    `reads` says whose data it shows: `public`, which anybody may know, or `private`. What it
    `returns` is `trusted`, or may hold the words of an attacker. Its `effects` are none (`read`),
    something that others see (`outward`: a message, a search elsewhere), or a change (`write`).
    `approve` says when a person decides about a call: `never`, `always`, or once its agent has read
    untrusted text (`tainted`, the default of tools with effects). With the values of arguments in
    `targets` such a call needs no person.

    A tool of a `server` elsewhere is outward even if it only reads: its queries leave. They carry
    nothing away as long as no private data was read but that server's own.
    """

    reads: Reads = "private"
    returns: Returns = "trusted"
    effects: Effects = "read"
    approve: Approval | None = None
    targets: Targets = field(default_factory=dict)
    server: str = ""

    @property
    def is_query(self) -> bool:
        """True if its calls change nothing, and leave with what is in them."""
        return self.effects == "read" and bool(self.server)

    @property
    def leaves(self) -> bool:
        """True if others may see a call, or what it does."""
        return self.effects != "read" or self.is_query


def decide(tool: ToolWords, labels: Labels, arguments: object) -> Verdict:
    """Returns the decision on a call in a conversation with these labels."""
    approve = tool.approve or ("tainted" if tool.leaves else "never")
    if approve == "always":
        return "ask"
    harmless = not tool.leaves and approve == "never"
    if harmless or not labels.untrusted or _is_aimed(tool.targets, arguments):
        return "allowed"
    if tool.is_query and tool.approve != "tainted" and not _has_secrets_from(labels, tool.server):
        return "allowed"
    return "ask" if approve == "tainted" else "refused"


def _has_secrets_from(labels: Labels, server: str) -> bool:
    """True if the conversation has private data that did not come from this server."""
    return labels.private and labels.home != server


def is_offered(tool: ToolWords, brief: Labels, read: Labels, definition: object) -> bool:
    """True if a call may offer a tool that the provider runs: its own calls can't be stopped.

    Within one reply the provider may call the tool again after it saw the first results. So once
    private data was `read`, its results count as read already. Else the labels of the brief decide.
    """
    untrusted = brief.untrusted
    if not untrusted and read.private and tool.returns == "untrusted":
        untrusted = "its own results"
    return decide(tool, Labels(untrusted=untrusted), definition) == "allowed"


def _is_aimed(targets: Targets, arguments: object) -> bool:
    """True if a call has every argument in `targets`, each with nothing but allowed values."""
    if not targets or not isinstance(arguments, dict):
        return False
    for name, allowed in targets.items():
        if name not in arguments:
            return False
        if not _values(arguments[name]) <= set(map(_canonical, allowed)):
            return False
    return True


def _values(argument: object) -> set[str]:
    """Returns the values of an argument: the items of a list, else the argument itself."""
    several = isinstance(argument, list) and bool(argument)
    items = argument if isinstance(argument, list) and several else [argument]
    return set(map(_canonical, items))


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)  # in Python 1 == True, in JSON they differ


def labels_of(tool: ToolWords, call: str, place: str) -> Labels:
    """Returns the labels of the output of a call; `call` is the tool's name with its arguments."""
    private = tool.reads == "private"
    home = tool.server if private else ""
    untrusted = ""
    if tool.returns == "untrusted":
        without_empty_arguments = call.removesuffix(" {}")
        untrusted = f"{one_line(clean(without_empty_arguments), _CALL_BYTES)} in {place}"
    return Labels(private=private, untrusted=untrusted, home=home)


def why_not_together(tools: Mapping[str, ToolWords]) -> str | None:
    """Returns the reason why no role may have these tools together; None if one may.

    With private data, untrusted text and an effect in one conversation, the text can have the data
    sent away.
    """
    untrusted = [name for name, tool in tools.items() if tool.returns == "untrusted"]
    # Tools that could carry private data away without a person, each with a tool that reads it.
    carriers: dict[str, str] = {}
    for name, tool in tools.items():
        private = _private_beside(tool, tools)
        if private and tool.leaves and tool.approve != "always":
            carriers[name] = private
    if not untrusted or not carriers:
        return None
    first, private = next(iter(carriers.items()))
    acts = "sends queries away" if tools[first].is_query else "has effects"
    return (
        f"{private} reads private data, {untrusted[0]} returns untrusted text and {first} {acts}, "
        f"so that a text could have the data sent away: give them to several roles, "
        f'or set approve = "always" for {", ".join(carriers)}'
    )


def _private_beside(tool: ToolWords, tools: Mapping[str, ToolWords]) -> str:
    """Returns the first tool whose private data a call of this one could carry away; else ""."""
    # A server may be asked about its own data again.
    own_server = tool.server if tool.is_query else None
    for name, other in tools.items():
        if other.reads == "private" and other.server != own_server:
            return name
    return ""


def is_quarantined(role: Role) -> bool:
    """True for a role without tools and questions whose `output_schema` has only closed values."""
    if role.tools or role.ask or role.output_schema is None:
        return False
    return _is_closed(role.output_schema)


def _is_closed(schema: JsonValue) -> bool:
    """True if no value that fits a schema can hold a text.

    Such values are the schema's own, booleans, null, dates, numbers of few digits, and short lists
    of these. A long number could be a text in digits, and a long list one of single letters.
    """
    if not isinstance(schema, dict):
        return False
    if "enum" in schema or "const" in schema:
        return True
    kinds = schema.get("type")
    if not kinds:
        return False
    several = kinds if isinstance(kinds, list) else [kinds]
    return all(_is_closed_as(kind, schema) for kind in several)


def _is_closed_as(kind: JsonValue, schema: dict[str, JsonValue]) -> bool:
    if kind == "string":
        return schema.get("format") == "date"
    if kind == "array":
        items = schema.get("items")
        is_short = _is_within(schema.get("maxItems"), _CLOSED_ITEMS)
        is_flat = "prefixItems" not in schema and not _has_lists(items)
        return is_short and is_flat and _is_closed(items)
    if kind in ("integer", "number"):
        return all(_is_within(schema.get(bound), _CLOSED_NUMBER) for bound in ("minimum", "maximum"))
    if kind == "object":
        allows_others = schema.get("additionalProperties") is not False
        if allows_others or "patternProperties" in schema:
            return False
        named = schema.get("properties")
        return isinstance(named, dict) and all(map(_is_closed, named.values()))
    return kind in ("boolean", "null")


def _is_within(bound: JsonValue, most: int) -> bool:
    return isinstance(bound, (int, float)) and not isinstance(bound, bool) and abs(bound) <= most


def _has_lists(schema: JsonValue) -> bool:
    """True if a schema takes a list at any depth: lists of lists multiply."""
    if isinstance(schema, list):
        return any(map(_has_lists, schema))
    if not isinstance(schema, dict):
        return False
    return "maxItems" in schema or any(map(_has_lists, schema.values()))
