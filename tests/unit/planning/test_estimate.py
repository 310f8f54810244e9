"""What a plan is likely to take: the range of earlier runs, and how often later ones keep to it."""

import random  # noqa: TID251  seeded
from datetime import UTC, datetime, timedelta

import pytest

from supervision.contract.plan import Estimate, Plan, Range, Shares, Subtask
from supervision.contract.progress import Counts
from supervision.contract.result import RunResult, SubtaskReport
from supervision.contract.team import Person, RoleCard, TeamCard
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


def price(model: str, tokens: float) -> float | None:
    return tokens * 1e-6 if model in MODELS.values() else None


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
