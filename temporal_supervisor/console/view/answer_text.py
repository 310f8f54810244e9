"""The answer of a run, printed or as a file: text, citations, gaps, cost."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from pydantic import JsonValue
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from temporal_supervisor.console.base.command import hint
from temporal_supervisor.console.base.terminal import (
    Report,
    counted,
    safe,
    safe_json,
    safe_line,
    wrapped,
)
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
_SUMMARY_CHARS = 600  # of each finding, where there is no answer


def bare_report(run_id: str, outcome: RunOutcome) -> Report:
    """Returns only the answer of a run, and its problem.

    Without a model the notes list the ways to one.
    """
    text = ""
    if outcome.result is not None:
        text = safe(outcome.result.answer).strip() or _no_answer(outcome.result)
    return Report(
        outcome.as_json(run_id),
        [Text(text)] if text else [],
        notes=model_notes(outcome),
        error=safe_line(outcome.sentence, _ERROR_CHARS),
        code=exit_code(outcome),
    )


def answer_report(
    run_id: str,
    outcome: RunOutcome,
    web: str | None = None,
    notes: Sequence[str] = (),
) -> Report:
    """Returns result and problem of a run, with `notes`."""
    rows = [] if outcome.result is None else [AnswerRow(run_id, outcome, outcome.result, web)]
    return Report(
        outcome.as_json(run_id),
        rows,
        notes=notes,
        error=safe_line(outcome.sentence, _ERROR_CHARS),
        code=exit_code(outcome),
    )


@dataclass(frozen=True)
class AnswerRow:
    """An answer with its facts, as Markdown on a terminal, else as plain text."""

    run_id: str
    outcome: RunOutcome
    result: RunResult
    web: str | None

    def renderables(self, screen: Console) -> Iterator[RenderableType]:
        """Yields the parts of the answer."""
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
    """Returns the text in place of a missing answer: findings so far, and gaps."""
    head = "**No answer yet**" if result.status == "running" else "**No answer**"
    lines = [head, ""]
    for report in result.subtasks:
        if report.finding:
            summary = safe_line(report.finding.summary, _SUMMARY_CHARS)
            lines.append(f"- `{report.id}` ({report.role}): {summary}")
    return safe(with_gaps("\n".join(lines), result.gaps)).strip()


def _fact_lines(
    run_id: str,
    known_as: str,
    outcome: RunOutcome,
    result: RunResult,
    web: str | None,
) -> list[str]:
    """Returns the facts about an answer; commands use the name `known_as` for the run."""
    lines = []
    is_final = outcome.error is None and result.status != "running"
    if result.answer and result.subtasks and is_final:
        lines.append(f"check the figures: {hint('verify', known_as)}")
    lines += _source_lines(result)
    lines += _doubt_lines(result)
    lines += _file_lines(known_as, result)
    lines += [f"warning: {warning}" for warning in result.warnings]
    if result.truncated:
        lines.append(f"texts are shortened here: {hint('result', known_as, '--full')} shows all")
    lines.append(_state_line(outcome, result))
    if result.usage.model_calls:
        lines += _cost_lines(result)
    lines.append(f"run {run_id}")
    shown = [safe_line(line, _LINE_BYTES) for line in lines]
    # An address stays whole, to be opened.
    return [*shown, web] if web else shown


def _doubt_lines(result: RunResult) -> list[str]:
    """Returns the facts that speak against an answer."""
    lines = []
    if result.grounding == "knowledge" and not result.subtasks:
        lines.append("from the model's own knowledge: nothing was looked up")
    if result.unsupported:
        missing = [f"'{item.text}' ({item.where})" for item in result.unsupported]
        lines.append(f"no support for {_first_names(missing, ', ')}")
    lines += [f"doubtful: {doubt.text} ({doubt.where})" for doubt in result.doubts]
    for item in result.contradictions:
        between = f"conflict between {', '.join(item.subtask_ids)}"
        lines.append(f"{between}: {item.description} → {item.resolution}")
    return lines


def _file_lines(known_as: str, result: RunResult) -> list[str]:
    """Returns the artifacts of an answer, and commands that save it as a file."""
    lines = []
    for artifact in result.artifacts:
        size = f"{artifact.bytes:,} bytes"
        lines.append(f"artifact {artifact.name} ({artifact.media_type}, {size})")
    if result.artifacts:
        lines.append(f"save the files: {hint('artifacts', known_as, '--save', 'DIR')}")
    if rows_of(result.answer_json) or len(result.tables) == 1:
        lines.append(f"as a table: {hint('result', known_as, '-o', 'table.csv')}")
    elif len(safe_json(result.answer_json).splitlines()) > _JSON_ROWS:
        lines.append(f"the whole JSON: {hint('result', known_as, '-o', 'answer.json')}")
    return lines


def _state_line(outcome: RunOutcome, result: RunResult) -> str:
    """Returns the state of a run, its whole subtasks, its confidence, and why it is partial."""
    current = [report for report in result.subtasks if report.replaced_by is None]
    worked_on = [report for report in current if report.counts is None]
    whole = sum(map(is_whole, worked_on))
    state = result.status if outcome.error is None else outcome.state
    parts = [f"{state}: {whole}/{len(worked_on)} subtasks"]
    if result.confidence is not None:
        parts.append(f"confidence {result.confidence:.0%}")
    if outcome.error is None:
        parts.append(why_partial(result))
    return " · ".join(filter(None, parts))


def _cost_lines(result: RunResult) -> list[str]:
    """Returns the time, calls, tokens and dollars of a run."""
    usage, timing = result.usage, result.timing
    took = f"took {timing.wall_seconds:,.1f} s"
    if timing.held_seconds:
        took += f", {timing.held_seconds:,.1f} s of it waiting for people"
    if timing.speedup > 1:
        took += f" ({timing.sequential_seconds:,.1f} s without parallel work)"
    calls = f"{counted(usage.model_calls, 'model call')}, {counted(usage.tool_calls, 'tool call')}"
    lines = [took, f"{calls}, {usage.tokens_line()}, {money(usage.usd)}"]
    return [saved_words(result), *lines] if result.reuse_from else lines


def why_partial(result: RunResult) -> str:
    """Returns the first missing thing of a partial result on one line; empty for others."""
    if result.status != "partial" or not result.gaps:
        return ""
    first, *others = result.gaps
    more = f"; and {counted(len(others), 'more gap')}" if others else ""
    return safe_line(f"{first.subtask_id} ({first.reason}){more}", limits.SENTENCE_BYTES)


def answer_file(result: RunResult, suffix: str) -> bytes:
    """Returns the answer as CSV rows, JSON or Markdown, by the suffix of a file.

    Raises ValueError for `.csv` without rows and `.json` without JSON.
    """
    if suffix not in (".csv", ".json"):
        return f"{safe(result.answer)}\n".encode()
    if result.answer_json is None:
        makes = "`--answer-schema` of `run`, or a plan with for_each, makes one"
        raise ValueError(f"the answer has no JSON: {makes}")
    if suffix == ".json":
        return f"{safe_json(result.answer_json)}\n".encode()
    rows = rows_of(result.answer_json)
    if rows is None:
        takes = "that takes one list of objects. answer.json has its JSON"
        raise ValueError(f"the answer is no table: {takes}")
    columns = dict.fromkeys(name for row in rows for name in row)
    return csv_of([*columns], rows)


def rows_of(value: JsonValue) -> list[dict[str, JsonValue]] | None:
    """Returns the rows of a structured answer: a list of objects, or its only such list."""
    parts = value.values() if isinstance(value, dict) else [value]
    tables = []
    for part in parts:
        items = part if isinstance(part, list) else []
        rows = [item for item in items if isinstance(item, dict)]
        if rows:
            tables.append(rows)
    return tables[0] if len(tables) == 1 else None


def _source_lines(result: RunResult) -> list[str]:
    """Returns the sources of the cited findings; of all findings if none is cited."""
    cited = Counter(chain.from_iterable(citation.subtask_ids for citation in result.citations))
    lines = []
    for report in result.subtasks:
        finding = report.finding
        if finding is None or (cited and report.id not in cited):
            continue
        named = [*finding.sources]
        if finding.grounding == "knowledge":
            named.insert(0, "the model's own knowledge")
        if named:
            often = cited[report.id]
            times = f" ({often} times)" if often > 1 else ""
            lines.append(f"[{report.id}]{times} {_first_names(named, '; ')}")
    if not lines:
        return []
    shown = ["sources:", *lines[:_FIRST]]
    if len(lines) > _FIRST:
        shown.append(f"… and {counted(len(lines) - _FIRST, 'more subtask')}")
    return shown


def _first_names(names: list[str], between: str) -> str:
    more = ["…"] if len(names) > _FIRST else []
    return between.join([*names[:_FIRST], *more])
