"""The items of templates: what a plan may name them by, the next plan with them, and the tables of their outputs."""

import asyncio
import json
import tempfile
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from temporalio import activity

from activities.contracts.run_contracts import DependencyRef, ExpandInput, ExpandReply, RunRef, TableInput, TableReply
from activities.files.file_reports import FileReport
from activities.files.manifest import unread_of
from activities.replies import answer_schema
from activities.reuse.begun_runs import LatestPlan, keep_plan
from activities.store.artifacts import ArtifactStore
from activities.store.reading import read_plan, read_text, read_texts
from activities.teams.stored_teams import StoredTeams
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.prompt_marks import DIGEST
from temporal_supervisor.supervision.base.text import cut, one_line, size
from temporal_supervisor.supervision.contract.finding import ArtifactRef
from temporal_supervisor.supervision.contract.plan import Plan, template_of
from temporal_supervisor.supervision.planning.expansion import ITEM_BYTES, Data, expanded, item_text, items_of, matching
from temporal_supervisor.supervision.results.answer_table import ItemRow, emptiness, first_rows, list_of_rows, table_csv
from temporal_supervisor.supervision.results.payload_fit import cut_to
from temporal_supervisor.supervision.results.shown_links import without_links

_Table = tuple[list[str], list[ItemRow], list[DependencyRef]]  # columns, and the rows with their findings
_MISFITS_NAMED = 5  # rows that do not fit the form of the answer


class RunData:
    """The attachments and files of a run as templates name them."""

    def __init__(self, store: ArtifactStore, teams: StoredTeams, run: RunRef, attached: list[ArtifactRef]) -> None:
        self._store = store
        self._cache = teams.cache
        self._run_id = run.run_id
        self._files = teams.files_of(run)
        self._attached = {attachment.name: attachment.ref for attachment in attached}

    async def _reports(self) -> list[FileReport]:
        return await self._files.reports() if self._files else []

    async def names(self) -> Data:
        """Returns the names that templates may use."""
        reports = await self._reports()
        tables = [table["name"] for report in reports for table in report.tables]
        return {
            "rows": [*tables, *(report.name for report in reports if len(report.tables) == 1)],
            "lines": [*self._attached, *(report.name for report in reports if report.document)],
            "files": [report.name for report in reports],
        }

    async def rows(self, name: str, most: int) -> tuple[list[str], int]:
        """Returns the first rows of a table, by its name or that of its file, and how many it has."""
        tables = [(table, report.name) for report in await self._reports() for table in report.tables]
        table = next((table for table, _ in tables if table["name"] == name), None)
        table = table or next((table for table, file in tables if file == name), None)
        if table is None or self._files is None:
            return [], 0
        return await self._files.rows(table["file"], most), table["rows"]

    async def lines(self, name: str, most: int) -> tuple[list[str], int]:
        """Returns the first lines of a text that are not empty, and how many it has."""
        if ref := self._attached.get(name):
            with tempfile.TemporaryDirectory(prefix="supervisor-lines-") as folder:
                file = Path(folder) / "text"
                await asyncio.to_thread(file.write_bytes, await self._store.get(ref))
                return await self._first_lines(str(file), most, is_pdf=False)
        documents = [report.document for report in await self._reports() if report.name == name and report.document]
        if not documents:
            return [], 0
        return await self._first_lines(documents[0]["file"], most, is_pdf=name.casefold().endswith(".pdf"))

    async def _first_lines(self, file: str, most: int, *, is_pdf: bool) -> tuple[list[str], int]:
        found = await self._cache.first_lines(file, most, ITEM_BYTES, is_pdf=is_pdf, owner=self._run_id)
        return found["lines"], found["count"]

    async def files(self, pattern: str) -> list[FileReport]:
        """Returns the files that a pattern fits."""
        reports = {report.name: report for report in await self._reports()}
        return [reports[name] for name in matching(reports, pattern)]


def shortened(plan: Plan) -> Plan:
    """Returns the plan cut to a size that fits into history; the stored plan keeps whole texts.

    Descriptions of items begin with the item, so that they differ when they are cut.
    """
    begun = [s.model_copy(update={"description": cut(s.whole, limits.LINE_BYTES), "item": ""}) for s in plan.subtasks]
    subtasks = [short if whole.item else whole for short, whole in zip(begun, plan.subtasks, strict=True)]
    return cut_to(plan.model_copy(update={"subtasks": subtasks}), limits.PAYLOAD_AIM_BYTES)


