"""Cases: a request, what goes wrong with its model calls, what people do meanwhile; each a function of its seed.

Most are small, because most races need no more than one to three subtasks: a case then costs a third of the CPU, and
three are played for one. The others have a wide plan, or nested runs.
"""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any

from temporal_supervisor.supervision.base import limits

TURN_FAULTS = (
    "429", "529", "500", "400", "refusal", "impossible", "unsupported", "cut", "silent", "partial", "no_tool", "hang",
)  # fmt: skip
OWN_FAULTS = ("429", "529", "500", "400", "refusal", "garbage", "empty", "cut", "invalid", "hang")
LASTING = ("400", "refusal")
"""Faults of the supervisor's own calls that may end a run."""

ROLES = {
    "relay": ("lone", "junior", "scribe", "group", "asker", "counsel"),
    "house": ("hand", "storey"),
    "floor": ("walker", "bench"),
    "lab": ("finder", "scribe", "asker"),
}
TEAMS = {"group": "lab", "bench": "lab", "storey": "floor"}
"""Roles that are teams. Their names end the ids of their subtasks, so that a path tells which team plans there."""

GOAL = "Weigh the pears of the garden"


BLOCK = 50
"""So many seeds in a row are played together, in the same surroundings."""


@dataclass(frozen=True)
class Surroundings:
    """What the cases of a block share. `restarts`: after which shares of their calls the Workers are replaced.

    `over_http`: the model is called as in production, for twice the time. `watched`: the run and its worker agents are
    queried and updated all the time, as by an impatient person.
    """

    cached_workflows: int = limits.CACHED_WORKFLOWS
    over_http: bool = False
    watched: bool = False
    restarts: tuple[float, ...] = ()

    @property
    def replays_all(self) -> bool:
        """True if nearly every workflow task replays its history: then the cases are small."""
        return self.cached_workflows <= _FEW

    @property
    def task_timeout(self) -> timedelta | None:
        """The server gives a task that comes while its workflow leaves the cache out again after that."""
        return timedelta(seconds=2) if self.replays_all else None


_FEW = 16
_UNUSUAL = {2: Surroundings(cached_workflows=0), 3: Surroundings(over_http=True), 5: Surroundings(_FEW)}


def surroundings(seed: int) -> Surroundings:
    """Returns the surroundings of a seed: of each so-manieth block unusual ones."""
    number = (seed - 1) // BLOCK
    dice = Random(f"block {number}")
    usual = Surroundings(dice.choice([limits.CACHED_WORKFLOWS, limits.CACHED_WORKFLOWS, 200]))
    restarts = tuple(sorted(dice.random() for _ in range(number % 3)))
    around = replace(_UNUSUAL.get(number % 8, usual), restarts=restarts)
    return replace(around, watched=number % 2 == 1)


@dataclass(frozen=True)
class Shape:
    """How large the plans of a case are: `sizes` to choose from at the root, levels, the `weight` of nested runs."""

    sizes: tuple[int, ...]
    depths: tuple[int, ...]
    weight: int = 1
    calls: int = 14
    """When people do something: up to that call."""
    waits: int = 0
    """The items of its one template, each of which waits for a person; without any it has a graph."""


SMALL = Shape((1, 1, 1, 2, 2, 3), (1,), calls=6)
WIDE = Shape((4, 6, 12), (1, 2))
TREE = Shape((1, 1, 2, 3), (2, 3), weight=2)
CROWD = Shape((1,), (1,), calls=3, waits=50)
NESTED_SIZES = (1, 1, 1, 2, 3)


@dataclass(frozen=True)
class Deed:
    """What somebody does as soon as the model was called so often for the run."""

    after_calls: int
    action: str


@dataclass(frozen=True)
class Case:
    """One run. `trouble` is the share of calls that go wrong, `tokens` what each reply counts on either side.

    From the call `unpaid_from` on the account is refused, until somebody has seen it and resumes. `reset_at_end`: it
    is reset once it has ended.
    """

    seed: int
    shape: Shape
    team: str
    request: dict[str, Any] = field(compare=False)
    trouble: float
    turn_faults: tuple[str, ...]
    own_faults: tuple[str, ...]
    latency: float
    tokens: int
    deeds: tuple[Deed, ...]
    unpaid_from: int | None
    reset_at_end: bool

    def draw(self, *parts: object) -> Random:
        """Returns the dice for one decision: the same for the same `parts`."""
        return Random(f"{self.seed}/{'/'.join(map(str, parts))}")


