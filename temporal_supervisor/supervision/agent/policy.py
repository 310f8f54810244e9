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
from temporal_supervisor.supervision.contract.team import Approval, Effects, Reads, Returns, Role, Targets

_CLOSED_NUMBER = 10**15  # above, a number has the digits of a sentence
_CLOSED_ITEMS = 20  # of a list, and of no list in it
# Of a call that brought untrusted text: its finding, and all that are made of it, carry it along.
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
    """Returns the decision on a call in a conversation with these labels.

    It is run, waits for a person, or is refused.
    """
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
    """True if private data were read that this server did not give itself."""
    return labels.private and labels.home != server


def is_offered(tool: ToolWords, brief: Labels, read: Labels, definition: object) -> bool:
    """True if a call may offer a tool that the provider runs: its own calls can't be stopped.

    Within one reply they follow on what the tool returned before. So beside private data, which is
    in what was `read`, its results count as read already. Without any, the labels of the brief
    decide.
    """
    follows = read.private and tool.returns == "untrusted"
    return decide(tool, Labels(untrusted=brief.untrusted or "its own results" * follows), definition) == "allowed"


def _is_aimed(targets: Targets, arguments: object) -> bool:
    if not targets or not isinstance(arguments, dict):
        return False
    given = {name: _values(arguments[name]) for name in targets if name in arguments}
    return all(name in given and given[name] <= set(map(_canonical, allowed)) for name, allowed in targets.items())


def _values(argument: object) -> set[str]:
    return {_canonical(one) for one in (argument if isinstance(argument, list) and argument else [argument])}


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)  # Python takes 1 and true for the same


def labels_of(tool: ToolWords, call: str, place: str) -> Labels:
    """Returns the labels of what a call of the tool shows.

    `call` is its name with what it was asked.
    """
    shown = f"{one_line(clean(call.removesuffix(' {}')), _CALL_BYTES)} in {place}"
    private = tool.reads == "private"
    home = tool.server if private else ""
    return Labels(private=private, untrusted=shown if tool.returns == "untrusted" else "", home=home)


def joined(tools: Mapping[str, ToolWords]) -> str | None:
    """Returns the reason why no role may have these tools together; None if one may.

    With private data, untrusted text and an effect in one conversation, the text can have the data
    sent away.
    """
    untrusted = [name for name, tool in tools.items() if tool.returns == "untrusted"]
    free = [name for name, tool in tools.items() if tool.leaves and tool.approve != "always"]
    carried = {name: _private_beside(tools[name], tools) for name in free}
    effects = {name: private for name, private in carried.items() if private}
    if not (untrusted and effects):
        return None
    first, private = next(iter(effects.items()))
    acts = "sends queries away" if tools[first].is_query else "has effects"
    return (
        f"{private} reads private data, {untrusted[0]} returns untrusted text and {first} {acts}, so that "
        f'a text could have the data sent away: give them to several roles, or set approve = "always" for '
        f"{', '.join(effects)}"
    )


def _private_beside(tool: ToolWords, tools: Mapping[str, ToolWords]) -> str:
    """Returns the first tool with private data that a call of this one could carry away.

    Empty without any.
    """
    own = tool.server if tool.is_query else None  # what a server has said may be asked of it again
    return next((name for name, other in tools.items() if other.reads == "private" and other.server != own), "")


def is_quarantined(role: Role) -> bool:
    """True for a role of which nothing but closed values leaves: one without tools, with such an `output_schema`."""
    return not role.tools and not role.ask and role.output_schema is not None and _is_closed(role.output_schema)


def _is_closed(schema: JsonValue) -> bool:
    """True if all values that fit are the schema's own, booleans, null, dates, numbers of few digits, or few of these.

    A long number is a text in digits, and so is a long list of single letters.
    """
    if not isinstance(schema, dict):
        return False
    if "enum" in schema or "const" in schema:
        return True
    kinds = schema.get("type")
    return bool(kinds) and all(_is_closed_as(kind, schema) for kind in (kinds if isinstance(kinds, list) else [kinds]))


def _is_closed_as(kind: JsonValue, schema: dict[str, JsonValue]) -> bool:
    if kind == "string":
        return schema.get("format") == "date"
    if kind == "array":
        items = schema.get("items")
        is_short = _is_within(schema.get("maxItems"), _CLOSED_ITEMS)
        return is_short and "prefixItems" not in schema and not _has_lists(items) and _is_closed(items)
    if kind in ("integer", "number"):
        return all(_is_within(schema.get(bound), _CLOSED_NUMBER) for bound in ("minimum", "maximum"))
    if kind == "object":
        named = schema.get("properties")
        others = schema.get("additionalProperties") is not False or "patternProperties" in schema
        return not others and isinstance(named, dict) and all(map(_is_closed, named.values()))
    return kind in ("boolean", "null")


def _is_within(bound: JsonValue, most: int) -> bool:
    return isinstance(bound, (int, float)) and not isinstance(bound, bool) and abs(bound) <= most


def _has_lists(schema: JsonValue) -> bool:
    """True if a list stands anywhere in what a schema takes: lists of lists multiply."""
    if isinstance(schema, list):
        return any(map(_has_lists, schema))
    return isinstance(schema, dict) and ("maxItems" in schema or any(map(_has_lists, schema.values())))
