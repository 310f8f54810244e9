"""The rules for a conclusion: it is accepted, goes back to its author, or ends the attempt."""

from dataclasses import dataclass
from typing import TypeAlias

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import TurnReply
    from activities.prompts import agent_prompts as prompts
    from temporal_supervisor.supervision.agent.empty_words import Emptiness
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.contract.finding import Finding

    from workflows.children.child_contracts import LoopProgress

NO_FINDING: dict[Emptiness, str] = {
    "says_nothing": "its last words are no finding",
    "failed_call": "its last call failed, and no other one brought data",
    "no_rows": "its last words are a query, and no row met the one before it",
}


@dataclass(frozen=True)
class Accept:
    """The attempt ends with the conclusion, or with an earlier one that is better."""


@dataclass(frozen=True)
class HearPeople:
    """The conversation goes on with the words of people that came meanwhile."""


@dataclass(frozen=True)
class AskAgain:
    """The author of an empty conclusion is asked for a finding."""

    emptiness: Emptiness


@dataclass(frozen=True)
class Object:
    """The author of a faulty finding is asked to correct it; `misfit` lists faults of its form."""

    finding: Finding
    misfit: list[str]


@dataclass(frozen=True)
class GiveUp:
    """The attempt fails; with `keeps_finding` its error carries the last finding."""

    why: str
    keeps_finding: bool = False


Verdict: TypeAlias = Accept | HearPeople | AskAgain | Object | GiveUp


def verdict_on(
    reply: TurnReply,
    finding: Finding,
    progress: LoopProgress,
    *,
    has_a_turn_left: bool,
    names_items: bool,
) -> Verdict:
    """Returns the verdict on the conclusion in a reply, and changes nothing.

    A conclusion goes back only if the attempt `has_a_turn_left`. With `names_items` the finding
    must list items.
    """
    if reply.empty:
        may_ask = has_a_turn_left and progress.empty_replies < limits.EMPTY_REPLIES
        return _on_empty_words(reply, reply.empty, progress, may_ask=may_ask)
    if reply.finding is None:
        return Accept()  # a finding of an earlier turn: this reply is not its conclusion
    if reply.impossible:
        has_better = progress.returned is not None and progress.returned.supported
        return Accept() if has_better else GiveUp(finding.summary)

    may_object = has_a_turn_left and not progress.objected
    return _on_finding(reply, finding, may_object=may_object, names_items=names_items)


def _on_empty_words(
    reply: TurnReply, emptiness: Emptiness, progress: LoopProgress, *, may_ask: bool
) -> Verdict:
    if may_ask:
        return AskAgain(emptiness)
    if progress.returned is not None:
        return Accept()  # the earlier finding takes their place
    return GiveUp(f"{NO_FINDING[emptiness]}: {reply.preview}")


def _on_finding(
    reply: TurnReply, finding: Finding, *, may_object: bool, names_items: bool
) -> Verdict:
    lacks_items = names_items and not finding.items_ref
    misfit = [*reply.misfit]
    if lacks_items:
        misfit.append(prompts.NO_ITEMS)
    is_doubtful = finding.unsupported or finding.doubts or reply.unclear or reply.ungrounded
    if may_object and (is_doubtful or misfit):
        return Object(finding, misfit)
    if lacks_items:
        # Its dependents cannot begin without the items, but its words are worth keeping.
        return GiveUp(f"its finding names no items: {prompts.NO_ITEMS}", keeps_finding=True)
    return Accept()
