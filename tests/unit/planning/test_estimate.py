"""What a plan is likely to take: the range of earlier runs, and how often later ones keep to it."""

import random
from collections.abc import Sequence
from datetime import timedelta
from statistics import fmean
from typing import Any

import pytest

from temporal_supervisor.supervision.contract.plan import Estimate, Plan, Range, Shares, Subtask
from temporal_supervisor.supervision.contract.progress import Counts
from temporal_supervisor.supervision.contract.result import RunResult, SubtaskReport, Timing
from temporal_supervisor.supervision.contract.team import Person, RoleCard, TeamCard, ToolCard
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.planning.estimate import CandidateUsage, RunSample, estimate_of, sample_of
from tests.unit.shapes import START

MODELS = {"reader": "small", "analyst": "large", "checker": "small"}
TEAM = TeamCard(
    name="t", generalist="reader", roles=[RoleCard(name=name, model=model) for name, model in MODELS.items()]
)


def price(model: str, tokens: float, searches: float) -> float | None:
    return tokens * 1e-6 + searches * 0.01 if model in MODELS.values() else None


def estimated(plan: Plan, samples: list[RunSample], team: TeamCard = TEAM) -> Estimate:
    return estimate_of(plan, team, samples, 10, 12, price)


def reading(subtask_id: str, after: Sequence[str] = (), **more: Any) -> Subtask:
    return Subtask(id=subtask_id, description="d", role="reader", depends_on=list(after), **more)


def took(tokens: float, role: str = "reader", **more: Any) -> CandidateUsage:
    return CandidateUsage(**{"role": role, "calls": 1, "tokens": tokens, "usd": 1.0, "seconds": 10.0} | more)


def sample(*parts: CandidateUsage, **own: Any) -> RunSample:
    return RunSample(parts=list(parts), rest=took(100, role="", **own), total=took(0))


def report(subtask_id: str, calls: int, seconds: float = 0, **more: Any) -> SubtaskReport:
    """A report of the reader; without seconds its subtask has not ended."""
    usage = Usage(model_calls=calls, input_tokens=200 * calls, usd=0.2 * calls)
    ended = (START + timedelta(seconds=seconds)).isoformat() if seconds else None
    began = START.isoformat()
    return SubtaskReport(id=subtask_id, role="reader", usage=usage, started_at=began, finished_at=ended, **more)


def rows(estimate: Estimate) -> dict[str, tuple[float, ...]]:
    """Returns calls, tokens and seconds, lowest and highest, by part."""
    ranges = {part.id: (part.calls, part.tokens, part.seconds) for part in [*estimate.parts, estimate.total]}
    return {part: tuple(n for one in three for n in (one.low, one.high)) for part, three in ranges.items()}


def test_without_earlier_runs_the_limits_are_the_range() -> None:
    """10 turns a subtask, of 100,000 tokens each; the supervisor plans, has 10 turns, reviews and refines."""
    plan = Plan(subtasks=[reading("a"), reading("b", timeout_seconds=90), reading("c", ["a", "b"])])
    shown = estimate_of(plan, TEAM, [], 10, 12, lambda model, tokens, searches: tokens * {"small": 1.23456e-7}[model])
    assert rows(shown) == {
        "a": (1, 10, 500, 1e6, 1, 600),
        "b": (1, 10, 500, 1e6, 1, 90),
        "c": (1, 10, 500, 1e6, 1, 600),
        "supervisor": (1, 19, 500, 1.9e6, 1, 1140),
        "total": (4, 49, 2000, 4.9e6, 3, 600 + 600 + 1140),  # a, c and the supervisor, one after the other
    }
    assert shown.parts[0].usd == Range(low=500 * 1.23456e-7, high=1e6 * 1.23456e-7)
    assert rows(estimated(Plan(), []))["total"] == (1, 13, 500, 1.3e6, 1, 780)
    assert (shown.samples, shown.of) == (0, 0)
    full = Plan(subtasks=[reading("a", for_each="rows:t"), *(reading(f"b{n}") for n in range(11))])
    assert estimated(full, []).parts[0].calls == Range(low=1, high=10), "room for one item"


@pytest.mark.parametrize(
    ("subtask", "calls", "seconds"),
    [
        (reading("a", candidates=3), (3, 30), (1, 600)),  # side by side
        (reading("a", for_each="rows:t"), (1, 110), (1, 6600)),  # 12 subtasks but this one, in turn
        (reading("a", for_each="rows:t", max_items=4), (1, 40), (1, 2400)),
        (Subtask(id="a", description="d", role="unit"), (1, 120), (1, 7200)),  # a team: of 12 subtasks
    ],
)
def test_what_is_done_more_than_once_takes_so_much_more(
    subtask: Subtask, calls: tuple[float, float], seconds: tuple[float, float]
) -> None:
    unit = RoleCard(name="unit", model="small", team="t")
    team = TEAM.model_copy(update={"roles": [*TEAM.roles, unit]})
    part = estimated(Plan(subtasks=[subtask]), [], team).parts[0]
    assert ((part.calls.low, part.calls.high), (part.seconds.low, part.seconds.high)) == (calls, seconds)


