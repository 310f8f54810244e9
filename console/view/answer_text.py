"""The answer of a run, printed or as a file: the text, its citations, the gaps, the cost."""

from collections import Counter
from collections.abc import Iterator

from pydantic import JsonValue
from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from console.hints import hint
from console.run.run_outcome import RunOutcome
from console.terminal import Report, counted, safe, safe_json, safe_line, wrapped
from supervision.base.text import money
from supervision.contract.finding import ArtifactRef
from supervision.contract.result import RunResult
from supervision.results.answer import with_gaps
from supervision.results.answer_table import csv_of
from supervision.results.success_rule import is_whole

_LINE = 300
_ERROR_CHARS = 1500
_IDS = 8  # subtasks named on one line
_JSON_ROWS = 40  # of a structured answer on a terminal


def answer_report(run_id: str, outcome: RunOutcome, web: str | None = None) -> Report:
    """Returns result and problem of a run."""
    error = ""
    if ending := outcome.error:
        words = ending.message if ending.type.lower() == outcome.state else str(ending)
        error = f"{outcome.state}: {safe_line(words, _ERROR_CHARS)}"
    return Report(
        outcome.as_json(run_id), lambda screen: _rows(screen, run_id, outcome, web), error=error, code=outcome.code
    )


def _rows(screen: Console, run_id: str, outcome: RunOutcome, web: str | None) -> Iterator[RenderableType]:
    """Yields the answer as Markdown and the facts about it; plain Markdown text where the screen is no terminal."""
    if outcome.result is None:
        return
    facts = _fact_lines(run_id, outcome, outcome.result, web)
    answer = safe(outcome.result.answer).strip() or _no_answer(outcome.result)
    value = outcome.result.answer_json
    fields = [] if value is None else safe_json(value).splitlines()
    if not screen.is_terminal:
        yield from ("", answer, "", *fields, *facts)
        return
    yield from (Rule(style="dim"), Padding(Markdown(answer, hyperlinks=False), (1, 1)), Rule(style="dim"))
    if fields:
        yield from (Text(f" {field}") for field in fields[:_JSON_ROWS])
        yield Rule(style="dim")
    for fact in facts:
        whole = fact.startswith(("http", "run "))  # an address or a command stays one piece, to be copied
        yield from [Text(f" {fact}", style="dim")] if whole else wrapped(fact, screen.width, "dim")


def _no_answer(result: RunResult) -> str:
    """Returns the text that stands in place of an answer: findings so far, and the gaps."""
    findings = [f"- `{r.id}` ({r.role}): {safe_line(r.finding.summary, 600)}" for r in result.subtasks if r.finding]
    text = "\n".join(["**No answer yet**" if result.status == "running" else "**No answer**", "", *findings])
    return safe(with_gaps(text, result.gaps)).strip()