@dataclass(frozen=True)
class Expansions:
    """Expanding templates and tabulating their items, with the store and the teams of this process."""

    store: ArtifactStore
    teams: StoredTeams

    @activity.defn
    async def expand_plan(self, call: ExpandInput) -> ExpandReply:
        """Returns the plan with a subtask for each item of a template, stored; no plan if there are none."""
        plan = await read_plan(self.store, call.plan_ref)
        template = plan.subtask(call.template)
        items, found, problem = await self._items(call, template.for_each or "")
        subtasks = items_of(template, items[: call.room])
        if not subtasks:
            return ExpandReply(found=found, problem="" if items else problem)
        whole, run_id = expanded(plan, subtasks), call.run.run_id
        # By themselves, so that a brief is the same whatever else the plan has by then.
        items_alone = plan.model_copy(update={"subtasks": subtasks, "revision": 1})
        reply = ExpandReply(
            plan=shortened(whole),
            plan_ref=await self.store.put_output(run_id, whole.model_dump_json()),
            items_ref=await self.store.put_output(run_id, items_alone.model_dump_json()),
            found=found,
            unread=found - len(items) if problem else 0,
            problem=problem,
        )
        if (length := len(reply.model_dump_json())) > limits.PLAN_REPLY_BYTES:
            return ExpandReply(found=found, problem=f"with its items the plan takes {length} bytes: use fewer")
        latest = LatestPlan(plan_ref=reply.plan_ref, team_ref=call.team_ref)
        await keep_plan(self.store, call.run, latest)
        return reply

    async def _items(self, call: ExpandInput, for_each: str) -> tuple[list[str], int, str]:
        """Returns the items of a template, of many rows the first ones, how many there are, and why some are no use."""
        kind, _, name = for_each.partition(":")
        data = RunData(self.store, self.teams, call.run, call.attachments)
        count, problem = 0, ""
        if kind == "rows":
            found, count = await data.rows(name, call.room)
        elif kind == "files":
            files = await data.files(name)
            found, count, problem = [file.described for file in files if not file.problem], len(files), unread_of(files)
        elif kind == "lines":
            found, count = await data.lines(name, call.room)
        else:
            found = [item for text in await read_texts(self.store, call.named_ref) for item in json.loads(text)]
        return [item_text(item) for item in found], count or len(found), problem

    @activity.defn
    async def tabulate(self, call: TableInput) -> TableReply:
        """Returns the tables of templates, stored, and the answer if one of them is its list of rows."""
        plan, team = await read_plan(self.store, call.plan_ref), (await self.teams.load(call.team_ref)).team
        sources = {subtask.id: one_line(subtask.item, limits.SENTENCE_BYTES) for subtask in plan.subtasks}
        columns_of = {role.name: role.columns for role in team.roles}
        wanted_of = {role.name: role.wanted_columns for role in team.roles}
        reply, tables = TableReply(), dict[str, _Table]()
        for template, group in groupby(call.findings, lambda finding: template_of(finding.subtask_id) or ""):
            findings = list(group)
            columns = list(dict.fromkeys(name for f in findings if f.output_ref for name in columns_of.get(f.role, [])))
            if not columns:
                continue
            texts = iter(await read_texts(self.store, [f.output_ref for f in findings if f.output_ref]))
            outputs = (json.loads(next(texts)) if finding.output_ref else {} for finding in findings)
            rows = [ItemRow(v, f.subtask_id, sources[f.subtask_id]) for v, f in zip(outputs, findings, strict=True)]
            data, name = table_csv(columns, rows), f"{template}.csv"
            ref = await self.store.put_output(call.run.run_id, data)
            table = ArtifactRef(name=name, media_type="text/csv", bytes=len(data), ref=ref, subtask_id=template)
            reply.tables.append(table)
            wanted = {name for finding in findings for name in wanted_of.get(finding.role, [])}
            if lacking := emptiness([name for name in columns if name in wanted], [row.values for row in rows]):
                reply.lacks[template] = lacking
            tables[template] = (columns, rows, findings)
        if call.answer_schema_ref:
            schema = json.loads(await read_text(self.store, call.answer_schema_ref))
            place = list_of_rows(await answer_schema.as_sent(schema, call.run.run_id) or schema)
            fitting = [name for name, (columns, *_) in tables.items() if place and set(place[1]) <= set(columns)]
            if place and len(fitting) == 1:
                reply.fills = fitting[0]
                await self._fill(reply, schema, place, tables[reply.fills], call.run.run_id)
        return reply

    async def _fill(
        self, reply: TableReply, schema: dict[str, Any], place: tuple[str, list[str]], table: _Table, run_id: str
    ) -> None:
        """Makes the rows of a table that fit the answer's form the answer."""
        (name, fields), (columns, rows, findings) = place, table
        lines: list[JsonValue] = [{field: row.values[field] for field in fields if field in row.values} for row in rows]
        misfits, whole = await answer_schema.row_problems(schema, lines, name, run_id)
        value: JsonValue = [line for at, line in enumerate(lines) if at not in misfits]
        data = json.dumps({name: value} if name else value, ensure_ascii=False).encode("utf-8", "replace")
        # Those of partial findings are a gap of their template already.
        unnamed = [f"{rows[at].item} ({why})" for at, why in misfits.items() if not findings[at].partial]
        if unnamed:
            reply.problem = f"{len(unnamed)} of {len(rows)} rows do not fit: {'; '.join(unnamed[:_MISFITS_NAMED])}"
        if whole:
            reply.problem = f"the rows are in {reply.fills}.csv alone: {whole}"
        else:
            reply.answer_json = json.loads(data) if len(data) <= limits.ANSWER_JSON_BYTES else None
            if reply.answer_json is None:
                reply.answer_json_ref = await self.store.put_output(run_id, data)
        text = without_links(first_rows(reply.fills, columns, rows), frozenset())
        ref = await self.store.put_output(run_id, text)
        reply.first_rows = DependencyRef(subtask_id=reply.fills, role=DIGEST, text_ref=ref, bytes=size(text))
