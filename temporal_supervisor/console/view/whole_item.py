"""A wait for a person with its whole content, as it is decided about."""

import contextlib
import json
import re
from dataclasses import dataclass

from activities.store.artifacts import ArtifactError
from temporal_supervisor.client import Item
from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.base.terminal import look_alikes, revealed
from temporal_supervisor.console.view.plan_view import PlanPage, plan_page
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.contract.status import Asked, Wait

_LINE_END = re.compile(r"(?<!\\)(?:\\\\)*\\n(?!\")")  # as JSON writes it


@dataclass(frozen=True)
class WholeItem:
    """A wait with its whole content: `text` with hidden characters made visible.

    `plan` is set for a wait for approval. `asker` is the role that asks, and `findings` are those
    that a person's finding builds on.
    """

    item: Item
    asked: Asked
    content: str | None
    text: str
    asker: str
    findings: dict[str, str]
    plan: PlanPage | None = None

    @property
    def notes(self) -> list[str]:
        """A line for each letter in the text that looks like another one."""
        return [f"looks like a Latin letter: {note}" for note in look_alikes(self.text)]


async def whole_item(access: Access, item: Item) -> WholeItem:
    """Returns a wait with its whole content. Raises UpdateRefused if it no longer waits."""
    run = Run(await access.client(), item.run_id)
    asked = await run.asked(item.wait.id)
    wait = asked.wait
    content = asked.content
    if content is None and wait.content_ref:
        store = await access.store()
        content = (await store.get(wait.content_ref)).decode("utf-8", "replace")

    plan = None
    if wait.kind == "plan":
        plan = await plan_page(run, await access.store())

    asker, findings = await _role_and_findings(access, run, wait)
    text = _pretty(wait.prompt_preview if content is None else content)
    for name, finding in findings.items():
        text += f"\n\nthe whole finding of {name}:\n\n{revealed(finding)}"
    return WholeItem(item, asked, content, text, asker, findings, plan)


async def _role_and_findings(access: Access, run: Run, wait: Wait) -> tuple[str, dict[str, str]]:
    """Returns the asking role, and the whole texts of the findings to build on.

    The wait's own `content` has only their summaries.
    """
    if wait.subtask_id is None:
        return "the supervisor", {}
    level, subtask_id = await run.level(wait.subtask_id)
    status = await level.own_status()
    reports = {report.id: report for report in status.subtasks}
    asking = reports[subtask_id]
    asker = f"{wait.subtask_id} ({asking.role})"
    if wait.kind != "finding":
        return asker, {}

    built_on = [reports[name] for name in asking.depends_on if name in reports]
    refs = {report.id: report.finding.text_ref for report in built_on if report.finding}
    store = await access.store_or_none() if refs else None
    if store is None:
        return asker, {}
    try:
        stored = {name: await store.get(ref) for name, ref in refs.items()}
    except ArtifactError:  # this environment may name another store
        return asker, {}
    return asker, {name: text.decode("utf-8", "replace") for name, text in stored.items()}


def _pretty(text: str) -> str:
    """Returns a text to be decided about: JSON on several lines, and nothing hidden."""
    with contextlib.suppress(ValueError, RecursionError):  # a question may be brackets only
        value = json.loads(text)
        spread = json.dumps(value, indent=2, ensure_ascii=False)
        text = _LINE_END.sub("\\g<0>\n      ", spread)
    return revealed(text)
