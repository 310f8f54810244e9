"""What a plan is likely to take, by what earlier runs of its team took.

The range of a subtask is the order statistics of its role. The range of the whole plan is that of sums which are drawn:
each draw takes its cases from one earlier run, so that what the parts of a run have in common stays together, and from
all runs for roles that it did not have. The draws are the same for the same samples.
"""

import math
import random  # noqa: TID251  a seeded one
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from graphlib import TopologicalSorter
from typing import NamedTuple

from supervision.base import limits
from supervision.contract.base import Model
from supervision.contract.plan import Estimate, Plan, Range, Shares
from supervision.contract.result import RunResult, SubtaskReport
from supervision.contract.team import TeamCard
from supervision.contract.usage import Usage

SUPERVISOR, TOTAL = "supervisor", "total"
_REST = ""  # the role of what no subtask of the first plan took
_DRAWS = 400  # the 5 % outside on each side are 20 of them
_OUTSIDE = 0.05
_ROOM = 10.0  # a range of n cases is 1 + 10 / n times wider on each side: what so few cases did not show
_SAMPLE_PARTS = 100  # of a run: 200 samples are read at once
_HITS = 20  # estimates whose hits are counted
_LEAST_TOKENS = 500  # of a call
_TURN_SECONDS = 60.0  # that a turn may take, where no earlier one is known

Price = Callable[[str, float, float], float | None]
"""Returns the USD of so many input tokens of a model and searches of its provider, None if its price is unknown."""


class Took(Model):
    """What a candidate of a subtask took, with all attempts; of a role "", several parts of a run together."""

    role: str = _REST
    calls: float = 0
    tokens: float = 0
    usd: float | None = None
    seconds: float = 0


class RunSample(Model):
    """What a finished run took: the subtasks of its first plan, all else, and the whole.

    `estimate` is the total that was shown with the plan.
    """

    parts: list[Took]
    rest: Took
    total: Took
    estimate: Shares | None = None

    @property
    def held(self) -> bool:
        """True if the estimate held the run's calls and tokens."""
        shown, total = self.estimate, self.total
        return shown is not None and total.calls in shown.calls and total.tokens in shown.tokens


class _Case(NamedTuple):
    """Numbers of one case; usd is NaN if it is unknown."""

    calls: float
    tokens: float
    usd: float
    seconds: float

    def times(self, factor: float, seconds: float) -> "_Case":
        return _Case(self.calls * factor, self.tokens * factor, self.usd * factor, self.seconds * seconds)


_Span = tuple[_Case, _Case]  # the lowest and the highest that one case stands for
_Cases = Mapping[str, Sequence[_Case | None]]  # of a run, by role


class _Part(NamedTuple):
    """Work of a plan: its cases in earlier runs, and how often it is done; `unseen` is what its limits allow."""

    id: str
    role: str
    cases: Sequence[_Case | None]
    unseen: _Span
    least: int = 1
    most: int = 1
    in_turn: bool = False  # a template's items may wait for each other, candidates do not

    def span(self, case: _Case | None) -> _Span:
        """Returns what the part takes if each time is as the case; None if there is none."""
        room = 1 + _ROOM / len(self.cases) if self.cases else 1.0
        low, high = (case, case) if case else self.unseen
        top = room * self.most
        return low.times(self.least / room, 1 / room), high.times(top, top if self.in_turn else room)


def sample_of(result: RunResult, plan: Plan, planned: int, estimate: Shares | None = None) -> RunSample:
    """Returns the sample of a run whose first plan had so many subtasks; later ones are part of the rest."""
    candidates = {subtask.id: max(1, subtask.candidates) for subtask in plan.subtasks}
    named = [report.id for report in result.subtasks if report.template is None]
    first = set(named[:planned])
    reports = [r for r in result.subtasks if (r.template or r.id) in first and r.counts is None]
    rest = result.usage - sum((report.usage for report in reports), Usage())
    own = max(0.0, result.timing.sequential_seconds - sum(map(_seconds, result.subtasks)))
    chosen = reports[:: max(1, math.ceil(len(reports) / _SAMPLE_PARTS))]
    return RunSample(
        parts=[_took(r.usage, _seconds(r), candidates.get(r.id, 1), r.role) for r in chosen],
        rest=_took(rest, own),
        total=_took(result.usage, result.timing.critical_path_seconds),
        estimate=estimate,
    )


