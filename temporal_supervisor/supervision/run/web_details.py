"""The Markdown details of a live run in the Web UI."""

import re
from collections.abc import Iterator

from temporal_supervisor.supervision.base.text import cut, money, one_line
from temporal_supervisor.supervision.contract.plan import folded
from temporal_supervisor.supervision.contract.result import SubtaskReport
from temporal_supervisor.supervision.results.answer import with_gaps
from temporal_supervisor.supervision.results.success_rule import is_whole
from temporal_supervisor.supervision.run.run_state import RunState

_ROWS = 60
_LINE_BYTES = 300
_CELL_BYTES = 120
_ANSWER_BYTES = 8 * 1024
_LINKS = re.compile(r"([\[\]<>])")
_MARKUP = re.compile(r"([\\`*_\[\]<>|!#~&])")
_MARKS = {
    "completed": "✔ completed",
    "partial": "◐ partial",
    "failed": "✘ failed",
    "skipped": "– skipped",
    "cancelled": "■ cancelled",
    "running": "▶ running",
    "waiting": "· waiting",
}


def markdown(state: RunState) -> str:
    """Returns a notice on the model, the goal, the answer, the cost, the plan and notes."""
    notice = state.models.notice
    written = state.answer.current.text
    answer = with_gaps(written, state.answer.gaps) if state.phase == "done" else ""
    drafted = state.answer.draft.text
    notes = [f"> {_literal(note, _LINE_BYTES)}" for note in _notes(state)]

    lines: list[str] = []
    if notice:
        lines += [f"> {_literal(notice, _LINE_BYTES)}", ""]
    lines += [f"**{_literal(state.request.goal, _LINE_BYTES)}**", ""]
    if answer:
        lines += [_without_links(answer), "", "---", ""]
    lines.append(_progress(state))
    lines += _table(state)
    if drafted and state.ending is None and not written:
        title = "**Draft of the answer, while subtasks still run**"
        lines += ["", title, "", _without_links(drafted)]
    if notes:
        lines += ["", *notes]
    return "\n".join(lines)


def _without_links(answer: str) -> str:
    """Returns an answer cut to its room; its own links and images lead nowhere."""
    return _LINKS.sub(r"\\\1", cut(answer, _ANSWER_BYTES))


def _progress(state: RunState) -> str:
    """Returns the line of the phase, the subtasks and the cost."""
    counts = state.board.counts()
    usage = state.usage
    conditions = [name for name, value in state.flags.model_dump().items() if value]
    parts = [
        f"Phase **{state.phase}**" + (f" ({', '.join(conditions)})" if conditions else ""),
        f"{counts.completed} of {counts.total} subtasks",
        f"{usage.model_calls} model calls, {usage.tool_calls} tool calls",
        usage.tokens_line(),
        money(usage.usd),
    ]
    return " · ".join(parts)


def _table(state: RunState) -> Iterator[str]:
    """Yields the lines of the table of subtasks, without items; none before there is a plan."""
    reports = [report for report in state.board.reports() if report.template is None]
    if not reports:
        return
    yield ""
    yield "| subtask | role | state | after | turns | what |"
    yield "|---|---|---|---|---|---|"
    yield from map(_row, reports[:_ROWS])
    if len(reports) > _ROWS:
        yield f"| … | | | | | and {len(reports) - _ROWS} more |"


def _notes(state: RunState) -> Iterator[str]:
    if state.plan.revision > 1:
        yield f"plan revision {state.plan.revision}"
    yield from state.waits.notes()
    if state.error:
        yield f"{state.error.type}: {state.error.message}"


def _row(report: SubtaskReport) -> str:
    """Returns the row of a subtask."""
    is_partial = report.state == "completed" and not is_whole(report)
    state = _MARKS["partial" if is_partial else report.state]
    if report.counts:
        state += f" {report.counts.items_line}"
    if report.attempts > 1:
        state += f" (attempt {report.attempts})"
    if report.replaced_by:
        state += f", replaced by {report.replaced_by}"
    text = report.error.message if report.error else report.description
    after = ", ".join(folded(report.depends_on))
    turns = str(report.turns or "")
    cells = [report.id, report.role, state, after, turns, text]
    return "| " + " | ".join(_literal(cell, _CELL_BYTES) for cell in cells) + " |"


def _literal(text: str, limit: int) -> str:
    """Returns foreign text without markup, HTML or named links."""
    return _MARKUP.sub(r"\\\1", one_line(text, limit))
