"""The policy of tools: whether a call may be run, by the tool's words and by what its agent has read.

It assumes that a model does what the last text that it read asks for. So an agent that has read untrusted text has no
effects without a person, or beyond the targets that its team names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from temporal_supervisor.supervision.base.text import clean, one_line
from temporal_supervisor.supervision.contract.finding import Labels
from temporal_supervisor.supervision.contract.team import Approval, Effects, Reads, Returns, Role, Targets

_CALL_BYTES = 80  # of a call that brought untrusted text: its finding, and all that are made of it, carry it along

Verdict = Literal["allowed", "ask", "refused"]


@dataclass(frozen=True, kw_only=True)
class ToolWords:
    """The words by which a tool is judged.

    `reads` says whose data it shows: `public`, which anybody may know, or `private`. What it `returns` is `trusted`, or
    may hold the words of an attacker. Its `effects` are none (`read`), something that others see (`outward`: a message,
    a search elsewhere), or a change (`write`). `approve` says when a person decides about a call: `never`, `always`, or
    once its agent has read untrusted text (`tainted`, the default of tools with effects). With the values of arguments
    in `targets` such a call needs no person.
    """

    reads: Reads = "private"
    returns: Returns = "trusted"
    effects: Effects = "read"
    approve: Approval | None = None
    targets: Targets = field(default_factory=dict)


def decide(tool: ToolWords, labels: Labels, arguments: object) -> Verdict:
    """Returns whether a call is run, waits for a person, or is refused, in a conversation with these labels."""
    approve = tool.approve or ("never" if tool.effects == "read" else "tainted")
    if approve == "always":
        return "ask"
    harmless = tool.effects == "read" and approve == "never"
    if harmless or not labels.untrusted or _is_aimed(tool.targets, arguments):
        return "allowed"
    return "ask" if approve == "tainted" else "refused"


def is_offered(tool: ToolWords, brief: Labels, read: Labels, definition: object) -> bool:
    """Returns whether a tool that the model's provider runs may stand in a call: its own calls can't be stopped.

    Within one reply they follow on what the tool returned before. So beside private data, which is in what was `read`,
    its results count as read already. Without any, the labels of the brief decide.
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
    """Returns the labels of what a call of the tool shows; `call` is its name with what it was asked."""
    shown = f"{one_line(clean(call.removesuffix(' {}')), _CALL_BYTES)} in {place}"
    return Labels(private=tool.reads == "private", untrusted=shown if tool.returns == "untrusted" else "")


def joined(tools: Mapping[str, ToolWords]) -> str | None:
    """Returns why no role may have these tools together, by their names; None if one may.

    With private data, untrusted text and an effect in one conversation, the text can have the data sent away.
    """
    private = [name for name, tool in tools.items() if tool.reads == "private"]
    untrusted = [name for name, tool in tools.items() if tool.returns == "untrusted"]
    effects = [name for name, tool in tools.items() if tool.effects != "read" and tool.approve != "always"]
    if not (private and untrusted and effects):
        return None
    return (
        f"{private[0]} reads private data, {untrusted[0]} returns untrusted text and {effects[0]} has effects, so that "
        f'a text could have the data sent away: give them to several roles, or set approve = "always" for '
        f"{', '.join(effects)}"
    )


def is_quarantined(role: Role) -> bool:
    """True for a role of which nothing but closed values leaves: one without tools, with such an `output_schema`."""
    return not role.tools and not role.ask and role.output_schema is not None and _is_closed(role.output_schema)


def _is_closed(schema: JsonValue) -> bool:
    """True if all values that fit are the schema's own, numbers, booleans, null or dates, or are made of these."""
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
        return "prefixItems" not in schema and _is_closed(schema.get("items"))
    if kind == "object":
        named = schema.get("properties")
        others = schema.get("additionalProperties") is not False or "patternProperties" in schema
        return not others and isinstance(named, dict) and all(map(_is_closed, named.values()))
    return kind in ("integer", "number", "boolean", "null")