def estimate_of(
    plan: Plan, team: TeamCard, samples: Sequence[RunSample], max_turns: int, max_subtasks: int, price: Price
) -> Estimate:
    """Returns what a plan is likely to take. `samples` are the team's, the newest last."""
    runs = [_cases(sample) for sample in samples]
    *work, own = parts = _parts(plan, team, runs, max_turns, max_subtasks, price)
    chance = random.Random(0)
    depends_on = {subtask.id: subtask.depends_on for subtask in plan.folded().subtasks}
    order = [*TopologicalSorter(depends_on).static_order()]
    totals: list[_Span] = []
    for _ in range(_DRAWS):
        run: _Cases = chance.choice(runs) if runs else {}
        spans = {part.id: part.span(chance.choice(run.get(part.role) or part.cases or [None])) for part in parts}
        lows, highs = ({part: span[side] for part, span in spans.items()} for side in (0, 1))
        totals.append((_sum(lows, order, depends_on), _sum(highs, order, depends_on)))
    made = [sample for sample in samples if sample.estimate is not None][-_HITS:]
    return Estimate(
        parts=[_shares(p.id, [p.span(case) for case in p.cases or [None]]) for p in (*work[: limits.STATUS_PAGE], own)],
        total=_shares(TOTAL, totals),
        samples=len(samples),
        held=sum(sample.held for sample in made),
        of=len(made),
    )


def _cases(sample: RunSample) -> _Cases:
    cases = defaultdict[str, list[_Case | None]](list)
    for took in (*sample.parts, sample.rest):
        usd = math.nan if took.usd is None else took.usd
        cases[took.role].append(_Case(took.calls, took.tokens, usd, took.seconds))
    return cases


def _parts(
    plan: Plan, team: TeamCard, runs: Sequence[_Cases], max_turns: int, max_subtasks: int, price: Price
) -> list[_Part]:
    """Returns the subtasks that models work on, and last the supervisor's own work."""

    def cases_of(role: str) -> list[_Case | None]:
        return [case for run in runs for case in run.get(role, [])]

    parts, own_model, room = [], "", max(1, max_subtasks - len(plan.named))
    for subtask in plan.named:
        role = team.role(subtask.role)
        if role.person is not None:
            continue
        own_model = own_model or role.model
        calls = max_turns * (max_subtasks if role.team is not None else 1)
        searches = calls * sum(tool.searches for tool in role.tools)
        unseen = _unseen(calls, subtask.timeout_seconds or calls * _TURN_SECONDS, role.model, price, searches)
        times = (1, subtask.max_items or room) if subtask.for_each else (subtask.candidates, subtask.candidates)
        parts.append(_Part(subtask.id, role.name, cases_of(role.name), unseen, *times, in_turn=bool(subtask.for_each)))
    own_calls = limits.PLAN_TRIES + max_turns + 2 * len(plan.named)  # a review and a refinement of each, and the answer
    unseen = _unseen(own_calls, own_calls * _TURN_SECONDS, own_model, price)
    return [*parts, _Part(SUPERVISOR, _REST, cases_of(_REST), unseen)]


def _unseen(calls: float, seconds: float, model: str, price: Price, searches: float = 0) -> _Span:
    low, high = _LEAST_TOKENS, calls * limits.CONTEXT_TOKENS
    usd = [math.nan if found is None else found for found in (price(model, low, 0), price(model, high, searches))]
    return _Case(1, low, usd[0], 1), _Case(calls, high, usd[1], seconds)


def _took(usage: Usage, seconds: float, among: int = 1, role: str = _REST) -> Took:
    """Returns what each of so many candidates took, who worked at the same time."""
    calls, tokens, usd = usage.model_calls / among, usage.tokens / among, usage.usd
    return Took(role=role, calls=calls, tokens=tokens, usd=None if usd is None else usd / among, seconds=seconds)


def _seconds(report: SubtaskReport) -> float:
    if report.started_at is None or report.finished_at is None:
        return 0.0
    whole = datetime.fromisoformat(report.finished_at) - datetime.fromisoformat(report.started_at)
    return whole.total_seconds() - report.held_seconds


def _sum(drawn: Mapping[str, _Case], order: Iterable[str], depends_on: Mapping[str, Sequence[str]]) -> _Case:
    """Returns the whole of a draw; its seconds are those of the longest chain."""
    chain: dict[str, float] = {}
    for subtask in order:
        before = max((chain[other] for other in depends_on[subtask]), default=0.0)
        chain[subtask] = before + (drawn[subtask].seconds if subtask in drawn else 0.0)  # a person takes none
    calls, tokens, usd, _ = map(sum, zip(*drawn.values(), strict=True))
    return _Case(calls, tokens, usd, max(chain.values(), default=0.0) + drawn[SUPERVISOR].seconds)


def _shares(part_id: str, spans: Sequence[_Span]) -> Shares:
    """Returns the range that holds all of the cases but 5 % on each side."""
    cut = int(_OUTSIDE * len(spans))

    def middle(field: int, digits: int) -> Range:
        lows, highs = (sorted(span[side][field] for span in spans) for side in (0, 1))
        return Range(low=round(lows[cut], digits), high=round(highs[-1 - cut], digits))

    usd = None if any(math.isnan(case.usd) for span in spans for case in span) else middle(2, 4)
    return Shares(id=part_id, calls=middle(0, 0), tokens=middle(1, 0), usd=usd, seconds=middle(3, 1))
