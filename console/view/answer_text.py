"""The answer of a run, printed: the text, its citations, the gaps, the cost."""

from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from console.run.run_outcome import RunOutcome
from console.terminal import command, print_err, print_json, print_out, safe, safe_line
from supervision.contract.result import RunResult
from supervision.results.answer import with_gaps
from supervision.text import money

_LINE = 300


def print_outcome(
    console: Console,
    run_id: str,
    outcome: RunOutcome,
    *,
    as_json: bool = False,
    web: str | None = None,
) -> int:
    """Prints result and problem of a run and returns the exit code. With `as_json` standard output gets only JSON."""
    if outcome.result is not None and as_json:
        print_json(outcome.result)
    elif outcome.result is not None:
        _print_answer(console, run_id, outcome.result, web=web, notice=outcome.notice)
    if outcome.problem:
        print_err(safe_line(outcome.problem, 1500))
    return outcome.code


def _print_answer(
    console: Console, run_id: str, result: RunResult, *, web: str | None = None, notice: str | None = None
) -> None:
    """The answer as Markdown and the facts about it; plain Markdown text when the console is no terminal."""
    facts = _fact_lines(run_id, result, web, notice)
    answer = safe(result.answer).strip() or _no_answer(result)
    if not console.is_terminal:
        print_out("\n".join(["", answer, "", *facts]))
        return
    parts: list[RenderableType] = [
        Rule(style="dim"),
        Padding(Markdown(answer, hyperlinks=False), (1, 1)),
        Rule(style="dim"),
        *[Text(f" {fact}", style="dim", overflow="fold") for fact in facts],
    ]
    for part in parts:
        console.print(part)


def _no_answer(result: RunResult) -> str:
    """Returns the text that stands in place of an answer: findings so far, and the gaps."""
    findings = [f"- `{r.id}` ({r.role}): {safe_line(r.finding.summary, 600)}" for r in result.subtasks if r.finding]
    text = "\n".join(["**No answer yet**" if result.status == "running" else "**No answer**", "", *findings])
    return safe(with_gaps(text, result.gaps)).strip()


def _fact_lines(run_id: str, result: RunResult, web: str | None, notice: str | None) -> list[str]:
    usage, timing = result.usage, result.timing
    lines = ["citations:"] if result.citations else []
    for citation in result.citations:
        lines.append(f"[{', '.join(citation.subtask_ids)}] {citation.claim}")
    for item in result.contradictions:
        lines.append(f"conflict between {', '.join(item.subtask_ids)}: {item.description} → {item.resolution}")
    for artifact in result.artifacts:
        lines.append(f"artifact {artifact.name} ({artifact.media_type}, {artifact.bytes} bytes): {artifact.ref}")
    lines += [f"warning: {warning}" for warning in result.warnings]
    if result.truncated:
        lines.append(f"texts are shortened here: `{command('result', run_id, '--full')}` shows all")
    done = sum(1 for report in result.subtasks if report.state == "completed")
    confidence = f" · confidence {result.confidence:.0%}" if result.confidence is not None else ""
    lines += [
        f"{result.status}: {done}/{len(result.subtasks)} subtasks{confidence}",
        f"{timing.wall_seconds:,.1f} s wall, {timing.sequential_seconds:,.1f} s one after the other, "
        f"speed-up {timing.speedup:.2f}",
        f"{usage.model_calls} model calls, {usage.tool_calls} tool calls, {usage.input_tokens:,} input and "
        f"{usage.output_tokens:,} output tokens, {money(usage.usd)}",
        f"run {run_id}",
    ]
    if notice:
        lines.append(notice)
    if web:
        lines.append(web)
    return [safe_line(line, _LINE) if line != web else line for line in lines]
