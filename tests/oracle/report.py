"""The figures of an oracle: how many honest answers are right and flagged, how many planted faults are."""

from collections import Counter
from collections.abc import Iterable, Sequence

from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.scores.score import Score
from tests.oracle.plays import Play


class FaultCount(Model):
    """The faults of one kind in one place: so many were planted, and so many flagged."""

    fault: str
    place: str
    planted: int = 0
    flagged: int = 0


class SetFigures(Model):
    """The figures of one set: of its `questions` so many were `played`, the others are not derived.

    `not_flagged` names the faults that nothing spoke against, `doubted` the right answers that were flagged.
    """

    name: str
    questions: int
    played: int = 0
    right: int = 0
    flagged_though_right: int = 0
    faults: list[FaultCount] = []
    wrong: list[str] = []
    doubted: list[str] = []
    not_flagged: list[str] = []


def figures_of(
    name: str,
    questions: int,
    honest: Sequence[Score],
    planted: Iterable[tuple[Play, Score]],
) -> SetFigures:
    """Returns the figures of a set from the scores of its plays."""
    right = [score for score in honest if score.is_right]
    counts = Counter[tuple[str, str]]()
    flagged = Counter[tuple[str, str]]()
    missed = list[str]()
    for play, score in planted:
        counts[play.fault, play.place] += 1
        is_noticed = bool(score.flags) or not (score.is_right or score.verdict == "wrong_unflagged")
        flagged[play.fault, play.place] += is_noticed
        missed += [] if is_noticed else [play.name]
    kinds = [
        FaultCount(fault=fault, place=place, planted=number, flagged=flagged[fault, place])
        for (fault, place), number in sorted(counts.items())
    ]
    doubted = [score.question for score in right if score.flags]
    return SetFigures(
        name=name,
        questions=questions,
        played=len(honest),
        right=len(right),
        flagged_though_right=len(doubted),
        faults=kinds,
        wrong=[score.question for score in honest if not score.is_right],
        doubted=doubted,
        not_flagged=missed,
    )


def lines_of(found: Sequence[SetFigures]) -> list[str]:
    """Returns the figures as two tables in Markdown."""
    lines = [
        "| set | questions | played | right | flagged though right | faults | flagged |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in [*found, _all(found)]:
        planted = sum(count.planted for count in each.faults)
        flagged = sum(count.flagged for count in each.faults)
        cells = (each.name, each.questions, each.played, each.right, each.flagged_though_right)
        lines.append(_row(*cells, planted, _share(flagged, planted)))
    lines += ["", "| fault | in the finding | in the answer |", "|---|---|---|"]
    whole = _all(found).faults
    for fault in dict.fromkeys(count.fault for count in whole):
        shown = [fault]
        for place in ("finding", "answer"):
            of_place = [count for count in whole if (count.fault, count.place) == (fault, place)]
            planted = sum(count.planted for count in of_place)
            shown.append(_share(sum(count.flagged for count in of_place), planted))
        lines.append(_row(*shown))
    return lines


def _all(found: Sequence[SetFigures]) -> SetFigures:
    """Returns the sums over all sets."""
    planted, flagged = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for each in found:
        for count in each.faults:
            planted[count.fault, count.place] += count.planted
            flagged[count.fault, count.place] += count.flagged
    kinds = [
        FaultCount(fault=key[0], place=key[1], planted=number, flagged=flagged[key])
        for key, number in sorted(planted.items())
    ]
    return SetFigures(
        name="all",
        questions=sum(each.questions for each in found),
        played=sum(each.played for each in found),
        right=sum(each.right for each in found),
        flagged_though_right=sum(each.flagged_though_right for each in found),
        faults=kinds,
    )


def _share(hits: int, total: int) -> str:
    return f"{hits} of {total}, {hits / total:.0%}" if total else ""


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"
