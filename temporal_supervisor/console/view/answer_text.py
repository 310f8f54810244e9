"""The answer of a run, printed or as a file: the text, its citations, the gaps, the cost."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from temporal_supervisor.console.base.command import hint
from temporal_supervisor.console.base.terminal import Report, counted, safe, safe_json, safe_line, wrapped
from temporal_supervisor.console.run.found_runs import short_id
from temporal_supervisor.console.run.run_outcome import exit_code
from temporal_supervisor.console.view.model_ways import model_notes
from temporal_supervisor.console.view.saved_words import saved_words
from temporal_supervisor.outcomes import RunOutcome
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.results.answer import with_gaps
from temporal_supervisor.supervision.results.answer_table import csv_of
from temporal_supervisor.supervision.results.success_rule import is_whole

_ERROR_CHARS = 1500
_LINE_BYTES = 2 * limits.PARAGRAPH_BYTES  # a conflict with how it was settled
_FIRST = 8  # of what is named in a row
_JSON_ROWS = 40  # of a structured answer on a terminal


def bare_report(run_id: str, outcome: RunOutcome) -> Report:
    """Returns the answer of a run with nothing around it, and its problem.

    Where it lacks a model the notes have the ways to one.
    """
    error, text = safe_line(outcome.said, _ERROR_CHARS), ""
    if outcome.result is not None:
        text = safe(outcome.result.answer).strip() or _no_answer(outcome.result)
    rows = [Text(text)] if text else []
    data, code = outcome.as_json(run_id), exit_code(outcome)
    return Report(data, rows, notes=model_notes(outcome), error=error, code=code)


def answer_report(
    run_id: str,
    outcome: RunOutcome,
    web: str | None = None,
    notes: Sequence[str] = (),
) -> Report:
    """Returns result and problem of a run, with `notes` beside them."""
    error = safe_line(outcome.said, _ERROR_CHARS)
    data, code = outcome.as_json(run_id), exit_code(outcome)
    rows = [] if outcome.result is None else [AnswerRow(run_id, outcome, outcome.result, web)]
    return Report(data, rows, notes=notes, error=error, code=code)


@dataclass(frozen=True)
class AnswerRow:
    """An answer as Markdown and the facts about it; plain text where the screen is no terminal."""

    run_id: str
    outcome: RunOutcome
    result: RunResult
    web: str | None

    def shown(self, screen: Console) -> Iterator[RenderableType]:
        """Yields its parts."""
        known_as = self.run_id if self.outcome.forgotten else short_id(self.run_id)
        facts = _fact_lines(self.run_id, known_as, self.outcome, self.result, self.web)
        answer = safe(self.result.answer).strip() or _no_answer(self.result)
        if self.result.answer and self.result.status == "running":
            answer = f"**A draft: subtasks still run**\n\n{answer}"
        value = self.result.answer_json
        fields = [] if value is None else safe_json(value).splitlines()
        if not screen.is_terminal:
            yield from ("", answer, "", *fields, *facts)
            return
        from rich.markdown import Markdown  # 0.1 s, for a terminal only

        yield Rule(style="dim")
        yield Padding(Markdown(answer, hyperlinks=False), (1, 1))
        yield Rule(style="dim")
        if fields:
            yield from (Text(f" {field}") for field in fields[:_JSON_ROWS])
            yield Rule(style="dim")
        for fact in facts:
            # an address or a command stays one piece, to be copied
            is_whole_line = fact.startswith(("http", "run "))
            own = [Text(f" {fact}", style="dim")]
            yield from own if is_whole_line else wrapped(fact, screen.width, "dim")


def _no_answer(result: RunResult) -> str:
    """Returns the text that stands in place of an answer: findings so far, and the gaps."""
    findings = [f"- `{r.id}` ({r.role}): {safe_line(r.finding.summary, 600)}" for r in result.subtasks if r.finding]
    text = "\n".join(["**No answer yet**" if result.status == "running" else "**No answer**", "", *findings])
    return safe(with_gaps(text, result.gaps)).strip()


def _fact_lines(run_id: str, known_as: str, outcome: RunOutcome, result: RunResult, web: str | None) -> list[str]:
    """Returns the facts about an answer; commands name the run as it is `known_as`."""
    lines = []
    cited = Counter(subtask_id for citation in result.citations for subtask_id in citation.subtask_ids)
    if result.answer and result.subtasks and outcome.error is None and result.status != "running":
        lines.append(f"check the figures: {hint('verify', known_as)}")
    lines += _source_lines(result, cited)
    if result.grounding == "knowledge" and not result.subtasks:
        lines.append("from the model's own knowledge: nothing was looked up")
    if result.unsupported:
        missing = [f"'{item.text}' ({item.where})" for item in result.unsupported]
        lines.append(f"no support for {_first(missing, ', ')}")
    lines += [f"doubtful: {doubt.text} ({doubt.where})" for doubt in result.doubts]
    for item in result.contradictions:
        lines.append(f"conflict between {', '.join(item.subtask_ids)}: {item.description} → {item.resolution}")
    for artifact in result.artifacts:
        lines.append(f"artifact {artifact.name} ({artifact.media_type}, {artifact.bytes:,} bytes)")
    if result.artifacts:
        lines.append(f"save the files: {hint('artifacts', known_as, '--save', 'DIR')}")
    if rows_of(result.answer_json) or len(result.tables) == 1:
        lines.append(f"as a table: {hint('result', known_as, '-o', 'table.csv')}")
    elif len(safe_json(result.answer_json).splitlines()) > _JSON_ROWS:
        lines.append(f"the whole JSON: {hint('result', known_as, '-o', 'answer.json')}")
    lines += [f"warning: {warning}" for warning in result.warnings]
    if result.truncated:
        lines.append(f"texts are shortened here: {hint('result', known_as, '--full')} shows all")
    worked_on = [report for report in result.subtasks if report.replaced_by is None and report.counts is None]
    state = result.status if outcome.error is None else outcome.state
    confidence = f" · confidence {result.confidence:.0%}" if result.confidence is not None else ""
    why = why_partial(result) if outcome.error is None else ""
    lines.append(f"{state}: {sum(map(is_whole, worked_on))}/{len(worked_on)} subtasks{confidence}{why and f' · {why}'}")
    lines += [*(_cost_lines(result) if result.usage.model_calls else []), f"run {run_id}", *([web] if web else [])]
    return [safe_line(line, _LINE_BYTES) if line != web else line for line in lines]


def _cost_lines(result: RunResult) -> list[str]:
    usage, timing = result.usage, result.timing
    held = f", {timing.held_seconds:,.1f} s of it waiting for people" if timing.held_seconds else ""
    alone = f" ({timing.sequential_seconds:,.1f} s without parallel work)"
    calls = f"{counted(usage.model_calls, 'model call')}, {counted(usage.tool_calls, 'tool call')}"
    built_on = [saved_words(result)] if result.reuse_from else []
    return [
        *built_on,
        f"took {timing.wall_seconds:,.1f} s{held}{alone if timing.speedup > 1 else ''}",
        f"{calls}, {usage.tokens_line()}, {money(usage.usd)}",
    ]


def why_partial(result: RunResult) -> str:
    """Returns the first thing that is missing from a partial result, on one line; empty for others."""
    if result.status != "partial" or not result.gaps:
        return ""
    first, *others = result.gaps
    more = f"; and {counted(len(others), 'more gap')}" if others else ""
    return safe_line(f"{first.subtask_id} ({first.reason}){more}", limits.SENTENCE_BYTES)


def answer_file(result: RunResult, suffix: str) -> bytes:
    """Returns the answer as a file: its rows for `.csv`, its JSON for `.json`, else Markdown. Raises ValueError."""
    if suffix not in (".csv", ".json"):
        return f"{safe(result.answer)}\n".encode()
    if result.answer_json is None:
        raise ValueError("the answer has no JSON: `--answer-schema` of `run`, or a plan with for_each, makes one")
    if suffix == ".json":
        return f"{safe_json(result.answer_json)}\n".encode()
    if (rows := rows_of(result.answer_json)) is None:
        raise ValueError("the answer is no table: that takes one list of objects. answer.json has its JSON")
    return csv_of(list(dict.fromkeys(name for row in rows for name in row)), rows)


def rows_of(value: JsonValue) -> list[dict[str, JsonValue]] | None:
    """Returns the list of objects that a structured answer is, or the only one in it; None if it has none."""
    parts = value.values() if isinstance(value, dict) else [value]
    tables = [[row for row in part if isinstance(row, dict)] for part in parts if isinstance(part, list)]
    tables = [rows for rows in tables if rows]
    return tables[0] if len(tables) == 1 else None


def _source_lines(result: RunResult, cited: Counter[str]) -> list[str]:
    """Returns the sources of the findings that the answer cites, by the marks of these; of all if it has no marks."""
    lines = []
    for report in result.subtasks:
        if report.finding and (report.id in cited or not cited):
            own = ["the model's own knowledge"] if report.finding.grounding == "knowledge" else []
            if named := [*own, *report.finding.sources]:
                times = f" ({cited[report.id]} times)" if cited[report.id] > 1 else ""
                lines.append(f"[{report.id}]{times} {_first(named, '; ')}")
    more = [f"… and {counted(len(lines) - _FIRST, 'more subtask')}"] if len(lines) > _FIRST else []
    return ["sources:", *lines[:_FIRST], *more] if lines else []


def _first(names: list[str], between: str) -> str:
    return between.join([*names[:_FIRST], *(["…"] if len(names) > _FIRST else [])])
