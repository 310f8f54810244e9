"""The table of an eval, the comparison of two tables, and the aims of an eval."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from temporal_supervisor.supervision.contract.base import ErrorText, Model
from temporal_supervisor.supervision.scores.intervals import (
    Interval,
    chance_of_loss,
    paired_bootstrap,
    wilson,
)
from temporal_supervisor.supervision.scores.score import Score, Verdict

EvalStatus = Literal["running", "completed", "partial", "cancelled"]

VERDICTS: tuple[Verdict, ...] = (
    *("right", "wrong_flagged", "wrong_unflagged", "refused_rightly", "refused_wrongly", "failed"),
)
WORDS: dict[Verdict, str] = {
    "right": "right",
    "wrong_flagged": "wrong, and flagged",
    "wrong_unflagged": "wrong, and not flagged",
    "refused_rightly": "refused, rightly",
    "refused_wrongly": "refused, wrongly",
    "failed": "failed",
}
_CHANCE = 0.05  # worse by chance is said at most once in twenty


class OpinionRow(Model):
    """A model's opinions on `n` answers in words: the share that it calls right.

    `agreed` is the share on which it agrees with code.
    """

    model: str
    n: int
    right: Interval
    agreed: float


class VariantRow(Model):
    """The counts of a variant over its `n` questions; `usd` is None if a price is unknown.

    `right` counts true answers and what was rightly refused, `unflagged` wrong answers that nothing
    speaks against. The other shares are None where no question asks for them. Of the expected plans
    `coverage` is the share that was planned; `needless` subtasks, `unordered` ones, which lack a
    dependency, calls, tokens, seconds and dollars are per question.
    """

    label: str
    n: int
    counts: dict[Verdict, int]
    right: Interval
    unflagged: Interval
    flagged_though_right: int = 0
    lenient: float = 0.0
    share: float | None = None
    by_field: dict[str, float] = {}
    routed: float | None = None
    cited: float | None = None
    coverage: float | None = None
    needless: float | None = None
    unordered: float | None = None
    faults_shown: float | None = None
    opinions: Annotated[OpinionRow | None, Field(exclude_if=lambda row: row is None)] = None
    calls: float = 0.0
    tokens: float = 0.0
    seconds: float = 0.0
    usd: float | None = None


class EvalTable(Model):
    """The table of an eval: a row for each variant, and the score of each question.

    `no_opinion` is the reason why the judging model gave no opinion on some answers.
    """

    eval_id: str
    name: str
    status: EvalStatus = "completed"
    planned: int = 0
    why: str = ""
    no_opinion: Annotated[ErrorText, Field(exclude_if=lambda why: not why)] = ""
    rows: list[VariantRow] = []
    scores: list[Score] = []


class Comparison(Model):
    """Two variants on their common questions, with the differences of their shares."""

    before: str
    after: str
    before_eval: str = ""
    after_eval: str = ""
    n: int
    right: Interval
    unflagged: Interval
    better: list[str] = []
    worse: list[str] = []
    is_worse: bool = False


def table_of(
    eval_id: str,
    name: str,
    labels: Sequence[str],
    scores: Sequence[Score],
    **more: object,
) -> EvalTable:
    """Returns the table of these scores, with a labelled row for each variant."""
    rows = []
    for at, label in enumerate(labels):
        rows.append(_row(label, [score for score in scores if score.variant == at]))
    fields = {"eval_id": eval_id, "name": name, "rows": rows, "scores": list(scores), **more}
    return EvalTable.model_validate(fields)


def _row(label: str, scores: Sequence[Score]) -> VariantRow:
    """Returns the row of a variant with these scores."""
    total = len(scores)
    counts = Counter(score.verdict for score in scores)
    doubted = [score for score in scores if score.verdict == "right" and score.flags]
    fits = [score.plan for score in scores if score.plan is not None]
    priced = [score.usage.usd for score in scores if score.usage.usd is not None]

    return VariantRow(
        label=label,
        n=total,
        counts={verdict: counts[verdict] for verdict in VERDICTS},
        right=wilson(sum(score.is_right for score in scores), total),
        unflagged=wilson(counts["wrong_unflagged"], total),
        flagged_though_right=len(doubted),
        lenient=_mean([score.lenient for score in scores]) or 0.0,
        share=_mean([score.share for score in scores if score.fields]),
        by_field=_fields(scores),
        routed=_mean([score.routed for score in scores if score.routed is not None]),
        cited=_mean([score.cited for score in scores if score.cited is not None]),
        coverage=_mean([fit.coverage for fit in fits]),
        needless=_mean([len(fit.needless) for fit in fits]),
        unordered=_mean([len(fit.missing) for fit in fits]),
        faults_shown=_mean([each.fault_shown for each in scores if each.fault_shown is not None]),
        opinions=_opinions(scores),
        calls=_mean([score.usage.model_calls for score in scores]) or 0.0,
        tokens=_mean([score.usage.tokens for score in scores]) or 0.0,
        seconds=_mean([score.seconds for score in scores]) or 0.0,
        usd=_mean(priced) if len(priced) == total else None,
    )


def _opinions(scores: Sequence[Score]) -> OpinionRow | None:
    """Returns the row of a model's opinions; None if it was not asked."""
    known = [(score, score.opinion) for score in scores if score.opinion is not None]
    if not known:
        return None
    agreed = [opinion.right == score.is_right for score, opinion in known]
    return OpinionRow(
        model=known[-1][1].model,
        n=len(known),
        right=wilson(sum(opinion.right for _, opinion in known), len(known)),
        agreed=sum(agreed) / len(agreed),
    )


