"""Parts of a request that an endpoint refused: left out from then on.

What a model takes is known by its name (`model_traits`). An endpoint may know less, behind a gateway or by its age. It
says so with 400 before anything is paid; the call is then sent again without that part, within the same attempt. Where
its list of models says so, it is known before the first call.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum

from cachetools import LRUCache

from activities.model.port import Json, ModelFailure
from activities.model.request.model_traits import ModelTraits
from supervision import limits


class Part(StrEnum):
    """A part of a request that can be left out, or be put in another way."""

    THINKING = "thinking"
    EAGER_TOOLS = "eager_input_streaming"
    NOTES = "role 'system'"
    DIAGNOSTICS = "diagnostics"
    EFFORT = "effort"
    STRICT = "strict"
    CACHING = "cache_control"
    SCHEMA = "schema"
    FORMAT = "output_config.format"
    OUTPUT = "max_tokens"


# The API has no error codes for these: its words are all there is. The first that fits decides.
_WORDS: tuple[tuple[Part, re.Pattern[str]], ...] = (
    (Part.OUTPUT, re.compile(r"max_tokens: \d+ > (?P<most>\d+)")),
    (Part.SCHEMA, re.compile(r"too many \w* ?parameters|grammar (compilation|is too large)|schema is too", re.I)),
    (Part.STRICT, re.compile(r"tools\.\d+\.(\w+\.)?strict\b|\bstrict tool", re.I)),
    (Part.EFFORT, re.compile(r"output_config\.effort|\beffort\b")),
    (Part.FORMAT, re.compile(r"output_config(\.format)?\b|\boutput_format\b|structured outputs?\b", re.I)),
    (Part.EAGER_TOOLS, re.compile(r"eager_input_streaming")),
    (Part.DIAGNOSTICS, re.compile(r"\bdiagnostics\b")),
    (Part.CACHING, re.compile(r"\bcache_control\b|prompt caching", re.I)),
    (Part.NOTES, re.compile(r"role[s ].{0,20}\bsystem\b", re.I)),
    (Part.THINKING, re.compile(r": thinking\b|\badaptive thinking\b|\bthinking\.(type|display|adaptive)\b", re.I)),
)  # fmt: skip
# Where the provider's list of models says it of a model: the names of the API's own fields.
_CAPABILITIES: dict[Part, tuple[str, ...]] = {
    Part.FORMAT: ("capabilities", "structured_outputs", "supported"),
    Part.EFFORT: ("capabilities", "effort", "supported"),
    Part.THINKING: ("capabilities", "thinking", "types", "adaptive", "supported"),
}
_ROOM = re.compile(r"exceed context limit: (?P<input>\d+) \+ \d+ > (?P<window>\d+)")


@dataclass(frozen=True)
class Refusals:
    """What was refused of one model's requests, and how many tokens it may write at most, if it said that."""

    parts: frozenset[Part] = frozenset()
    most_output: int | None = None

    @property
    def take_caching(self) -> bool:
        """True if cache breakpoints were not refused."""
        return Part.CACHING not in self.parts

    def applied(self, traits: ModelTraits) -> ModelTraits:
        """Returns the traits without what was refused."""
        return replace(
            traits,
            thinks=traits.thinks and Part.THINKING not in self.parts,
            eager_tools=traits.eager_tools and Part.EAGER_TOOLS not in self.parts,
            notes=traits.notes and Part.NOTES not in self.parts,
            diagnostics=traits.diagnostics and Part.DIAGNOSTICS not in self.parts,
            effort=traits.effort and Part.EFFORT not in self.parts,
            strict_tools=traits.strict_tools and Part.STRICT not in self.parts,
            most_output=self.most_output or traits.most_output,
        )


@dataclass
class RefusedParts:
    """What the endpoint of this process refused, by model; of schemas, which ones."""

    _models: LRUCache[str, Refusals] = field(default_factory=lambda: LRUCache(limits.KNOWN_MODELS))
    _schemas: LRUCache[str, bool] = field(default_factory=lambda: LRUCache(limits.KNOWN_MODELS))

    def of(self, model: str) -> Refusals:
        """Returns what was refused of a model's requests."""
        return self._models.get(model, Refusals())

    def takes_no(self, schema: Json, model: str) -> bool:
        """True if the schema was refused, or the model takes none."""
        return Part.FORMAT in self.of(model).parts or _digest(schema) in self._schemas

    def told(self, model: str, info: object) -> None:
        """Learns what the endpoint's list of models says: whatever a compatible server puts there."""
        missing = denied(info)
        if Part.FORMAT in missing:
            missing.add(Part.STRICT)
        most, known = _read(info, ("max_tokens",)), self.of(model)
        stated = most if type(most) is int and most >= limits.LEAST_OUTPUT_TOKENS else None
        self._models[model] = replace(known, parts=known.parts | missing, most_output=known.most_output or stated)

    def learn(self, model: str, schema: Json | None, failure: ModelFailure) -> bool:
        """Returns True if the failure says which part to leave out, and that is news."""
        part, match = _refused(failure)
        if part is None or match is None:
            return False
        known = self.of(model)
        if part is Part.SCHEMA:
            digest = _digest(schema) if schema is not None else None
            news = digest is not None and digest not in self._schemas
            if digest is not None:
                self._schemas[digest] = True
            return news
        if part is Part.OUTPUT:
            learned = replace(known, most_output=int(match["most"]))
        else:
            learned = replace(known, parts=known.parts | {part})
        self._models[model] = learned
        return learned != known


def room_left(failure: ModelFailure) -> int | None:
    """Returns how many tokens a reply may have beside this prompt, if the endpoint says so; None otherwise."""
    match = _ROOM.search(failure.message)
    return int(match["window"]) - int(match["input"]) if match else None


def denied(info: object) -> set[Part]:
    """Returns the parts that a model can't take, as the endpoint's list of models says."""
    return {part for part, path in _CAPABILITIES.items() if _read(info, path) is False}


def _read(info: object, path: tuple[str, ...]) -> object:
    for name in path:
        info = info.get(name) if isinstance(info, dict) else getattr(info, name, None)
    return info


def _refused(failure: ModelFailure) -> tuple[Part | None, re.Match[str] | None]:
    if failure.status not in (400, 422):
        return None, None
    hits = ((part, words.search(failure.message)) for part, words in _WORDS)
    return next(((part, match) for part, match in hits if match), (None, None))


def _digest(schema: Json) -> str:
    return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()
