"""The policy of tools: the decision whether a call may be run.

It depends on the tool's labels and on the texts that its agent has read. The assumption is that a
model obeys the last text that it read. So an agent that has read untrusted text has no effects
without a person's approval, except on the targets that its team names.
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
    """The labels by which a tool is judged.

    It `reads` `public` data, which anybody may know, or `private` data. It `returns` `trusted`
    text, or `untrusted` text that an attacker may have written. Its `effects` are none (`read`),
    visible to others (`outward`: a message, a search elsewhere) or a change (`write`). A person
    decides about a call according to `approve`: `never`, `always`, or `tainted`, once its agent has
    read untrusted text; that is the default of tools with effects. A call whose arguments are among
    the `targets` needs no person. A tool of a `server` elsewhere is outward even if it only reads,
    because its queries leave. They carry nothing away as long as the only private data read came
    from that server.
    """

    reads: Reads = "private"
    returns: Returns = "trusted"
    effects: Effects = "read"
    approve: Approval | None = None
    targets: Targets = field(default_factory=dict)
    server: str = ""

    @property
    def is_query(self) -> bool:
        """True if calls change nothing, but their arguments leave this machine."""
        return self.effects == "read" and bool(self.server)

    @property
    def leaves(self) -> bool:
        """True if others may see a call or its effects."""
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
    """True if a conversation has private data from elsewhere than `server`."""
    return labels.private and labels.home != server


def is_offered(tool: ToolWords, brief: Labels, read: Labels, definition: object) -> bool:
    """True if a model call may offer a tool that the provider runs.

    Such calls cannot be stopped: within one reply the provider may call the tool again after the
    model saw the first results. So once private data was `read`, the tool's results count as read
    already; before that the labels of the brief decide.
    """
    untrusted = brief.untrusted
    if not untrusted and read.private and tool.returns == "untrusted":
        untrusted = "its own results"
    return decide(tool, Labels(untrusted=untrusted), definition) == "allowed"


def _is_aimed(targets: Targets, arguments: object) -> bool:
    """True if every argument in `targets` is set, and only to allowed values."""
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
    """Returns the labels of a call's output; `call` is the tool's name with its arguments."""
    private = tool.reads == "private"
    home = tool.server if private else ""
    untrusted = ""
    if tool.returns == "untrusted":
        without_empty_arguments = call.removesuffix(" {}")
        untrusted = f"{one_line(clean(without_empty_arguments), _CALL_BYTES)} in {place}"
    return Labels(private=private, untrusted=untrusted, home=home)


def why_not_together(tools: Mapping[str, ToolWords]) -> str | None:
    """Returns the reason why no role may combine these tools; None if one may.

    If private data, untrusted text and an effect meet in one conversation, the text can have the
    data sent away.
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
    """Returns the first tool whose private data a call of `tool` could carry away; "" if none."""
    # A server may be asked about its own data again.
    own_server = tool.server if tool.is_query else None
    for name, other in tools.items():
        if other.reads == "private" and other.server != own_server:
            return name
    return ""


def is_quarantined(role: Role) -> bool:
    """True for a role without tools whose `output_schema` allows only closed values."""
    if role.tools or role.ask or role.output_schema is None:
        return False
    return _is_closed(role.output_schema)


def _is_closed(schema: JsonValue) -> bool:
    """True if no value that fits the schema can contain a free text.

    Closed values are the schema's constants, booleans, null, dates, numbers of few digits, and
    short lists of these. A long number could encode a text in its digits, and a long list could
    spell one.
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
        bounds = (schema.get("minimum"), schema.get("maximum"))
        return all(_is_within(bound, _CLOSED_NUMBER) for bound in bounds)
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
    """True if a schema allows a list at any depth: lists of lists multiply."""
    if isinstance(schema, list):
        return any(map(_has_lists, schema))
    if not isinstance(schema, dict):
        return False
    return "maxItems" in schema or any(map(_has_lists, schema.values()))