def test_few_cases_make_the_range_wider_by_ten_times_their_number() -> None:
    """Two cases: six times on each side; candidates multiply calls and tokens, not the seconds."""
    samples = [sample(took(1000, seconds=10.26, usd=0.12344)), sample(took(3000, seconds=20.26, usd=0.2))]
    shown = estimated(Plan(subtasks=[reading("a", candidates=2)]), samples)
    assert rows(shown)["a"] == pytest.approx((2 / 6, 12, 2000 / 6, 36000, 10.26 / 6, 20.26 * 6))
    assert shown.parts[0].usd == Range(low=0.12344 / 6 * 2, high=0.2 * 6 * 2)
    in_turn = estimated(Plan(subtasks=[reading("a", for_each="rows:t", max_items=2)]), samples)
    assert rows(in_turn)["a"] == pytest.approx((1 / 6, 12, 1000 / 6, 36000, 10.26 / 6, 20.26 * 12))


def test_one_case_without_a_price_leaves_the_dollars_open() -> None:
    priced, unpriced = sample(took(10)), sample(took(10, usd=None))
    plan = Plan(subtasks=[reading("a")])
    shown = estimated(plan, [priced, unpriced])
    assert (shown.parts[0].usd, shown.total.usd) == (None, None)
    assert shown.parts[1].usd == Range(low=1 / 6, high=6.0)
    assert estimated(plan, [priced, priced]).total.usd == Range(low=2 / 6, high=12.0)


def test_the_range_is_that_of_all_cases_but_five_of_a_hundred_on_each_side_and_the_whole_is_the_sum() -> None:
    samples = [sample(took(1000 * case)) for case in range(1, 101)]
    shown = rows(estimated(Plan(subtasks=[reading("a"), reading("b")]), samples))
    assert shown["a"][2:4] == shown["b"][2:4] == pytest.approx((6000 / 1.1, 95000 * 1.1))
    assert shown["total"][2:4] == pytest.approx(((12000 + 100) / 1.1, (190000 + 100) * 1.1))


def test_a_sample_has_what_one_candidate_took_and_what_is_left_for_the_supervisor() -> None:
    reports = [report("t1", 2, seconds=30, held_seconds=10), report("t2", 2, seconds=5), report("t3", 2)]
    result = RunResult(
        subtasks=reports,
        usage=Usage(model_calls=9, input_tokens=2000, usd=2.0),
        timing=Timing(sequential_seconds=25.5, critical_path_seconds=21.0),
    )
    made = sample_of(result, Plan(subtasks=[reading("t1", candidates=2), reading("t2")]), planned=3)
    assert made.parts == [
        CandidateUsage(role="reader", calls=1, tokens=200, usd=0.2, seconds=20),
        CandidateUsage(role="reader", calls=2, tokens=400, usd=0.4, seconds=5),
        CandidateUsage(role="reader", calls=2, tokens=400, usd=0.4, seconds=0),
    ]
    assert made.rest.model_copy(update={"usd": None}) == CandidateUsage(calls=3, tokens=800, seconds=0.5)
    assert made.rest.usd == pytest.approx(0.8)
    assert made.total == CandidateUsage(calls=9, tokens=2000, usd=2.0, seconds=21.0)
    unpriced = result.model_copy(update={"usage": Usage(model_calls=9, usd=None), "subtasks": []})
    assert sample_of(unpriced, Plan(), planned=0).total.usd is None


