"""The answer of a run, printed: the text, its citations, the gaps, the cost."""

from collections import Counter
from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from console.hints import hint
from console.run.run_outcome import RunOutcome
from console.terminal import Report, counted, safe, safe_line, wrapped
from supervision.base.text import money
from supervision.contract.result import RunResult
from supervision.results.answer import with_gaps

_LINE = 300
_ERROR_CHARS = 1500
_IDS = 8  # subtasks named on one line


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
    if not screen.is_terminal:
        yield from ("", answer, "", *facts)
        return
    yield from (Rule(style="dim"), Padding(Markdown(answer, hyperlinks=False), (1, 1)), Rule(style="dim"))
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
    lines += [f"warning: {warning}" for warning in result.warnings]
    if result.truncated:
        lines.append(f"texts are shortened here: {hint('result', run_id, '--full')} shows all")
    worked_on = [report for report in result.subtasks if report.counts is None]
    done = sum(report.state == "completed" for report in worked_on)
    state = result.status if outcome.error is None else outcome.state
    confidence = f" · confidence {result.confidence:.0%}" if result.confidence is not None else ""
    lines += [
        f"{state}: {done}/{len(worked_on)} subtasks{confidence}",
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