def _fact_lines(run_id: str, outcome: RunOutcome, result: RunResult, web: str | None) -> list[str]:
    usage, timing = result.usage, result.timing
    lines = []
    if result.citations:
        cited = Counter(subtask_id for citation in result.citations for subtask_id in citation.subtask_ids)
        most = [f"{subtask_id} {count}" for subtask_id, count in cited.most_common(_IDS)]
        more = ["…"] if len(cited) > _IDS else []
        lines.append(f"claims by subtask: {', '.join([*most, *more])}; {hint('verify', run_id)} shows each")
    lines += _source_lines(result)
    for item in result.contradictions:
        lines.append(f"conflict between {', '.join(item.subtask_ids)}: {item.description} → {item.resolution}")
    for artifact in result.artifacts:
        lines.append(f"artifact {artifact.name} ({artifact.media_type}, {artifact.bytes:,} bytes)")
    if result.artifacts:
        lines.append(f"artifacts are fetched by {hint('artifacts', run_id, '--save', 'DIR')}")
    if rows_of(result.answer_json) or len(tables_of(result)) == 1:
        lines.append(f"as a table: {hint('result', run_id, '-o', 'table.csv')}")
    elif len(safe_json(result.answer_json).splitlines()) > _JSON_ROWS:
        lines.append(f"the whole JSON: {hint('result', run_id, '-o', 'answer.json')}")
    lines += [f"warning: {warning}" for warning in result.warnings]
    if result.truncated:
        lines.append(f"texts are shortened here: {hint('result', run_id, '--full')} shows all")
    worked_on = [report for report in result.subtasks if report.replaced_by is None and report.counts is None]
    state = result.status if outcome.error is None else outcome.state
    confidence = f" · confidence {result.confidence:.0%}" if result.confidence is not None else ""
    why = why_partial(result) if outcome.error is None else ""
    lines += [
        f"{state}: {sum(map(is_whole, worked_on))}/{len(worked_on)} subtasks{confidence}{why and f' · {why}'}",
        f"{timing.wall_seconds:,.1f} s wall, {timing.sequential_seconds:,.1f} s one after the other"
        + (f", speed-up {timing.speedup:.2f}" if timing.speedup else ""),
        f"{counted(usage.model_calls, 'model call')}, {counted(usage.tool_calls, 'tool call')}, "
        f"{usage.tokens_line()}, {money(usage.usd)}",
        *(f"  {row.line()}" for row in result.spend),
        f"run {run_id}",
    ]
    if outcome.notice:
        lines.append(outcome.notice)
    if web:
        lines.append(web)
    return [safe_line(line, _LINE) if line != web else line for line in lines]


def why_partial(result: RunResult) -> str:
    """Returns the first thing that is missing from a partial result, on one line; empty for others."""
    if result.status != "partial" or not result.gaps:
        return ""
    first, *others = result.gaps
    more = f"; and {counted(len(others), 'more gap')}" if others else ""
    return safe_line(f"{first.subtask_id} ({first.reason}){more}", _LINE)


def answer_file(result: RunResult, suffix: str) -> bytes:
    """Returns the answer as a file: its rows for `.csv`, its JSON for `.json`, else Markdown. Raises ValueError."""
    if suffix == ".json" and result.answer_json is not None:
        return f"{safe_json(result.answer_json)}\n".encode()
    if suffix not in (".csv", ".json"):
        return f"{safe(result.answer)}\n".encode()
    rows = rows_of(result.answer_json) if suffix == ".csv" else None
    if rows is None:
        raise ValueError("the answer has no JSON with one list of objects: `--answer-schema` of `run` asks for one")
    return csv_of(list(dict.fromkeys(name for row in rows for name in row)), rows)


def tables_of(result: RunResult) -> list[ArtifactRef]:
    """Returns the tables that code made of the items of templates."""
    templates = {report.id for report in result.subtasks if report.counts is not None}
    return [artifact for artifact in result.artifacts if artifact.subtask_id in templates]


def rows_of(value: JsonValue) -> list[dict[str, JsonValue]] | None:
    """Returns the list of objects that a structured answer is, or the only one in it; None if it has none."""
    parts = value.values() if isinstance(value, dict) else [value]
    tables = [[row for row in part if isinstance(row, dict)] for part in parts if isinstance(part, list)]
    tables = [rows for rows in tables if rows]
    return tables[0] if len(tables) == 1 else None


def _source_lines(result: RunResult) -> list[str]:
    """Returns the sources of the findings that the answer cites, by the marks of these."""
    cited = {subtask_id for citation in result.citations for subtask_id in citation.subtask_ids}
    findings = {report.id: report.finding for report in result.subtasks if report.finding and report.id in cited}
    sources = {
        subtask_id: [*(["the model's own knowledge"] if finding.grounding == "knowledge" else []), *finding.sources]
        for subtask_id, finding in findings.items()
    }
    lines = [f"[{subtask_id}] {'; '.join(named)}" for subtask_id, named in sources.items() if named]
    return ["sources:", *lines] if lines else []
