"""The table of an eval, on a terminal and as an HTML page whose rows open reports."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from temporal_supervisor.console.base.terminal import (
    ScreenRow,
    TextTable,
    counted,
    duration,
    safe_line,
)
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.scores.intervals import Interval
from temporal_supervisor.supervision.scores.score import Score, Verdict
from temporal_supervisor.supervision.scores.score_table import (
    WORDS,
    Comparison,
    EvalTable,
    OpinionRow,
    VariantRow,
)

_SHOWN_CHARS = 60  # of an answer in a row on a terminal
_LISTED = 20  # questions that got better or worse, on a terminal
_STYLE = """\
body { font: 15px/1.45 system-ui, sans-serif; color: #1b1f24 }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .25rem .6rem; text-align: left }
tr { border-bottom: 1px solid #d8dee4 }
td.number { text-align: right; font-variant-numeric: tabular-nums }
.right, .refused_rightly { color: #116329 }
.wrong_unflagged, .failed { color: #a40e26 }
.wrong_flagged, .refused_wrongly { color: #7d4e00 }
@media (prefers-color-scheme: dark) {
body { background: #0d1117; color: #e6edf3 } tr { border-color: #30363d } a { color: #58a6ff }
.right, .refused_rightly { color: #3fb950 }
.wrong_unflagged, .failed { color: #ff7b72 }
.wrong_flagged, .refused_wrongly { color: #d29922 } }"""


def percent(share: float | None) -> str:
    """Returns a share in percent; empty for None."""
    return "" if share is None else f"{share:.1%}"


def with_interval(interval: Interval) -> str:
    """Returns a share with the bounds of its interval."""
    return f"{interval.value:.1%} ({interval.low:.0%} to {interval.high:.0%})"


def measures(rows: Sequence[VariantRow]) -> list[tuple[str, list[str]]]:
    """Returns a line for each measure that some variant has."""
    lines: list[tuple[str, Callable[[VariantRow], str]]] = [
        ("questions", lambda row: f"{row.n}"),
        ("right, with 95 % interval", lambda row: with_interval(row.right)),
        ("wrong and not flagged", lambda row: with_interval(row.unflagged)),
        *((f"· {words}", _count(verdict)) for verdict, words in WORDS.items()),
        ("flagged though right", lambda row: f"{row.flagged_though_right}"),
        ("right anywhere in the text", lambda row: percent(row.lenient)),
        ("F1 of rows", lambda row: percent(row.share)),
    ]
    for name in dict.fromkeys(name for row in rows for name in row.by_field):
        lines.append((f"· {name}", _field(name)))
    lines += [
        ("role as expected", lambda row: percent(row.routed)),
        ("cited files, F1", lambda row: percent(row.cited)),
        ("plan: covered", lambda row: percent(row.coverage)),
        ("plan: needless subtasks", lambda row: _mean(row.needless)),
        ("plan: missing dependencies", lambda row: _mean(row.unordered)),
        ("planted faults shown", lambda row: percent(row.faults_shown)),
        *_opinions(rows),
        ("model calls a question", lambda row: f"{row.calls:.1f}"),
        ("tokens a question", lambda row: f"{row.tokens:,.0f}"),
        ("time a question", lambda row: duration(row.seconds, 1)),
        ("cost a question", lambda row: money(row.usd)),
    ]
    cells = [(name, [line(row) for row in rows]) for name, line in lines]
    return [(name, values) for name, values in cells if any(values)]


def _opinions(rows: Sequence[VariantRow]) -> Iterator[tuple[str, Callable[[VariantRow], str]]]:
    """Yields the lines of a model's opinions, marked as such; none if it was not asked."""
    judge = next((row.opinions.model for row in rows if row.opinions), None)
    if judge is None:
        return
    yield (
        f"{judge} calls right (a model's opinion)",
        _opinion_of(lambda row: with_interval(row.right)),
    )
    yield "· answers in words", _opinion_of(lambda row: f"{row.n}")
    yield "· of these code agrees on", _opinion_of(lambda row: percent(row.agreed))


def _opinion_of(line: Callable[[OpinionRow], str]) -> Callable[[VariantRow], str]:
    return lambda row: "" if row.opinions is None else line(row.opinions)


def _count(verdict: Verdict) -> Callable[[VariantRow], str]:
    return lambda row: f"{row.counts.get(verdict, 0)}"


def _mean(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"


def _field(name: str) -> Callable[[VariantRow], str]:
    return lambda row: percent(row.by_field.get(name))


def headline(found: EvalTable) -> str:
    """Returns a line with the name of an eval and its progress."""
    asked = f"{len(found.scores):,} of {counted(found.planned, 'question')}"
    why = f": {found.why}" if found.why else ""
    return f"{found.eval_id}, {found.name}, {found.status}, {asked}{why}"


def table_rows(
    found: EvalTable,
    comparisons: Sequence[Comparison],
) -> Iterator[ScreenRow | str]:
    """Yields the table, the questions without a right answer, and the changes."""
    yield headline(found)
    labels = [row.label for row in found.rows]
    cells = [[name, *values] for name, values in measures(found.rows)]
    yield TextTable([""], cells, numbers=labels)
    if found.no_opinion:
        yield no_opinion(found)
    faulty = [score for score in found.scores if not score.is_right]
    if faulty:
        yield ""
        yield TextTable(
            ["question", "", "answer", "true answer"],
            [_faulty(score) for score in faulty],
        )
    for each in comparisons:
        yield ""
        yield from comparison_lines(each)


def no_opinion(found: EvalTable) -> str:
    """Returns a line with the reason why the judging model gave no opinions."""
    return f"no opinion of some answers: {safe_line(found.no_opinion, limits.ERROR_BYTES)}"


def opinion_words(score: Score) -> str:
    """Returns a model's opinion of an answer, marked as such; empty without one."""
    if score.opinion is None:
        return ""
    return f"{score.opinion.model}: {'right' if score.opinion.right else 'wrong'}"


def _faulty(score: Score) -> list[str]:
    """Returns the row of a question without a right answer."""
    verdict = WORDS[score.verdict]
    if score.flags:
        verdict += f" ({', '.join(score.flags)})"
    if score.opinion:
        verdict += f" · {opinion_words(score)}"
    given = safe_line(score.error or score.given, _SHOWN_CHARS)
    return [score.case, verdict, given, safe_line(score.expected, _SHOWN_CHARS)]


def comparison_lines(each: Comparison) -> Iterator[str]:
    """Yields lines on the questions that improved and those that got worse."""
    old = f"{each.before} of {each.before_eval}"
    new = f"{each.after} of {each.after_eval}"
    yield f"{new} against {old}, on {counted(each.n, 'question')} that both were asked:"
    yield f"  right {_change(each.right)}, wrong and not flagged {_change(each.unflagged)}"
    for words, names in (("better", each.better), ("worse", each.worse)):
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        yield f"  {words}: {', '.join(names[:_LISTED]) or 'none'}{more}"


def _change(change: Interval) -> str:
    return f"{change.value:+.1%} ({change.low:+.1%} to {change.high:+.1%})"


def eval_page(
    found: EvalTable,
    links: Mapping[str, str],
    comparisons: Sequence[Comparison] = (),
) -> str:
    """Returns the HTML page, without scripts and with all foreign text escaped.

    `links` has the reports by run.
    """
    heads = "".join(f"<th scope=col>{escape(row.label)}</th>" for row in found.rows)
    lines = "".join(
        f"<tr><th scope=row>{escape(name)}</th>{''.join(_number(value) for value in values)}</tr>\n"
        for name, values in measures(found.rows)
    )
    said = [line for each in comparisons for line in comparison_lines(each)]
    changes = "".join(f"<p>{escape(line)}</p>\n" for line in said)
    labels = [row.label for row in found.rows]
    title = escape(f"{found.name}: {found.eval_id}")
    judged = any(score.opinion for score in found.scores)
    columns = (
        "question",
        "variant",
        "verdict",
        *(("a model's opinion",) if judged else ()),
        "answer",
        "true answer",
        "shown beside it",
        "tokens",
        "time",
        "cost",
    )
    named = "".join(f"<th scope=col>{name}</th>" for name in columns)
    rows = [_question_row(score, labels, links.get(score.run_id), judged) for score in found.scores]
    questions = "".join(rows)
    head = f"<meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
    parts = [
        f"<!doctype html>\n<html lang=en>{head}",
        f"<h1>{escape(found.name)}</h1>",
        f"<p>{escape(headline(found))}</p>",
        f"<table><tr><td></td>{heads}</tr>\n{lines}</table>",
        f"<p>{escape(no_opinion(found))}</p>" if found.no_opinion else "",
        changes,
        f"<table><tr>{named}</tr>\n{questions}</table>",
        "</html>\n",
    ]
    return "\n".join(parts)


def _question_row(score: Score, labels: Sequence[str], link: str | None, judged: bool) -> str:
    case = escape(score.case)
    opened = f'<a href="{escape(link, quote=True)}">{case}</a>' if link else case
    cells = [
        opened,
        escape(labels[score.variant] if score.variant < len(labels) else ""),
        f"<span class={score.verdict}>{WORDS[score.verdict]}</span>",
        *([_opinion_cell(score)] if judged else []),
        escape(score.error or score.given),
        escape(score.expected),
        escape(", ".join(score.flags)),
    ]
    numbers = [f"{score.usage.tokens:,}", duration(score.seconds, 1), money(score.usage.usd)]
    shown = [*(f"<td>{cell}</td>" for cell in cells), *map(_number, numbers)]
    return f"<tr>{''.join(shown)}</tr>\n"


def _opinion_cell(score: Score) -> str:
    """Returns a model's opinion; its reason is shown on hover."""
    if score.opinion is None:
        return ""
    reason = escape(score.opinion.reason, quote=True)
    return f'<span title="{reason}">{escape(opinion_words(score))}</span>'


def _number(value: str) -> str:
    return f"<td class=number>{escape(value)}</td>"
