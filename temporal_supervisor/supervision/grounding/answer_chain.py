"""The chain from a claim of an answer to its sources: findings, and the tool outputs behind."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Literal

from pydantic import JsonValue

from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.finding import (
    CheckedClaim,
    Evidence,
    FindingRecord,
    QueryFacts,
)
from temporal_supervisor.supervision.contract.result import Citation
from temporal_supervisor.supervision.grounding.answer_fields import field_claims
from temporal_supervisor.supervision.grounding.citations import CitedFindings
from temporal_supervisor.supervision.grounding.claim_lookup import CALCULATION, Found, looked_up
from temporal_supervisor.supervision.grounding.claims import Claim, claims, without_quotes
from temporal_supervisor.supervision.grounding.naming.names import KnownWords, unknown_names
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import Support
from temporal_supervisor.supervision.grounding.wording.near_words import Near

_REST = "the goal or the plan"
_KNOWLEDGE = "the model's own knowledge, which is not checked"


class Link(Model):
    """A claim of an answer, with the ids of findings and the tool calls whose outputs have it.

    `elsewhere` names another origin of a claim: the goal, a brief, a model's own knowledge. If it
    is `recalled` it comes from that knowledge alone: it has no problem that code can see, and
    nothing was compared with it. A citation holds by the findings that it names.
    """

    kind: Literal["figure", "quotation", "address", "name", "citation"]
    text: str
    findings: list[str] = []
    outputs: list[Evidence] = []
    elsewhere: str = ""
    problem: str = ""
    recalled: bool = False


class Grounded(FindingRecord):
    """A finding as the store has it: its text, and its tool calls with their outputs.

    No output proves a claim that was without support when the finding was written (`unsupported`).
    `problems` are about stored objects that were changed. `output` is the object that its role's
    schema asked for: it may be a row of the answer.
    """

    text: str = ""
    outputs: Mapping[str, str] = {}
    problems: list[str] = []
    output: JsonValue = None


def answer_chain(
    answer: str,
    citations: Sequence[Citation],
    findings: Mapping[str, Grounded],
    given: Sequence[str],
    value: JsonValue = None,
) -> list[Link]:
    """Returns a link for each claim and citation of an answer, and of its JSON `value`.

    `given` are the goal and the plan's descriptions. A row of the value that code took over names
    its finding.
    """
    cited = CitedFindings({subtask_id: finding.text for subtask_id, finding in findings.items()})
    links = [*_claim_links(answer, findings, cited, given)]
    if findings:
        lacking = _changed(findings.values()) or "no finding has it"
        for name in unknown_names(answer, KnownWords([*cited.texts, *given])):
            links.append(Link(kind="name", text=name, problem=lacking))
    links += [_citation_link(item, findings, cited) for item in citations]

    taken = [_author(row, findings) for row in _rows(value)]
    if taken and all(taken):
        for at, subtask_id in enumerate(taken, 1):
            links.append(_row_link(at, subtask_id, findings[subtask_id]))
        return links

    for path, text, found in field_claims(value, cited.texts, given):
        problem = "" if found else "no finding has it beside its unit and the names of its row"
        links.append(Link(kind="figure", text=f"{path}: {text}", problem=problem))
    return links


def _rows(value: JsonValue) -> list[JsonValue]:
    """Returns the rows of an answer that is a list, by itself or as its first field."""
    if isinstance(value, dict):
        value = next(iter(value.values()), None)
    return value if isinstance(value, list) else []


def _author(row: JsonValue, findings: Mapping[str, Grounded]) -> str:
    """Returns the subtask whose output has all of a row, as it stands; empty if none has."""
    if not isinstance(row, dict):
        return ""
    for subtask_id, finding in findings.items():
        if isinstance(finding.output, dict) and row.items() <= finding.output.items():
            return subtask_id
    return ""


def _row_link(at: int, subtask_id: str, finding: Grounded) -> Link:
    """Returns the link of a row that code took from the output of a finding."""
    doubts = [*finding.problems]
    doubts += [f"no tool output has {item}" for item in finding.unsupported]
    return Link(
        kind="citation",
        text=f"answer_json, row {at}",
        findings=[subtask_id],
        outputs=finding.evidence,
        elsewhere="" if finding.evidence else _REST,
        problem=doubts[0] if doubts else "",
    )


class _Texts:
    """The goal, the plan and all findings: what claims of an answer are looked for in."""

    def __init__(
        self,
        findings: Mapping[str, Grounded],
        cited: CitedFindings,
        given: Sequence[str],
    ) -> None:
        self.findings = findings
        self.cited = cited
        self._stated = Support([Source(text) for text in given])
        # Of 1,000 findings an answer uses a few.
        self.outputs_of = cache(self._outputs_of)
        self.found_in = cache(self._found_in)

    def find(self, claim: Claim) -> Found | None:
        """Returns the kind of text that has a claim; None if none has."""
        if self._stated.supports(claim):
            return _REST, "", ""
        return ("a finding", "", "") if self.found_in(claim) else None

    def mixed(self, calculation: str, near: Near) -> str:
        """Returns an empty text, as mixed origins were asked about when the finding was checked."""
        return ""

    def outputs_with(self, claim: Claim, subtask_id: str) -> list[Evidence]:
        """Returns the tool calls behind a finding whose outputs have a claim."""
        if claim.text in self.findings[subtask_id].unsupported:
            return []  # its author found it in no output
        outputs = self.outputs_of(subtask_id)
        return [item for item, support in outputs if support.supports(claim)]

    def _outputs_of(self, subtask_id: str) -> list[tuple[Evidence, Support]]:
        """Returns the tool calls of a finding whose outputs are stored."""
        finding = self.findings[subtask_id]
        read: list[tuple[Evidence, Support]] = []
        for item in finding.evidence:
            text = finding.outputs.get(item.output_ref)
            if text is not None:
                facts = item.facts or QueryFacts()
                source = Source(text, arguments=item.arguments, facts=facts)
                read.append((item, Support([source])))
        return read

    def _found_in(self, claim: Claim) -> list[str]:
        """Returns the findings that have a claim."""
        ids = [*self.findings]
        return [subtask_id for subtask_id in ids if self.cited.support(subtask_id).supports(claim)]


def _claim_links(
    answer: str,
    findings: Mapping[str, Grounded],
    cited: CitedFindings,
    given: Sequence[str],
) -> Iterator[Link]:
    """Yields a link for each claim of an answer's text."""
    wrongly_cited = cited.miscited(answer, set(findings), given)
    texts = _Texts(findings, cited, given)
    # Without a finding the answer is the planner's own: a text that was reworked is quoted from
    # nowhere.
    quoted = answer if findings else without_quotes(answer)

    for claim, found in looked_up(claims(quoted, findings), answer, texts):
        link = Link(kind=claim.kind, text=claim.text, findings=texts.found_in(claim))
        for subtask_id in link.findings:
            link.outputs += texts.outputs_with(claim, subtask_id)

        behind = [findings[subtask_id] for subtask_id in link.findings]
        link.elsewhere = _elsewhere(link, found, behind)
        against = (cited.support(subtask_id).problem(claim) for subtask_id in findings)
        link.problem = _problem(link, behind, findings.values(), against)
        if not link.problem and claim.text in wrongly_cited:
            named = ", ".join(wrongly_cited[claim.text])
            link.problem = f"cited as a finding of {named}, which lacks it"
        link.recalled = not link.problem and link.elsewhere == _KNOWLEDGE
        yield link