def test_the_range_holds_nine_runs_of_ten_after_a_hundred_and_is_of_use() -> None:
    """Goals make all work of a run larger or smaller; calls are geometric, tokens grow with the conversation."""
    chance = random.Random(1)

    def work(role: str, size: float) -> CandidateUsage:
        more, middle, spread = {"reader": (0.45, 9.2, 0.4), "analyst": (0.2, 10.4, 0.7), "": (0.3, 9.5, 0.5)}[role]
        calls = next((n for n in range(1, 10) if chance.random() < more), 10)
        tokens = sum(size * chance.lognormvariate(middle, spread) * (1 + 0.2 * turn) for turn in range(calls))
        return took(tokens, role, calls=calls)

    def run(plan: Plan) -> RunSample:
        size = chance.lognormvariate(0, 0.25)
        parts, rest = [work(subtask.role, size) for subtask in plan.subtasks], work("", size)
        calls, tokens = (sum(getattr(each, field) for each in (*parts, rest)) for field in ("calls", "tokens"))
        return RunSample(parts=parts, rest=rest, total=took(tokens, "", calls=calls))

    def a_plan(most: int = 8) -> Plan:
        roles = [chance.choice(["reader", "analyst"]) for _ in range(chance.randint(1, most))]
        return Plan(subtasks=[Subtask(id=f"t{n}", description="d", role=role) for n, role in enumerate(roles)])

    samples, judged = [run(a_plan()) for _ in range(100)], list[tuple[Shares, CandidateUsage]]()
    for _ in range(200):
        plan = a_plan()
        judged.append((estimated(plan, samples).total, run(plan).total))
    assert sum(came.calls in shown.calls for shown, came in judged) >= 180
    assert sum(came.tokens in shown.tokens for shown, came in judged) >= 180
    assert fmean(shown.calls.high / came.calls for shown, came in judged) < 4
    assert fmean(shown.tokens.high / came.tokens for shown, came in judged) < 8


def test_without_a_price_there_are_no_dollars_and_a_person_costs_nothing() -> None:
    who = Person(who="Ann")
    roles = [RoleCard(name="reader", model="unlisted"), RoleCard(name="counsel", model="unlisted", person=who)]
    plan = Plan(subtasks=[reading("t1"), reading("t2", ["t1"]).model_copy(update={"role": "counsel"})])
    shown = estimated(plan, [], TeamCard(name="t", generalist="reader", roles=roles))
    assert [part.id for part in shown.parts] == ["t1", "supervisor"]
    assert shown.total.seconds.low == 2
    assert (shown.total.usd, shown.parts[0].calls) == (None, Range(low=1, high=10))


def test_searches_of_a_role_that_was_never_seen_are_paid() -> None:
    plan, usd = Plan(subtasks=[Subtask(id="t1", description="d", role="reader")]), list[float]()
    for searches in (0, 5):
        role = RoleCard(name="reader", model=MODELS["reader"], tools=[ToolCard(name="web_search", searches=searches)])
        shown = estimated(plan, [], TeamCard(name="t", generalist="reader", roles=[role])).parts[0].usd
        assert shown is not None
        assert shown.low == 0.0005, "one call, and no search"
        usd.append(shown.high)
    assert usd[1] - usd[0] == pytest.approx(10 * 5 * 0.01)  # ten turns


def test_what_depends_on_items_waits_for_their_template() -> None:
    samples = [sample(took(10), took(20))]
    each = Subtask(id="t1", description="d", role="reader", for_each="items:t0")
    item = Subtask(id="t1.1", description="d", role="reader")
    after = Subtask(id="t2", description="d", role="reader", depends_on=["t1"])
    expanded = [each, after.model_copy(update={"depends_on": ["t1.1"]}), item]
    assert estimated(Plan(subtasks=expanded), samples) == estimated(Plan(subtasks=[each, after]), samples)


def test_a_sample_counts_items_by_themselves_candidates_as_one_each_and_the_rest_together() -> None:
    template = report("t2", 0, counts=Counts(total=2))
    reports = [report("t1", 6), template, report("t2.1", 1), report("t2.2", 2), report("t3", 4)]
    result = RunResult(subtasks=reports, usage=Usage(model_calls=16, input_tokens=3200))
    plan = Plan(subtasks=[Subtask(id="t1", description="d", candidates=3)])
    sample = sample_of(result, plan, planned=2)
    assert [part.calls for part in sample.parts] == [2, 1, 2]
    assert (sample.rest.calls, sample.rest.tokens, sample.total.calls) == (7, 1400, 16)
    many = [report(f"t{n}", n) for n in range(250)]
    large = sample_of(RunResult(subtasks=many, usage=Usage(model_calls=sum(range(250)))), Plan(), planned=250)
    assert [part.calls for part in large.parts] == [*range(0, 250, 3)], "at most a hundred"
    assert large.rest.calls == 0


def test_the_last_twenty_estimates_are_judged() -> None:
    def shown(high: float) -> Shares:
        every = Range(low=0, high=high)
        return Shares(id="total", calls=every, tokens=Range(low=0, high=1e9), seconds=every)

    judged = [sample(took(10)).model_copy(update={"estimate": shown(1 if n % 4 else 0.5)}) for n in range(28)]
    shows = estimated(Plan(), [*judged, *[sample(took(10))] * 5])
    assert (shows.samples, shows.held, shows.of) == (33, 15, 20)