def _fields(scores: Sequence[Score]) -> dict[str, float]:
    """Returns by field the mean share that is right."""
    shares: dict[str, list[float]] = {}
    for score in scores:
        for name, share in score.fields.items():
            shares.setdefault(name, []).append(share)
    return {name: sum(each) / len(each) for name, each in shares.items()}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def compare_tables(before: EvalTable, after: EvalTable) -> list[Comparison]:
    """Compares each variant of `after` with the variant of equal label, or the only one.

    Raises ValueError if they have no question in common.
    """
    labels = [row.label for row in before.rows]
    found = []
    for at, row in enumerate(after.rows):
        if row.label in labels:
            found.append(_comparison((before, labels.index(row.label)), (after, at)))
        elif len(labels) == len(after.rows) == 1:
            found.append(_comparison((before, 0), (after, 0)))
    if not found:
        raise ValueError(
            f"no variant of {after.eval_id} is one of {before.eval_id}: {', '.join(labels)}",
        )
    return found


def _comparison(before: tuple[EvalTable, int], after: tuple[EvalTable, int]) -> Comparison:
    """Compares two variants, each a table with the number of its row."""
    old, old_at = before
    new, new_at = after
    old_right = _rates(old, old_at, "right")
    new_right = _rates(new, new_at, "right")
    old_silent = _rates(old, old_at, "silent")
    new_silent = _rates(new, new_at, "silent")
    both = [name for name in old_right if name in new_right]
    if not both:
        raise ValueError(f"{new.eval_id} and {old.eval_id} have no question in common")

    right = paired_bootstrap(*_paired(old_right, new_right, both))
    unflagged = paired_bootstrap(*_paired(old_silent, new_silent, both))
    lost = [old_right[name] - new_right[name] for name in both]
    hidden = [new_silent[name] - old_silent[name] for name in both]
    return Comparison(
        before=old.rows[old_at].label,
        after=new.rows[new_at].label,
        before_eval=old.eval_id,
        after_eval=new.eval_id,
        n=len(both),
        right=right,
        unflagged=unflagged,
        better=[name for name in both if new_right[name] > old_right[name]],
        worse=[name for name in both if new_right[name] < old_right[name]],
        is_worse=chance_of_loss(list(zip(lost, hidden, strict=True))) <= _CHANCE,
    )


def _paired(
    old: Mapping[str, float],
    new: Mapping[str, float],
    names: Sequence[str],
) -> tuple[list[float], list[float]]:
    return [old[name] for name in names], [new[name] for name in names]


def _rates(table: EvalTable, variant: int, what: Literal["right", "silent"]) -> dict[str, float]:
    """Returns by question the share of right, or of wrong and unflagged, repetitions."""
    hits: dict[str, list[bool]] = {}
    for score in table.scores:
        if score.variant == variant:
            is_hit = score.is_right if what == "right" else score.verdict == "wrong_unflagged"
            hits.setdefault(score.question, []).append(is_hit)
    return {name: sum(each) / len(each) for name, each in hits.items()}


def shortfalls(
    table: EvalTable,
    at_least: float | None = None,
    unflagged_at_most: float | None = None,
    comparisons: Sequence[Comparison] = (),
) -> list[str]:
    """Returns a sentence for each missed aim of an eval.

    Rows of bare agents are for comparison only.
    """
    found = []
    for row in table.rows:
        if row.label.endswith(BARE):
            continue
        if at_least is not None and row.right.value < at_least:
            found.append(
                f"{row.label}: {row.right.value:.1%} are right, at least {at_least:.1%} should be",
            )
        if unflagged_at_most is not None and row.unflagged.value > unflagged_at_most:
            share = f"{row.unflagged.value:.1%} are wrong and not flagged"
            found.append(f"{row.label}: {share}, at most {unflagged_at_most:.1%} should be")
    for each in comparisons:
        if each.is_worse and not each.after.endswith(BARE):
            found.append(
                f"{each.after}: worse than before, on {', '.join(each.worse) or 'what is flagged'}",
            )
    return found


BARE = ", bare"
"""What the label of a variant without a supervisor ends in."""