def _elsewhere(link: Link, found: Found | None, behind: Sequence[Grounded]) -> str:
    """Returns the text beside findings and outputs that a claim comes from; empty without one."""
    source, line, _ = found or ("", "", "")
    if source == _REST:
        return _REST
    if link.outputs:
        return ""

    sums = [line] if source == CALCULATION else []
    for claim in _checked_in(behind, link.text):
        if claim.source == CALCULATION:
            sums.append(claim.line)
    if sums:
        return f"the calculation {sums[0]}"
    return _KNOWLEDGE if any(each.grounding == "knowledge" for each in behind) else ""


def _checked_in(findings: Iterable[Grounded], text: str) -> list[CheckedClaim]:
    """Returns a claim as it was checked when the findings with it were written."""
    checked = chain.from_iterable(finding.checked for finding in findings)
    return [claim for claim in checked if claim.text == text]


def _problem(
    link: Link,
    behind: Sequence[Grounded],
    findings: Iterable[Grounded],
    against: Iterable[str],
) -> str:
    """Returns the problem with a claim; empty without one.

    `against` is the evidence against the claim in the findings, if any is known.
    """
    changed = _changed(behind)
    if changed or link.elsewhere or link.outputs:
        return changed
    if not behind:
        return _changed(findings) or _with_reason("no finding has it", against)

    doubtful = chain.from_iterable(finding.unsupported for finding in behind)
    if not any(item in link.text or link.text in item for item in doubtful):
        return ""
    known = (claim.problem for claim in _checked_in(behind, link.text))
    return _with_reason("no tool output has it", known)


def _with_reason(problem: str, reasons: Iterable[str]) -> str:
    """Returns a problem with the first reason that is known, if one is."""
    reason = next(filter(None, reasons), "")
    return f"{problem}: {reason}" if reason else problem


def _changed(findings: Iterable[Grounded]) -> str:
    """Returns the first problem with what is stored of findings."""
    for finding in findings:
        if finding.problems:
            return finding.problems[0]
    return ""


def _citation_link(
    citation: Citation,
    findings: Mapping[str, Grounded],
    cited: CitedFindings,
) -> Link:
    """Returns the link of a citation: it holds by the findings that it names."""
    known: list[str] = []
    lost: list[str] = []
    for subtask_id in citation.subtask_ids:
        (known if subtask_id in findings else lost).append(subtask_id)
    behind = [findings[subtask_id] for subtask_id in known]
    link = Link(kind="citation", text=citation.claim, findings=known)
    link.problem = f"there is no finding of {', '.join(lost)}" if lost else _changed(behind)
    lacking = [] if link.problem else cited.lacking(citation.claim, known)
    if lacking:
        link.problem = f"{', '.join(known)} lacks {', '.join(claim.text for claim in lacking)}"
    from_knowledge = any(finding.grounding == "knowledge" for finding in behind)
    link.recalled = not link.problem and from_knowledge
    return link
