"""What a plan is likely to take: the range of earlier runs, and how often later ones keep to it."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from supervision.contract.plan import Estimate, Plan, Range, Shares, Subtask
from supervision.contract.progress import Counts
from supervision.contract.result import RunResult, SubtaskReport
from supervision.contract.team import Person, RoleCard, TeamCard, ToolCard
from supervision.contract.usage import Usage
from supervision.planning.estimate import RunSample, estimate_of, sample_of
from supervision.run.run_state import timing

MODELS = {"reader": "small", "analyst": "large", "checker": "small"}
TYPICAL = {
    "reader": (0.45, 9.2, 0.4),
    "analyst": (0.2, 10.4, 0.7),
    "checker": (0.7, 8.3, 0.3),
}  # calls, tokens of a call
TEAM = TeamCard(
    name="t", generalist="reader", roles=[RoleCard(name=name, model=model) for name, model in MODELS.items()]
)
START = datetime(2026, 1, 1, tzinfo=UTC)


def usage_of(chance: random.Random, role: str, size: float, least: int = 1) -> Usage:
    """Returns what work takes: geometric calls, lognormal tokens that grow with the conversation."""
    more, middle, spread = TYPICAL[role]
    calls = least
    while calls < 10 and chance.random() > more:
        calls += 1
    tokens = sum(round(size * chance.lognormvariate(middle, spread) * (1 + 0.2 * turn)) for turn in range(calls))
    return Usage(model_calls=calls, input_tokens=tokens, usd=tokens * 1e-6)


def a_plan(chance: random.Random) -> Plan:
    """Returns 1 to 8 subtasks, which depend on some before them."""
    subtasks: list[Subtask] = []
    for number in range(chance.randint(1, 8)):
        after = [s.id for s in subtasks if chance.random() < 0.2]
        subtasks.append(Subtask(id=f"t{number}", description="d", role=chance.choice([*MODELS]), depends_on=after))
    return Plan(subtasks=subtasks)


def a_run(chance: random.Random, plan: Plan) -> RunResult:
    """Returns what came of a plan. The goal makes all work of a run larger, attempts are repeated, work is added."""
    size = chance.lognormvariate(0, 0.25)
    reports, own = [], usage_of(chance, "analyst", size, 2 + len(plan.subtasks) // 3)
    added = [Subtask(id=f"r{i}", description="d", role="reader") for i in range(chance.random() < 0.15)]
    for subtask in [*plan.subtasks, *added]:
        usage = usage_of(chance, subtask.role, size)
        while chance.random() < 0.08:
            usage += usage_of(chance, subtask.role, size)
        ended = START + timedelta(seconds=usage.model_calls * chance.lognormvariate(1.5, 0.5))
        report = SubtaskReport(id=subtask.id, role=subtask.role, model=MODELS[subtask.role], usage=usage)
        times = {"started_at": START.isoformat(), "finished_at": ended.isoformat(), "depends_on": subtask.depends_on}
        reports.append(report.model_copy(update=times))
    whole = sum((report.usage for report in reports), own)
    seconds = own.model_calls * chance.lognormvariate(2, 0.5)
    return RunResult(subtasks=reports, usage=whole, timing=timing(reports, 500.0, seconds, START))


def samples_of(chance: random.Random, count: int) -> list[RunSample]:
    made = []
    for _ in range(count):
        plan = a_plan(chance)
        made.append(sample_of(a_run(chance, plan), plan, len(plan.subtasks)))
    return made


def price(model: str, tokens: float, searches: float) -> float | None:
    return tokens * 1e-6 + searches * 0.01 if model in MODELS.values() else None


def estimated(plan: Plan, samples: list[RunSample], team: TeamCard = TEAM) -> Estimate:
    return estimate_of(plan, team, samples, 10, 12, price)


def held(seed: int, calibration: int, runs: int = 200) -> tuple[float, float, float, float]:
    """Returns of so many runs the shares of those whose calls, tokens and seconds were in the range, and its width."""
    chance = random.Random(seed)
    samples, hits, widths = samples_of(chance, calibration), [0, 0, 0], []
    for _ in range(runs):
        plan = a_plan(chance)
        shown, took = estimated(plan, samples).total, sample_of(a_run(chance, plan), plan, len(plan.subtasks)).total
        hits[0] += took.calls in shown.calls
        hits[1] += took.tokens in shown.tokens
        hits[2] += took.seconds in shown.seconds
        widths.append(shown.tokens.high / max(1.0, shown.tokens.low))
    calls, tokens, seconds = (hit / runs for hit in hits)
    return calls, tokens, seconds, sorted(widths)[runs // 2]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_range_holds_nine_runs_of_ten_after_a_hundred(seed: int) -> None:
    calls, tokens, _, _ = held(seed, 100)
    assert 0.85 <= calls <= 0.97
    assert 0.85 <= tokens <= 0.97


def test_fewer_runs_make_it_wider() -> None:
    calls, tokens, _, wide = held(5, 10)
    assert min(calls, tokens) >= 0.9
    assert wide > 1.3 * held(5, 100, runs=50)[3]
    calls, tokens, _, widest = held(5, 0, runs=50)
    assert (calls, tokens) == (1, 1)
    assert widest > 10 * wide


def test_the_same_samples_give_the_same_ranges() -> None:
    chance = random.Random(3)
    samples, plan = samples_of(chance, 30), a_plan(chance)
    assert estimated(plan, samples) == estimated(plan, samples)


def test_without_a_price_there_are_no_dollars_and_a_person_costs_nothing() -> None:
    who = Person(who="Ann")
    roles = [RoleCard(name="reader", model="unlisted"), RoleCard(name="counsel", model="unlisted", person=who)]
    plan = Plan(
        subtasks=[Subtask(id="t1", description="d", role="reader"), Subtask(id="t2", description="d", role="counsel")]
    )
    shown = estimated(plan, [], TeamCard(name="t", generalist="reader", roles=roles))
    assert [part.id for part in shown.parts] == ["t1", "supervisor"]
    assert (shown.total.usd, shown.parts[0].calls) == (None, Range(low=1, high=10))


def test_searches_of_a_role_that_was_never_seen_are_paid() -> None:
    plan, usd = Plan(subtasks=[Subtask(id="t1", description="d", role="reader")]), list[float]()
    for searches in (0, 5):
        role = RoleCard(name="reader", model=MODELS["reader"], tools=[ToolCard(name="web_search", searches=searches)])
        shown = estimated(plan, [], TeamCard(name="t", generalist="reader", roles=[role])).parts[0].usd
        assert shown is not None
        usd.append(shown.high)
    assert usd[1] - usd[0] == pytest.approx(10 * 5 * 0.01)  # ten turns


def test_a_chain_takes_longer_than_the_same_subtasks_side_by_side() -> None:
    samples = samples_of(random.Random(4), 100)
    free = [Subtask(id=f"t{i}", description="d", role="reader") for i in range(5)]
    chain = [s.model_copy(update={"depends_on": [f"t{i - 1}"] if i else []}) for i, s in enumerate(free)]
    beside, in_turn = (estimated(Plan(subtasks=subtasks), samples).total for subtasks in (free, chain))
    assert in_turn.seconds.high > beside.seconds.high
    assert in_turn.tokens == beside.tokens


def test_what_depends_on_items_waits_for_their_template() -> None:
    samples = samples_of(random.Random(4), 100)
    each = Subtask(id="t1", description="d", role="reader", for_each="items:t0")
    item = Subtask(id="t1.1", description="d", role="reader")
    after = Subtask(id="t2", description="d", role="reader", depends_on=["t1"])
    expanded = [each, after.model_copy(update={"depends_on": ["t1.1"]}), item]
    assert estimated(Plan(subtasks=expanded), samples) == estimated(Plan(subtasks=[each, after]), samples)


def test_a_sample_counts_items_by_themselves_candidates_as_one_each_and_the_rest_together() -> None:
    def report(subtask_id: str, calls: int, counts: Counts | None = None) -> SubtaskReport:
        usage = Usage(model_calls=calls, input_tokens=100 * calls)
        return SubtaskReport(id=subtask_id, role="reader", model="small", usage=usage, counts=counts)

    reports = [report("t1", 6), report("t2", 0, Counts(total=2)), report("t2.1", 1), report("t2.2", 2), report("t3", 4)]
    result = RunResult(subtasks=reports, usage=Usage(model_calls=16, input_tokens=1600))
    plan = Plan(subtasks=[Subtask(id="t1", description="d", candidates=3)])
    sample = sample_of(result, plan, planned=2)
    assert [part.calls for part in sample.parts] == [2, 1, 2]
    assert (sample.rest.calls, sample.rest.tokens, sample.total.calls) == (7, 700, 16)


def test_the_last_twenty_estimates_are_judged() -> None:
    def shown(high: float) -> Shares:
        every = Range(low=0, high=high)
        return Shares(id="total", calls=every, tokens=Range(low=0, high=1e9), seconds=every)

    chance = random.Random(6)
    samples = [
        s.model_copy(update={"estimate": shown(1000 if i % 4 else 0)}) for i, s in enumerate(samples_of(chance, 40))
    ]
    shows = estimated(a_plan(chance), [*samples, *samples_of(chance, 5)])
    assert (shows.samples, shows.held, shows.of) == (45, 15, 20)
