"""Writes docs/scores.md from the results that are kept in this folder.

`oracle.json` is what `make oracle` wrote. Each `<model>/<set>.json` is what
`eval SET --bare --json` printed. What is not there stays empty.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.scores import chance
from temporal_supervisor.console.evals.eval_view import measures
from temporal_supervisor.supervision.scores.score_table import EvalTable
from tests.oracle.report import SetFigures, lines_of
from tests.sensitivity.seen import SEEN_FILE, Seen
from tests.sensitivity.seen import lines_of as seen_lines

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "scores.md"
SETS = ("wtq", "tatqa", "dabench", "musique", "kramabench-legal", "kleister-nda")
_MODELS = ("local", "large")
_INTRODUCTION = """\
# How good the answers are

This page is written by `make scores` from the results in `benchmarks/scores`; `docs/evals.md` says
what each row means. What was not measured is empty.
"""
_ORACLE = """\
## Without a model: what code notices

`make oracle SETS=FOLDER` lets scripted replies answer the questions of others rightly: from their
own derivations, or from the simplest query or sentence that gives the true answer. Plan, tools,
checks, answer and judge are the product's own. Then one fault is planted in the finding, which the
answer repeats, or in the answer alone: another figure, the value of another row or column, another
year, unit, scale or sign. A fault is noticed if the answer is flagged.
"""
_LIMITS = """\
What no code can see: a name of another text that was read too, a wrong row where a query leaves its
name out, a small count that the agent made itself where the query gave 0 or 1, percent in place of
an amount where the row speaks of interest or growth, an answer in other lower-case words than its
finding, and a unit that a word of the data implies.
"""
_CHANCE = """\
## How small a change is seen

`--no-worse-than` of two evals by dice: most questions are firm, the others right by luck, and half
of the wrong answers are not flagged. Then each right answer is lost with some chance. The table has
the share of 200 pairs that the command calls worse, by `python -m benchmarks.scores.chance`; the
first column is one eval twice, where none should be.
"""
_SENSITIVITY = """\
## What a change for the worse does

`make sensitivity` plays 40 questions on a table through the whole path, with a scripted brain that
does what its prompt says and reads its numbers in the outputs of tools; a tenth of the questions
waver, as luck decides. Each change is played once and compared with the eval before by
`--no-worse-than`, and so is the same eval, as often.
"""
_REAL = """\
## With a model

Each set is asked with `eval SET --bare`, supervised and by one worker agent alone.

The local model is Qwen2.5-Coder 1.5B on two cores, asked the first questions of a set; sets without
figures were not asked yet. The large model's columns are empty: nobody has paid for them yet.
`estimate` says what a goal may cost. What the answers lacked, and what the local model gave on
other questions, is in `docs/faults.md`.
"""


def page() -> str:
    """Returns the page."""
    parts = [
        _INTRODUCTION,
        _ORACLE,
        "\n".join(_oracle()),
        "",
        _LIMITS,
        _CHANCE,
        "\n".join(chance.lines()),
        "",
        _SENSITIVITY,
        "\n".join(_sensitivity()),
        "",
        _REAL,
        "\n".join(_real()),
        "",
    ]
    return "\n".join(parts)


def _oracle() -> list[str]:
    file = HERE / "oracle.json"
    if not file.is_file():
        return ["Not measured yet."]
    return lines_of(TypeAdapter(list[SetFigures]).validate_json(file.read_bytes()))


def _sensitivity() -> list[str]:
    if not SEEN_FILE.is_file():
        return ["Not measured yet."]
    return seen_lines(TypeAdapter(list[Seen]).validate_json(SEEN_FILE.read_bytes()))


def _real() -> Iterator[str]:
    """Yields a table with a row for each set and a pair of columns for each model."""
    heads = [f"{model}, {way}" for model in _MODELS for way in ("supervised", "bare")]
    yield f"| set | {' | '.join(heads)} |"
    yield f"|{'---|' * (len(heads) + 1)}"
    for name in SETS:
        cells = [cell for model in _MODELS for cell in _cells(HERE / model / f"{name}.json")]
        yield f"| {name} | {' | '.join(cells)} |"


def _cells(file: Path) -> Sequence[str]:
    """Returns the counts of right and unflagged wrong answers by variant; empty without a file."""
    if not file.is_file():
        return ("", "")
    table = EvalTable.model_validate_json(file.read_bytes())
    values = dict(measures(table.rows))
    right, silent = values["right, with 95 % interval"], values["wrong and not flagged"]
    cells = [
        f"right {one}, not flagged {other}, n {row.n}"
        for one, other, row in zip(right, silent, table.rows, strict=True)
    ]
    return (*cells, "", "")[:2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
