"""Twenty changes for the worse: of the prompt, of the brain, of the file, of how a run is asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.sensitivity.clerk import Clerk
from tests.sensitivity.fleet import COUNT, OPEN, ROW, RULES, SIGN, Fleet, team


@dataclass(frozen=True)
class Change:
    """A change: another team, brain, file or request than before."""

    name: str
    team: Mapping[str, Any] = field(default_factory=team)
    brain: Callable[[int], Clerk] = Clerk
    file: Callable[[Fleet], Fleet] = lambda table: table
    request: Mapping[str, Any] = field(default_factory=dict)


def _without(*rules: str) -> Mapping[str, Any]:
    return team(tuple(rule for rule in RULES if rule not in rules))


def _slipping(share: int, by: Callable[[float], float] = lambda value: value + 7) -> Callable[[int], Clerk]:
    return lambda luck: Clerk(luck, share, by)


def _halved(table: Fleet) -> Fleet:
    return Fleet(table.head, table.rows[::2])


def _renamed(column: str, name: str) -> Callable[[Fleet], Fleet]:
    return lambda table: Fleet(tuple(name if each == column else each for each in table.head), table.rows)


def _exchanged(table: Fleet) -> Fleet:
    """Returns the table with each ship's figures in the row of the next one."""
    names = [row[0] for row in table.rows]
    rows = [(name, *row[1:]) for name, row in zip([*names[1:], names[0]], table.rows, strict=True)]
    return Fleet(table.head, tuple(rows))


CHANGES = (
    Change("prompt: the row is not named", _without(ROW)),
    Change("prompt: the sign is left out", _without(SIGN)),
    Change("prompt: the count has no condition", _without(COUNT)),
    Change("prompt: what is open is answered", _without(OPEN)),
    Change("prompt: two rules are lost", _without(SIGN, COUNT)),
    Change("prompt: all rules are lost", _without(*RULES)),
    Change("brain: 25 % of the numbers are off", brain=_slipping(25)),
    Change("brain: 30 % of the numbers are off", brain=_slipping(30)),
    Change("brain: 40 % of the numbers are off", brain=_slipping(40)),
    Change("brain: half of the numbers are off", brain=_slipping(50)),
    Change("brain: 30 % are ten times too large", brain=_slipping(30, lambda value: value * 10)),
    Change("brain: 30 % have the other sign", brain=_slipping(30, lambda value: -value)),
    Change("file: lengths are in feet", file=lambda table: table.changed("length_m", lambda cell: round(cell * 3.28))),
    Change(
        "file: balances are in thousands", file=lambda table: table.changed("balance_eur", lambda cell: cell // 1000)
    ),
    Change("file: crews are without officers", file=lambda table: table.changed("crew", lambda cell: cell - 6)),
    Change("file: half of the rows are gone", file=_halved),
    Change("file: a column has another name", file=_renamed("length_m", "size")),
    Change("file: figures stand one row too low", file=_exchanged),
    Change("request: the role cannot query", team(tools=("list_tables",))),
    Change("request: two turns alone", request={"max_turns": 2}),
)
