"""How small a change `--no-worse-than` sees, and how often it sees one that is not there.

`python -m benchmarks.scores.chance` plays pairs of evals by dice, compares them as the command
does, and keeps the shares of those that were worse in `chance.json`.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from pydantic import TypeAdapter

from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.scores.score import Score
from temporal_supervisor.supervision.scores.score_table import EvalTable, compare_tables, table_of

FILE = Path(__file__).parent / "chance.json"
SIZES = (12, 30, 60)
LOSSES = (0.0, 0.1, 0.2, 0.3, 0.5)
_PAIRS = 200
_SEED = 45
_SILENT = 0.5  # of the wrong answers
_FIRM = 0.8  # of the questions are always right or always wrong before a change


class Chance(Model):
    """The share of pairs that were `worse`; `loss` is the chance to lose a right answer."""

    questions: int
    loss: float
    worse: float


def rows() -> list[Chance]:
    """Returns a row for each size and loss."""
    drawn = Random(_SEED)
    return [
        Chance(questions=size, loss=loss, worse=_share(drawn, size, loss))
        for size in SIZES
        for loss in LOSSES
    ]


def _share(drawn: Random, size: int, loss: float) -> float:
    worse = 0
    for _ in range(_PAIRS):
        chances = [_chance(drawn) for _ in range(size)]
        before = _eval(drawn, chances)
        after = _eval(drawn, [chance * (1 - loss) for chance in chances])
        (found,) = compare_tables(before, after)
        worse += found.is_worse
    return worse / _PAIRS


def _chance(drawn: Random) -> float:
    """Returns the chance that a question is answered rightly: most are firm, the others waver."""
    if drawn.random() < _FIRM:
        return float(drawn.random() < 0.75)
    return drawn.random()


def _eval(drawn: Random, chances: Sequence[float]) -> EvalTable:
    scores = list[Score]()
    for number, chance in enumerate(chances):
        silent = "wrong_unflagged" if drawn.random() < _SILENT else "wrong_flagged"
        verdict = "right" if drawn.random() < chance else silent
        name = f"q{number}"
        scores.append(
            Score.model_validate(
                {"case": name, "question": name, "run_id": name, "verdict": verdict}
            )
        )
    return table_of("eval-dice", "dice", ["m"], scores)


def lines() -> list[str]:
    """Returns the kept rows as a table in Markdown; one line without any."""
    if not FILE.is_file():
        return ["Not measured yet."]
    kept = TypeAdapter(list[Chance]).validate_json(FILE.read_bytes())
    found = {(row.questions, row.loss): row.worse for row in kept}
    heads = [f"{loss:.0%} lost" if loss else "repeated" for loss in LOSSES]
    table = [f"| questions | {' | '.join(heads)} |", f"|{'---|' * (len(heads) + 1)}"]
    for size in SIZES:
        table.append(f"| {size} | {' | '.join(f'{found[size, loss]:.0%}' for loss in LOSSES)} |")
    return table


if __name__ == "__main__":
    FILE.write_bytes(TypeAdapter(list[Chance]).dump_json(rows(), indent=1))
