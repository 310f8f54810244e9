"""A plan for a person's decision: its subtasks, the effect of failures, the likely cost."""

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.console import RenderableType
from rich.text import Text

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.console.base.terminal import (
    counted,
    duration,
    indented,
    look_alikes,
    revealed,
    safe_line,
)
from temporal_supervisor.console.run.found_runs import recorded_request
from temporal_supervisor.messages import NoAnswer, UpdateRefused
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import SupervisionError
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.contract.plan import (
    Estimate,
    Plan,
    Range,
    Shares,
    Subtask,
)
from temporal_supervisor.supervision.contract.request import RunRequest, parse_request
from temporal_supervisor.supervision.contract.status import Asked, Status
from temporal_supervisor.supervision.results.success_rule import is_met_without

SUPERVISOR = "supervisor"  # the part of an estimate
_NAMED = 8  # subtasks on one line


@dataclass(frozen=True)
class PlanPage:
    """A plan, and facts about its run.

    `asked` is set while it waits for approval, and has its run's `request`. `status` is None if the
    run has ended and no Worker answers.
    """

    run_id: str
    plan: Plan
    status: Status | None = None
    asked: Asked | None = None
    request: RunRequest | None = None

    def rows(self) -> Iterator[RenderableType]:
        """Yields the page; a plan that waits for approval has an outlook."""
        plan = self.plan.folded()
        if plan.direct_answer:
            yield "no subtasks: the planner answered the goal itself"
        elif not plan.subtasks:
            yield "there is no plan yet"
        elif self.asked:
            number = self.asked.wait.id.rpartition(".")[2]
            yield f"plan {number}: {counted(len(plan.subtasks), 'subtask')}"
        estimate = self.asked.estimate if self.asked else None
        saved = estimate.saved if estimate else {}
        likely = _likely_parts(estimate) if estimate else {}
        for subtask in plan.subtasks:
            head = _head(subtask)
            yield Text(head, style="bold") if self.asked else head
            yield indented(revealed(" ".join(subtask.description.split())), 4)
            if subtask.id in saved:
                yield Text(f"    found before: {saved[subtask.id]}", style="green")
            if subtask.id in likely:
                yield Text(f"    {likely[subtask.id]}", style="dim")
        if plan.answer_subtask is not None:
            named = safe_line(plan.answer_subtask, limits.LINE_BYTES)
            yield f"the answer is the text of {named}, word for word"
        if self.asked and self.status:
            yield ""
            for note in look_alikes("\n".join(subtask.description for subtask in plan.subtasks)):
                yield Text(f"! looks like a Latin letter: {note}", style="yellow")
            yield from self.outlook()

    def outlook(self) -> Iterator[str]:
        """Yields the consequences of failures, and the likely cost."""
        if self.asked is None or self.status is None:
            return
        estimate = self.asked.estimate
        yield from self._consequences()
        if estimate:
            yield from _price(estimate)
        yield f"never above the budget: {_budget(self.status)}"

    def _consequences(self) -> Iterator[str]:
        request = self.request or RunRequest(goal="unknown")
        for subtasks, outcome in failure_outcomes(self.plan, request.success).items():
            yield f"if {_listed_names(subtasks, 'or')} fails: {outcome}"
        if request.max_replans:
            often = counted(request.max_replans, "time")
            yield f"before that, work that failed is planned again, at most {often}"


def _head(subtask: Subtask) -> str:
    """Returns a subtask's line: its id, role and importance, and its place in the plan."""
    facts = [subtask.role, subtask.importance]
    if subtask.depends_on:
        facts.append(f"after {', '.join(subtask.depends_on)}")
    if subtask.for_each:
        facts.append(f"for each of {subtask.for_each}")
    if subtask.candidates > 1:
        facts.append(counted(subtask.candidates, "candidate"))
    return safe_line(f"{subtask.id} ({', '.join(facts)})", limits.DESCRIPTION_CHARS)


def _budget(status: Status) -> str:
    usd, tokens = status.limits.budget_usd, status.limits.budget_tokens
    known = []
    if usd is not None:
        known.append(money(usd))
    if tokens is not None:
        known.append(f"{tokens:,} tokens")
    return " or ".join(known) or "no limit"


