"""The expected usage of a plan, estimated from earlier runs of its team.

The range of a subtask comes from its role's cases in these runs; the range of the whole plan is the
sum of its parts.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import TopologicalSorter

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.plan import Estimate, Plan, Range, Shares, Subtask
from temporal_supervisor.supervision.contract.result import RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.team import TeamCard
from temporal_supervisor.supervision.contract.usage import Usage

SUPERVISOR = "supervisor"
TOTAL = "total"
_REST = ""  # the role of what no subtask of the first plan took
_OUTSIDE = 0.05
# A range of n cases is 1 + 10 / n times wider on each side: what so few cases did not show.
_ROOM = 10.0
_SAMPLE_PARTS = 100  # of a run: 200 samples are read at once
_HITS = 20  # estimates whose hits are counted
_LEAST_TOKENS = 500  # of a call
_TURN_SECONDS = 60.0  # that a turn may take, where no earlier one is known

Price = Callable[[str, float, float], float | None]
"""Returns the USD of so many input tokens of a model and searches of its provider.

None if its price is unknown.
"""


class CandidateUsage(Model):
    """The usage of one candidate of a subtask, with all of its attempts.

    The role "" stands for several parts of a run together.
    """

    role: str = _REST
    calls: float = 0
    tokens: float = 0
    usd: float | None = None
    seconds: float = 0


class RunSample(Model):
    """The usage of a finished run: subtasks of its first plan, the rest, and the total.

    `estimate` is the total that was shown with the plan.
    """

    parts: list[CandidateUsage]
    rest: CandidateUsage
    total: CandidateUsage
    estimate: Shares | None = None

    @property
    def held(self) -> bool:
        """True if the run's calls and tokens were within the estimate."""
        if self.estimate is None:
            return False
        has_calls = self.total.calls in self.estimate.calls
        return has_calls and self.total.tokens in self.estimate.tokens


def sample_of(
    result: RunResult,
    plan: Plan,
    planned: int,
    estimate: Shares | None = None,
) -> RunSample:
    """Returns the sample of a run whose first plan had `planned` subtasks.

    Later subtasks are counted with the rest.
    """
    candidates = {subtask.id: max(1, subtask.candidates) for subtask in plan.subtasks}
    reports = _done_first(result, planned)
    rest = result.usage - sum((report.usage for report in reports), Usage())
    of_subtasks = sum(report.own_seconds for report in result.subtasks)
    own_seconds = result.timing.sequential_seconds - of_subtasks
    step = max(1, math.ceil(len(reports) / _SAMPLE_PARTS))
    parts: list[CandidateUsage] = []
    for report in reports[::step]:
        among = candidates.get(report.id, 1)
        parts.append(_usage_per_candidate(report.usage, report.own_seconds, among, report.role))

    return RunSample(
        parts=parts,
        rest=_usage_per_candidate(rest, max(0.0, own_seconds)),
        total=_usage_per_candidate(result.usage, result.timing.critical_path_seconds),
        estimate=estimate,
    )


def _done_first(result: RunResult, planned: int) -> list[SubtaskReport]:
    """Returns the subtasks of the first plan, with items, without findings of other runs."""
    named = [report.id for report in result.subtasks if report.template is None]
    first = set(named[:planned])
    done: list[SubtaskReport] = []
    for report in result.subtasks:
        was_done = report.counts is None and report.reused is None
        if was_done and (report.template or report.id) in first:
            done.append(report)
    return done


def estimate_of(
    plan: Plan,
    team: TeamCard,
    samples: Sequence[RunSample],
    max_turns: int,
    max_subtasks: int,
    price: Price,
) -> Estimate:
    """Returns the expected usage of a plan.

    `samples` are runs of the team, the newest last.
    """
    cases: dict[str, list[CandidateUsage]] = defaultdict(list)
    for sample in samples:
        for took in (*sample.parts, sample.rest):
            cases[took.role].append(took)

    work: dict[str, Shares] = {}
    own_model = ""
    room = max(1, max_subtasks - len(plan.named))
    for subtask in plan.named:
        role = team.role(subtask.role)
        if role.person is not None or (subtask.taken_from and not subtask.for_each):
            continue
        own_model = own_model or role.model
        calls = max_turns * (max_subtasks if role.team is not None else 1)
        searches = calls * sum(tool.searches for tool in role.tools)
        seconds = subtask.timeout_seconds or calls * _TURN_SECONDS
        once = _seen(cases[role.name]) or _unseen(calls, seconds, role.model, price, searches)
        work[subtask.id] = _of_subtask(subtask, once, room)

    # A review and a refinement of each, and the answer.
    own_calls = limits.PLAN_TRIES + max_turns + 2 * len(plan.named)
    own = _seen(cases[_REST]) or _unseen(own_calls, own_calls * _TURN_SECONDS, own_model, price)
    made = [sample for sample in samples if sample.estimate is not None][-_HITS:]
    return Estimate(
        parts=[*work.values()][: limits.STATUS_PAGE] + [own],
        total=_total(plan, work, own),
        samples=len(samples),
        held=sum(sample.held for sample in made),
        of=len(made),
    )