def case(seed: int) -> Case:
    """Returns the case of a seed."""
    dice = Random(f"case {seed}")
    shape = dice.choices([SMALL, WIDE, TREE, CROWD], [33, 2, 4, 1])[0]
    if surroundings(seed).replays_all:
        shape = SMALL
    team = "relay" if shape.waits else dice.choices(["relay", "house"], [3, 1])[0]
    impatient = dice.random() < 0.15
    deeds = _deeds(dice, shape.calls)
    reset_at_end = dice.random() < 0.08
    acts = {deed.action for deed in deeds}
    # The execution after a reset has the deadline, but nobody cancels it once more; more time may be an hour.
    ends = (impatient and "extend" not in acts) or ("cancel" in acts and "reset" not in acts and not reset_at_end)
    turn_faults = _some(dice, TURN_FAULTS, ends)
    own_faults = _some(dice, OWN_FAULTS, ends)
    if dice.random() < 0.7:
        own_faults = tuple(fault for fault in own_faults if fault not in LASTING) or ("529",)
    tokens = dice.choice([10, 10, 10, 1000, 2500])
    request: dict[str, Any] = {
        "goal": GOAL,
        "team": team,
        "strategy": "plan" if shape.waits else dice.choices(["plan", "auto", "step", "route"], [6, 4, 2, 1])[0],
        "max_parallel": shape.waits or dice.choice([1, 2, 4, 8]),
        "max_turns": dice.choice([1, 2, 3, 4]),
        "max_depth": dice.choice(shape.depths),
        "max_subtasks": _most_subtasks(seed, shape),
        "max_reviews": dice.choice([0, 0, 0, 1, 2]),
        "max_replans": dice.choice([0, 0, 1, 2]),
        "success": dice.choice(["any", "any", "any", "all", "1/2"]),
        "incremental_synthesis": dice.choice([0, 0, 0, 2, 3]),
        "attachments": [{"name": "trees", "text": "\n".join(f"tree {n}" for n in range(shape.waits)) or "elm\noak"}],
        "models": {"workers": [f"w-{seed}"], "supervisor": [f"s-{seed}"]},
    }
    if dice.random() < 0.15:
        request["models"]["workers"].append(f"v-{seed}")
    if dice.random() < 0.12:
        request["approve_plan"] = True
    if dice.random() < 0.15:
        request["on_subtask_failure"] = "ask"
    if impatient:
        request["deadline"] = f"PT{dice.randint(5, 8)}S"
    if tokens > 10 and dice.random() < 0.6:
        request["budget"] = {"tokens": dice.choice([12_000, 25_000, 60_000])}
    if dice.random() < 0.1:
        request["subtask_timeout"] = 2.0
    if dice.random() < 0.15 and request["strategy"] in ("plan", "auto"):
        request["plan"] = {"subtasks": graph(seed, shape, "", team, request["max_depth"])}
    return Case(
        seed=seed,
        shape=shape,
        team=team,
        request=request,
        trouble=dice.choice([0.0, 0.05, 0.1, 0.1, 0.2, 0.5]),
        turn_faults=turn_faults,
        own_faults=own_faults,
        latency=dice.choice([0.0, 0.02, 0.2]),
        tokens=tokens,
        deeds=deeds,
        unpaid_from=dice.randint(1, shape.calls) if dice.random() < 0.08 else None,
        reset_at_end=reset_at_end,
    )


def _most_subtasks(seed: int, shape: Shape) -> int:
    """Returns the limit of all levels together; a small one refuses plans that leave teams too few."""
    return Random(f"subtasks {seed}").choice([12, 60, 60]) if shape is TREE else 12


def _deeds(dice: Random, calls: int) -> tuple[Deed, ...]:
    actions = ["cancel", "cancel", "reset", "reset", "extend", "tighten", "look", "resume"]
    actions += ["cancel_child", "terminate_child"]
    actions += ["pause", "pause", "pause_now", "steer", "steer", "steer_all", "retry", "retry", "skip", "skip"]
    return tuple(
        sorted(
            (Deed(dice.randint(1, calls), dice.choice(actions)) for _ in range(dice.choice([0, 0, 1, 1, 2, 3]))),
            key=lambda deed: deed.after_calls,
        )
    )


def _some(dice: Random, faults: tuple[str, ...], ends: bool) -> tuple[str, ...]:
    """Returns some of the faults; calls that are never answered only where something else ends the run."""
    chosen = dice.sample(faults, dice.randint(1, 5))
    return tuple(fault for fault in chosen if fault != "hang" or ends) or ("529",)


def graph(seed: int, shape: Shape, path: str, team: str, levels: int) -> list[dict[str, Any]]:
    """Returns the subtasks that the supervisor at `path` plans; `levels` may begin from there on, its own included."""
    dice = Random(f"graph {seed}/{path}")
    if shape.waits:
        role = dice.choice(["counsel", "counsel", "asker"])
        return [item(f"t1-{role}", role, [], for_each="lines:trees")]
    sizes = NESTED_SIZES if path else shape.sizes
    planned: list[dict[str, Any]] = []
    for number in range(1, dice.choice(sizes) + 1):
        roles = [role for role in ROLES[team] if role not in TEAMS or levels > 1]
        role = dice.choices(roles, [shape.weight if role in TEAMS else 3 for role in roles])[0]
        earlier = [item["id"] for item in planned]
        after = dice.sample(earlier, min(len(earlier), dice.choice([0, 0, 1, 1, 2, 3])))
        each = dice.random() < 0.15 and role not in TEAMS and not path
        planned.append(
            item(
                f"t{number}-{role}",
                role,
                after,
                **({"for_each": f"items:{after[0]}" if after else "lines:trees"} if each else {}),
                importance=dice.choice(["required", "required", "optional"]),
                candidates=1 if role in TEAMS or role == "counsel" else dice.choice([1] * 9 + [2]),
            )
        )
    return planned


def item(subtask_id: str, role: str, after: list[str], **more: Any) -> dict[str, Any]:
    """Returns a subtask as a planner writes it."""
    description = f"Find out about part {subtask_id} of garden 1"
    return {"id": subtask_id, "description": description, "role": role, "depends_on": after, **more}