def _price(estimate: Estimate) -> Iterator[str]:
    likely = _likely_parts(estimate)
    if SUPERVISOR in likely:
        yield f"the supervisor's own work: {likely[SUPERVISOR]}"
    known = "no run like it yet"
    if estimate.samples:
        known = f"from {counted(estimate.samples, 'run')} like it"
        if estimate.of:
            known += f"; {estimate.held} of the last {counted(estimate.of, 'estimate')} held"
    if estimate.saved:
        yield f"{counted(len(estimate.saved), 'finding')} of earlier runs cost nothing"
    yield f"in all {_likely(estimate.total)} ({known})"


def _likely_parts(estimate: Estimate) -> dict[str, str]:
    return {part.id: _likely(part) for part in estimate.parts}


def _likely(part: Shares) -> str:
    """Returns the expected usage: `2-4 calls, 9k-16k tokens, $0.02-$0.04, 20 s-0:01:00`."""
    ranges = [
        f"{_range_words(part.calls, '{:,.0f}'.format)} calls",
        f"{_range_words(part.tokens, _short)} tokens",
    ]
    if part.usd:
        ranges.append(_range_words(part.usd, "${:,.2f}".format))
    ranges.append(_range_words(part.seconds, duration))
    return ", ".join(ranges)


def _range_words(found: Range, words: Callable[[float], str]) -> str:
    low, high = words(found.low), words(found.high)
    return low if low == high else f"{low}-{high}"


def _short(number: float) -> str:
    if number >= 1e6:
        return f"{number / 1e6:.1f}M"
    return f"{number / 1000:.0f}k" if number >= 1000 else f"{number:.0f}"


async def plan_page(run: Run, store: ArtifactStore | None = None) -> PlanPage:
    """Returns the plan of a run. Raises NoAnswer and ArtifactError.

    A run shortens the descriptions of a large plan; while it waits, the store has them whole.
    """
    plan, status = await run.plan(), await run.status()
    page = PlanPage(run.id, plan, status)
    waits = [wait for wait in status.waiting if wait.kind == "plan"]
    if not waits:
        return page
    wait = waits[0]
    # It may have been decided just now, or be of another version.
    with contextlib.suppress(UpdateRefused, NoAnswer, SupervisionError):
        page = replace(page, asked=await run.asked(wait.id))
        page = replace(page, request=parse_request(await recorded_request(run)))
    is_short = any(subtask.description.endswith("…") for subtask in plan.subtasks)
    if wait.content_ref and is_short and store is not None:
        whole = Plan.model_validate_json(await store.get(wait.content_ref))
        page = replace(page, plan=whole)
    return page


def failure_outcomes(plan: Plan, success: str | float) -> dict[tuple[str, ...], str]:
    """Returns the outcomes of failures of required subtasks, by groups of subtasks."""
    before = {subtask.id: {*subtask.depends_on} for subtask in plan.named}
    dependents: dict[str, list[str]] = {}
    for subtask_id, dependencies in before.items():
        for dependency in dependencies:
            dependents.setdefault(dependency, []).append(subtask_id)

    importance = plan.importance
    same: dict[str, list[str]] = {}
    for subtask in plan.named:
        if subtask.importance == "required":
            lost = _lost_after(subtask.id, before, dependents)
            is_met = is_met_without(success, {subtask.id, *lost}, importance)
            outcome = _if_lost(lost, success, is_met=is_met, is_only=len(before) == 1)
            same.setdefault(outcome, []).append(subtask.id)
    return {tuple(subtasks): what for what, subtasks in same.items()}


def _lost_after(
    subtask_id: str, before: Mapping[str, Collection[str]], dependents: Mapping[str, Sequence[str]]
) -> list[str]:
    """Returns the subtasks that can't begin if one fails: all of their dependencies are lost."""
    lost = [subtask_id]
    lost_dependencies = Counter[str]()
    for each in lost:  # the list grows while it is read
        for dependent in dependents.get(each, ()):
            lost_dependencies[dependent] += 1
            if lost_dependencies[dependent] == len(before[dependent]):
                lost.append(dependent)
    return sorted(lost[1:])


def _if_lost(lost: Sequence[str], success: str | float, *, is_met: bool, is_only: bool) -> str:
    if not is_met:
        return "the run fails" if is_only else f"the run fails (success: {success})"
    with_it = f"{_listed_names(lost)} can't begin; " if lost else ""
    return f"{with_it}the answer names the gap"


def _listed_names(subtasks: Sequence[str], last: str = "and") -> str:
    """Returns `t1, t2 and t3`."""
    shown = [*subtasks[:_NAMED]]
    if len(subtasks) > _NAMED:
        shown.append(f"{len(subtasks) - _NAMED} more")
    *others, final = shown
    return f"{', '.join(others)} {last} {final}" if others else final