def _of_subtask(subtask: Subtask, once: Shares, room: int) -> Shares:
    """Returns the usage of a subtask by that of one candidate; `room` is left for its items."""
    least = most = subtask.candidates
    in_turn = 1  # candidates do not wait for each other, items may
    if subtask.for_each:
        least = 1
        most = in_turn = subtask.max_items or room
    return Shares(
        id=subtask.id,
        calls=once.calls.times(least, most),
        tokens=once.tokens.times(least, most),
        usd=once.usd and once.usd.times(least, most),
        seconds=once.seconds.times(1, in_turn),
    )


def _seen(cases: Sequence[CandidateUsage]) -> Shares | None:
    """Returns the ranges that contain the cases except 5 % at each end; None without cases."""
    if not cases:
        return None
    outside = int(_OUTSIDE * len(cases))
    room = 1 + _ROOM / len(cases)
    ranges: dict[str, Range] = {}
    for field in ("calls", "tokens", "usd", "seconds"):
        given = [getattr(case, field) for case in cases]
        if None not in given:
            values = sorted(given)
            ranges[field] = Range(low=values[outside] / room, high=values[-1 - outside] * room)
    return Shares.model_validate({"id": SUPERVISOR, **ranges})


def _unseen(calls: float, seconds: float, model: str, price: Price, searches: float = 0) -> Shares:
    """Returns the usage that the limits of the request allow."""
    most = calls * limits.CONTEXT_TOKENS
    low = price(model, _LEAST_TOKENS, 0)
    high = price(model, most, searches)
    usd = None if low is None or high is None else Range(low=low, high=high)
    return Shares(
        id=SUPERVISOR,
        calls=Range(low=1, high=calls),
        tokens=Range(low=_LEAST_TOKENS, high=most),
        usd=usd,
        seconds=Range(low=1, high=seconds),
    )


def _total(plan: Plan, work: Mapping[str, Shares], own: Shares) -> Shares:
    """Returns the sum of the parts; its seconds are those of the longest chain."""
    depends_on = {subtask.id: subtask.depends_on for subtask in plan.folded().subtasks}
    ends: dict[str, Range] = {}
    for subtask in TopologicalSorter(depends_on).static_order():
        ends[subtask] = _longest(ends[other] for other in depends_on[subtask])
        if subtask in work:  # a person takes no time
            ends[subtask] = _sum([ends[subtask], work[subtask].seconds])
    parts = [*work.values(), own]
    prices = [part.usd for part in parts if part.usd is not None]
    return Shares(
        id=TOTAL,
        calls=_sum([part.calls for part in parts]),
        tokens=_sum([part.tokens for part in parts]),
        usd=_sum(prices) if len(prices) == len(parts) else None,
        seconds=_sum([_longest(ends.values()), own.seconds]),
    )


def _sum(ranges: Sequence[Range]) -> Range:
    return Range(low=sum(part.low for part in ranges), high=sum(part.high for part in ranges))


def _longest(ranges: Iterable[Range]) -> Range:
    longest = Range(low=0.0, high=0.0)
    for part in ranges:
        longest = Range(low=max(longest.low, part.low), high=max(longest.high, part.high))
    return longest


def _usage_per_candidate(
    usage: Usage,
    seconds: float,
    candidates: int = 1,
    role: str = _REST,
) -> CandidateUsage:
    """Returns the usage per candidate; candidates ran in parallel."""
    return CandidateUsage(
        role=role,
        calls=usage.model_calls / candidates,
        tokens=usage.tokens / candidates,
        usd=None if usage.usd is None else usage.usd / candidates,
        seconds=seconds,
    )
