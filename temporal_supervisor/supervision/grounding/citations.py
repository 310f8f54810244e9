"""Citations of an answer, by marks such as [t3]: each is checked against its findings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.sentences import SENTENCE_END
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.result import Citation
from temporal_supervisor.supervision.grounding.claim_lookup import Found, looked_up
from temporal_supervisor.supervision.grounding.claims import Claim, claims
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import Support
from temporal_supervisor.supervision.grounding.units import declared_scales
from temporal_supervisor.supervision.grounding.wording.near_words import Near

# "[t1]", "[t1, t2]"; not the text of a link, "[t1](https://...)".
MARK = re.compile(r" ?\[([\w./-]{1,64}(?:, ?[\w./-]{1,64}){0,20})\](?!\()")
_AROUND_CLAIM = " .;,-*|#>。"
_BETWEEN_MARKS = " ,;"


class CitedFindings:
    """The texts of findings by subtask; `others`, a draft or digests, replace missing texts."""

    def __init__(self, texts: Mapping[str, str], others: Sequence[str] = ()) -> None:
        self._texts = texts
        self._others = others
        self._supports: dict[str, Support] = {}
        self._scales = frozenset[Decimal]().union(*map(declared_scales, self.texts))

    @property
    def texts(self) -> list[str]:
        """All texts."""
        return [*self._texts.values(), *self._others]

    def support(self, subtask_id: str) -> Support:
        """Returns the text of a finding as it supports claims."""
        key = subtask_id if subtask_id in self._texts else ""
        if key not in self._supports:
            own = [self._texts[key]] if key else self._others
            # One finding may name the scale of amounts in another one.
            self._supports[key] = Support([Source(text) for text in own], self._scales)
        return self._supports[key]

    def lacking(self, claim: str, subtask_ids: Sequence[str]) -> list[Claim]:
        """Returns the figures, quotations and addresses of a claim that these findings lack."""
        finder = _Cited([self.support(subtask_id) for subtask_id in subtask_ids])
        made = claims(claim, self._texts)
        return [each for each, found in looked_up(made, claim, finder) if not found]

    def citations(self, text: str, completed: set[str]) -> Iterator[Citation]:
        """Yields the citations of a text that hold: each a statement with the marks after it."""
        for statement, ids in _marked(text, completed):
            # A hostile one may be the whole answer.
            claim = one_line(statement, limits.SENTENCE_BYTES)
            if not self.lacking(claim, ids):
                yield Citation(claim=claim, subtask_ids=ids)

    def miscited(
        self,
        text: str,
        completed: set[str],
        given: Sequence[str],
    ) -> dict[str, list[str]]:
        """Returns the claims beside marks that are neither in the findings marked nor in `given`.

        Each comes with the ids of its marks.
        """
        stated = Support([Source(ground) for ground in given])
        found: dict[str, list[str]] = {}
        for statement, ids in _marked(text[: limits.GROUNDED_CHARS], completed):
            for claim in self.lacking(statement, ids):
                if not stated.supports(claim):
                    found[claim.text] = ids
        return found


class _Cited:
    """The findings that a statement cites."""

    def __init__(self, supports: Sequence[Support]) -> None:
        self._supports = supports

    def find(self, claim: Claim) -> Found | None:
        """Returns the place of a claim in the first finding that has it; None if none has."""
        for support in self._supports:
            found = support.find(claim)
            if found:
                return found
        return None

    def mixed(self, calculation: str, near: Near) -> str:
        """Returns the reason not to calculate these figures with each other; empty without one."""
        for support in self._supports:
            reason = support.mixed(calculation, near)
            if reason:
                return reason
        return ""


def with_valid_marks(text: str, planned: set[str], completed: set[str]) -> str:
    """Returns an answer without marks such as [t3] of subtasks that may not be cited.

    Brackets with other contents stay.
    """

    def valid(match: re.Match[str]) -> str:
        ids = _ids(match)
        if not set(ids) <= planned:
            return match[0]
        cited = [subtask_id for subtask_id in ids if subtask_id in completed]
        if not cited:
            return ""
        space = " " if match[0].startswith(" ") else ""
        return f"{space}[{', '.join(cited)}]"

    return MARK.sub(valid, text)


def _ids(match: re.Match[str]) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in match[1].split(",")))


def _marked(text: str, completed: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Yields each statement that marks follow, with the ids of all its marks, as in [t1][t2]."""
    statement = ""
    cited: list[str] = []
    start = 0
    for match in MARK.finditer(text):
        ids = _ids(match)
        if not set(ids) <= completed:
            continue
        before = text[start : match.start()]
        start = match.end()
        claim = SENTENCE_END.split(before)[-1].strip(_AROUND_CLAIM)
        if claim:
            if statement:
                yield statement, cited
            statement = claim
            cited = ids
        elif not before.strip(_BETWEEN_MARKS):
            cited += ids
    if statement:
        yield statement, cited
