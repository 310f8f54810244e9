"""The chain from a claim of an answer to its sources: findings, and the tool outputs behind these."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Literal

from pydantic import JsonValue

from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.finding import Evidence, FindingRecord
from temporal_supervisor.supervision.contract.result import Citation
from temporal_supervisor.supervision.grounding.answer_fields import field_claims
from temporal_supervisor.supervision.grounding.citations import CitedFindings
from temporal_supervisor.supervision.grounding.claims import Claim, claims, without_quotes
from temporal_supervisor.supervision.grounding.naming.names import KnownWords, unknown_names
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import CALCULATION, Found, Support, looked_up
from temporal_supervisor.supervision.grounding.wording.nearby import Near

_REST = "the goal or the plan"
_KNOWLEDGE = "the model's own knowledge, which is not checked"


class Link(Model):
    """A claim of an answer, and where it stands: ids of findings, and the tool calls whose outputs have it.

    `elsewhere` names what else a claim comes from: the goal, a brief, a model's own knowledge. One that is `recalled`
    comes from that knowledge alone: it has no problem that code can see, and nothing was compared with it. A citation
    holds by the findings that it names.
    """

    kind: Literal["figure", "quotation", "address", "name", "citation"]
    text: str
    findings: list[str] = []
    outputs: list[Evidence] = []
    elsewhere: str = ""
    problem: str = ""
    recalled: bool = False


class Grounded(FindingRecord):
    """A finding as the store has it: its text, its tool calls with their outputs, and objects that were changed.

    Of what its author's claims were found to lack when it was written (`unsupported`) no output is proof.
    `output` is the object that its role's schema asked for: it may be a row of the answer.
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

    `given` are the goal and the plan's descriptions. A row of the value that code took names its finding.
    """
    cited = CitedFindings({subtask_id: finding.text for subtask_id, finding in findings.items()})
    links = [*_claim_links(answer, findings, cited, given)]
    unknown = unknown_names(answer, KnownWords([*cited.texts, *given])) if findings else []
    lacking = _changed(findings.values()) or "no finding has it"
    links += [Link(kind="name", text=name, problem=lacking) for name in unknown]
    links += [_citation_link(item, findings, cited) for item in citations]
    rows = value if isinstance(value, list) else next(iter(value.values()), None) if isinstance(value, dict) else None
    taken = [_author(row, findings) for row in rows] if isinstance(rows, list) else []
    if taken and all(taken):
        return links + [_row_link(at, subtask_id, findings[subtask_id]) for at, subtask_id in enumerate(taken, 1)]
    lacking = "no finding has it beside its unit and the names of its row"
    return links + [
        Link(kind="figure", text=f"{path}: {text}", problem="" if found else lacking)
        for path, text, found in field_claims(value, cited.texts, given)
    ]


def _author(row: JsonValue, findings: Mapping[str, Grounded]) -> str:
    """Returns the subtask whose output has all of a row, as it stands; empty if none has."""
    for subtask_id, finding in findings.items():
        if isinstance(row, dict) and isinstance(finding.output, dict) and row.items() <= finding.output.items():
            return subtask_id
    return ""


def _row_link(at: int, subtask_id: str, finding: Grounded) -> Link:
    doubts = [*finding.problems, *(f"no tool output has {item}" for item in finding.unsupported)]
    return Link(
        kind="citation",
        text=f"answer_json, row {at}",
        findings=[subtask_id],
        outputs=finding.evidence,
        elsewhere="" if finding.evidence else _REST,
        problem=next(iter(doubts), ""),
    )


def _claim_links(
    answer: str, findings: Mapping[str, Grounded], cited: CitedFindings, given: Sequence[str]
) -> Iterator[Link]:
    wrongly_cited = cited.miscited(answer, set(findings), given)
    stated = Support([Source(text) for text in given])

    @cache  # of 1,000 findings an answer uses a few
    def outputs_of(subtask_id: str) -> list[tuple[Evidence, Support]]:
        finding = findings[subtask_id]
        read = [item for item in finding.evidence if item.output_ref in finding.outputs]
        return [(item, Support([Source(finding.outputs[item.output_ref], arguments=item.arguments)])) for item in read]

    @cache
    def found_in(claim: Claim) -> list[str]:
        return [subtask_id for subtask_id in findings if cited.support(subtask_id).supports(claim)]

    class Chain:
        """The goal, the plan and all findings."""

        def find(self, claim: Claim) -> Found | None:
            """Returns the kind of text that has a claim; None if none has."""
            if stated.supports(claim):
                return _REST, "", ""
            return ("a finding", "", "") if found_in(claim) else None

        def mixed(self, calculation: str, near: Near) -> str:
            """Returns nothing: the author of a finding was asked what it was computed from."""
            return ""

    # Without a finding the answer is the planner's own: a text that was reworked is quoted from nowhere.
    made = claims(answer if findings else without_quotes(answer), findings)
    for claim, found in looked_up(made, answer, Chain()):
        link = Link(kind=claim.kind, text=claim.text, findings=found_in(claim))
        behind = [findings[subtask_id] for subtask_id in link.findings]
        for subtask_id, finding in zip(link.findings, behind, strict=True):
            if claim.text not in finding.unsupported:
                link.outputs += [item for item, support in outputs_of(subtask_id) if support.supports(claim)]
        link.elsewhere = _elsewhere(link, found, behind)
        against = (cited.support(subtask_id).problem(claim) for subtask_id in findings)
        link.problem = _problem(link, behind, findings.values(), against)
        if not link.problem and claim.text in wrongly_cited:
            link.problem = f"cited as a finding of {', '.join(wrongly_cited[claim.text])}, which lacks it"
        link.recalled = not link.problem and link.elsewhere == _KNOWLEDGE
        yield link


def _elsewhere(link: Link, found: Found | None, behind: Sequence[Grounded]) -> str:
    source, line, _ = found or ("", "", "")
    if source == _REST:
        return _REST
    if link.outputs:
        return ""
    made = [(claim.source, claim.line) for each in behind for claim in each.checked if claim.text == link.text]
    sums = [line for source, line in [(source, line), *made] if source == CALCULATION]
    if sums:
        return f"the calculation {sums[0]}"
    return _KNOWLEDGE if any(each.grounding == "knowledge" for each in behind) else ""


def _problem(link: Link, behind: Sequence[Grounded], findings: Iterable[Grounded], against: Iterable[str]) -> str:
    """Returns the problem with a claim; empty without one.

    `against` is the evidence against the claim in the findings, if any is known.
    """
    if changed := _changed(behind):
        return changed
    if link.elsewhere or link.outputs:
        return ""
    if not behind:
        return _changed(findings) or ": ".join(["no finding has it", *islice(filter(None, against), 1)])
    doubtful = [item for finding in behind for item in finding.unsupported]
    if not any(item in link.text or link.text in item for item in doubtful):
        return ""
    known = (claim.problem for finding in behind for claim in finding.checked if claim.text == link.text)
    return ": ".join(["no tool output has it", *islice(filter(None, known), 1)])


def _changed(findings: Iterable[Grounded]) -> str:
    """Returns the first problem with what is stored of findings."""
    return next((problem for finding in findings for problem in finding.problems), "")


def _citation_link(citation: Citation, findings: Mapping[str, Grounded], cited: CitedFindings) -> Link:
    known = [subtask_id for subtask_id in citation.subtask_ids if subtask_id in findings]
    link = Link(kind="citation", text=citation.claim, findings=known)
    lost = [subtask_id for subtask_id in citation.subtask_ids if subtask_id not in findings]
    changed = _changed(findings[subtask_id] for subtask_id in link.findings)
    link.problem = f"there is no finding of {', '.join(lost)}" if lost else changed
    if not link.problem and (lacking := cited.lacking(citation.claim, link.findings)):
        link.problem = f"{', '.join(link.findings)} lacks {', '.join(claim.text for claim in lacking)}"
    from_knowledge = any(findings[subtask_id].grounding == "knowledge" for subtask_id in link.findings)
    link.recalled = not link.problem and from_knowledge
    return link
