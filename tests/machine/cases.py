"""Cases: a request, what goes wrong with its model calls, what people do meanwhile; each a function of its seed."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

TURN_FAULTS = (
    "429", "529", "500", "400", "refusal", "impossible", "unsupported", "cut", "silent", "partial", "no_tool", "hang",
)  # fmt: skip
OWN_FAULTS = ("429", "529", "500", "400", "refusal", "garbage", "empty", "cut", "invalid", "hang")
LASTING = ("400", "refusal")
"""Faults of the supervisor's own calls that may end a run."""

ROLES = {
    "relay": ("lone", "junior", "scribe", "group"),
    "house": ("hand", "storey"),
    "floor": ("walker", "bench"),
    "lab": ("finder", "scribe"),
}
TEAMS = {"group": "lab", "bench": "lab", "storey": "floor"}
"""Roles that are teams. Their names end the ids of their subtasks, so that a path tells which team plans there."""

GOAL = "Weigh the pears of the garden"


@dataclass(frozen=True)
class Deed:
    """What somebody does as soon as the model was called so often for the run."""

    after_calls: int
    action: str


@dataclass(frozen=True)
class Case:
    """One run. `trouble` is the share of calls that go wrong, `tokens` what each reply counts on either side.

    From the call `unpaid_from` on the account is refused, until somebody has seen it and resumes.
    """

    seed: int
    team: str
    request: dict[str, Any] = field(compare=False)
    trouble: float
    turn_faults: tuple[str, ...]
    own_faults: tuple[str, ...]
    latency: float
    tokens: int
    deeds: tuple[Deed, ...]
    unpaid_from: int | None

    def draw(self, *parts: object) -> Random:
        """Returns the dice for one decision: the same for the same `parts`."""
        return Random(f"{self.seed}/{'/'.join(map(str, parts))}")


def case(seed: int) -> Case:
    """Returns the case of a seed."""
    dice = Random(f"case {seed}")
    team = dice.choices(["relay", "house"], [3, 1])[0]
    impatient = dice.random() < 0.15
    deeds = _deeds(dice)
    ends = impatient or any(deed.action == "cancel" for deed in deeds)
    turn_faults = _some(dice, TURN_FAULTS, ends)
    own_faults = _some(dice, OWN_FAULTS, ends)
    if dice.random() < 0.7:
        own_faults = tuple(fault for fault in own_faults if fault not in LASTING) or ("529",)
    tokens = dice.choice([10, 10, 10, 1000, 2500])
    request: dict[str, Any] = {
        "goal": GOAL,
        "team": team,
        "strategy": dice.choices(["plan", "auto", "step", "route"], [6, 4, 2, 1])[0],
        "max_parallel": dice.choice([1, 2, 4, 8]),
        "max_turns": dice.choice([1, 2, 3, 4]),
        "max_depth": dice.choice([1, 2, 2]) if team == "relay" else dice.choice([2, 3]),
        "max_reviews": dice.choice([0, 0, 0, 1, 2]),
        "max_replans": dice.choice([0, 0, 1, 2]),
        "success": dice.choice(["any", "any", "any", "all", "1/2"]),
        "incremental_synthesis": dice.choice([0, 0, 0, 2, 3]),
        "models": {"workers": [f"w-{seed}"], "supervisor": [f"s-{seed}"]},
    }
    if dice.random() < 0.15:
        request["models"]["workers"].append(f"v-{seed}")
    if impatient:
        request["deadline"] = f"PT{dice.randint(5, 8)}S"
    if tokens > 10 and dice.random() < 0.6:
        request["budget"] = {"tokens": dice.choice([12_000, 25_000, 60_000])}
    if dice.random() < 0.1:
        request["subtask_timeout"] = 2.0
    if dice.random() < 0.15 and request["strategy"] in ("plan", "auto"):
        request["plan"] = {"subtasks": graph(seed, "", team, request["max_depth"])}
    return Case(
        seed=seed,
        team=team,
        request=request,
        trouble=dice.choice([0.0, 0.05, 0.1, 0.2, 0.3, 0.5]),
        turn_faults=turn_faults,
        own_faults=own_faults,
        latency=dice.choice([0.0, 0.02, 0.2]),
        tokens=tokens,
        deeds=deeds,
        unpaid_from=dice.randint(1, 12) if dice.random() < 0.08 else None,
    )


def _deeds(dice: Random) -> tuple[Deed, ...]:
    actions = ["cancel", "cancel", "extend", "look", "cancel_child", "terminate_child", "resume"]
    return tuple(
        sorted(
            (Deed(dice.randint(1, 14), dice.choice(actions)) for _ in range(dice.choice([0, 0, 1, 1, 2]))),
            key=lambda deed: deed.after_calls,
        )
    )


def _some(dice: Random, faults: tuple[str, ...], ends: bool) -> tuple[str, ...]:
    """Returns some of the faults; calls that are never answered only where something else ends the run."""
    chosen = dice.sample(faults, dice.randint(1, 5))
    return tuple(fault for fault in chosen if fault != "hang" or ends) or ("529",)


def graph(seed: int, path: str, team: str, levels: int) -> list[dict[str, Any]]:
    """Returns the subtasks that the supervisor at `path` plans; `levels` may begin from there on, its own included."""
    dice = Random(f"graph {seed}/{path}")
    sizes = [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 5, 12] if not path else [1, 1, 1, 2, 3]
    planned: list[dict[str, Any]] = []
    for number in range(1, dice.choice(sizes) + 1):
        roles = [role for role in ROLES[team] if role not in TEAMS or levels > 1]
        role = dice.choices(roles, [1 if role in TEAMS else 3 for role in roles])[0]
        earlier = [item["id"] for item in planned]
        after = dice.sample(earlier, min(len(earlier), dice.choice([0, 0, 1, 1, 2, 3])))
        planned.append(
            item(
                f"t{number}-{role}",
                role,
                after,
                importance=dice.choice(["required", "required", "optional"]),
                candidates=1 if role in TEAMS else dice.choice([1] * 9 + [2]),
            )
        )
    return planned


def item(subtask_id: str, role: str, after: list[str], **more: Any) -> dict[str, Any]:
    """Returns a subtask as a planner writes it."""
    description = f"Find out about part {subtask_id} of garden 1"
    return {"id": subtask_id, "description": description, "role": role, "depends_on": after, **more}
