"""The items of templates: what a plan may name them by, and the activity that reads them and makes the next plan."""

import json
from pathlib import Path

from temporalio import activity

from activities.contracts.planning_contracts import ExpandInput, ExpandReply, PlanInput
from activities.contracts.run_contracts import AttachmentRef, RunRef
from activities.questions.plan_checks import shortened
from activities.store.artifacts import ArtifactStore
from activities.store.reading import read_plan, read_text, read_texts
from activities.teams.stored_teams import StoredTeams
from supervision.base import limits
from supervision.planning.expansion import Data, expanded, item_text, items_of, matching


class _RunData:
    """The attachments and files of a run as templates name them."""

    def __init__(self, store: ArtifactStore, teams: StoredTeams, run: RunRef, attached: list[AttachmentRef]) -> None:
        self._store = store
        self._files = teams.files_of(run)
        self._attached = {attachment.name: attachment.ref for attachment in attached}

    async def names(self) -> Data:
        reports = await self._files.reports() if self._files else []
        tables = [table["name"] for report in reports for table in report.tables]
        return Data(
            rows=[*tables, *(report.name for report in reports if len(report.tables) == 1)],
            lines=[*self._attached, *(report.name for report in reports if report.document)],
            files=[report.name for report in reports],
        )

    async def rows(self, name: str, most: int) -> tuple[list[str], int]:
        """Returns the first rows of a table, by its name or that of its file, and how many it has."""
        reports = await self._files.reports() if self._files else []
        tables = [(table, report.name) for report in reports for table in report.tables]
        table = next((table for table, _ in tables if table["name"] == name), None)
        table = table or next((table for table, file in tables if file == name), None)
        if table is None or self._files is None:
            return [], 0
        return await self._files.rows(table["file"], most), table["rows"]

    async def lines(self, name: str) -> list[str]:
        """Returns the lines of a text that are not empty."""
        if ref := self._attached.get(name):
            text = await read_text(self._store, ref)
        else:
            reports = await self._files.reports() if self._files else []
            files = [report.document["file"] for report in reports if report.name == name and report.document]
            text = "\n".join(passage for file in files for passage in _passages(file))
        return [line for line in text.splitlines() if line.strip()]

    async def files(self, pattern: str) -> list[str]:
        """Returns the files that a pattern fits, each with what tools call it."""
        reports = {report.name: report for report in (await self._files.reports() if self._files else [])}
        return [reports[name].described for name in matching(reports, pattern)]


def _passages(file: str) -> list[str]:
    stored = json.loads(Path(file).read_bytes())
    return [stored["text"]] if "text" in stored else [text for _place, text in stored["passages"]]


async def named_data(store: ArtifactStore, teams: StoredTeams, call: PlanInput) -> Data:
    """Returns the names of the data that templates of a run may use."""
    return await _RunData(store, teams, call.run, call.attachments).names()


class Expansions:
    """Expanding templates, with the store and the teams of this process."""

    def __init__(self, store: ArtifactStore, teams: StoredTeams) -> None:
        self._store = store
        self._teams = teams

    @activity.defn
    async def expand_plan(self, call: ExpandInput) -> ExpandReply:
        """Returns the plan with a subtask for each item of a template, stored; no plan if there are none."""
        plan = await read_plan(self._store, call.plan_ref)
        template = plan.subtask(call.template)
        items, found = await self._items(call, template.for_each or "")
        subtasks = items_of(template, items[: call.room])
        if not subtasks:
            return ExpandReply(found=found)
        whole, run_id = expanded(plan, subtasks), call.run.run_id
        reply = ExpandReply(
            plan=shortened(whole),
            plan_ref=await self._store.put_output(run_id, whole.model_dump_json().encode("utf-8", "replace")),
            # By itself, so that a brief is the same whatever else the plan has by then.
            items_ref=await self._store.put_output(
                run_id, plan.model_copy(update={"subtasks": subtasks, "revision": 1}).model_dump_json().encode()
            ),
            found=found,
        )
        if (length := len(reply.model_dump_json())) > limits.PLAN_REPLY_BYTES:
            return ExpandReply(found=found, problem=f"with its items the plan takes {length} bytes: use fewer")
        return reply

    async def _items(self, call: ExpandInput, for_each: str) -> tuple[list[str], int]:
        """Returns the items of a template, of many rows the first ones, and their number."""
        kind, _, name = for_each.partition(":")
        data = _RunData(self._store, self._teams, call.run, call.attachments)
        if kind == "rows":
            rows, count = await data.rows(name, call.room)
            return [item_text(row) for row in rows], count
        if kind == "items":
            found = [item for text in await read_texts(self._store, call.named_ref) for item in json.loads(text)]
        else:
            found = await (data.lines(name) if kind == "lines" else data.files(name))
        return [item_text(item) for item in found], len(found)
