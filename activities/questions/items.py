"""The items of templates: their sources, the plan that includes them, and their output tables."""

import asyncio
import json
import tempfile
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from temporalio import activity

from activities.contracts.run_contracts import (
    DependencyRef,
    ExpandInput,
    ExpandReply,
    RunRef,
    TableInput,
    TableReply,
)
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
from temporal_supervisor.supervision.contract.plan import Plan, Subtask, template_of
from temporal_supervisor.supervision.contract.team import Team
from temporal_supervisor.supervision.planning.expansion import (
    ITEM_BYTES,
    Data,
    item_text,
    items_of,
    matching,
    with_items,
)
from temporal_supervisor.supervision.results.answer_table import (
    ItemRow,
    emptiness,
    first_rows,
    list_of_rows,
    table_csv,
)
from temporal_supervisor.supervision.results.payload_fit import cut_to
from temporal_supervisor.supervision.results.shown_links import without_links

_MISFITS_NAMED = 5  # rows that do not fit the form of the answer


@dataclass(frozen=True)
class _ItemTable:
    """The table of a template: its rows, and the finding behind each row."""

    columns: list[str]
    rows: list[ItemRow]
    findings: list[DependencyRef]


@dataclass(frozen=True)
class _Form:
    """The form of an answer that is a list of rows: its `name`, and the `fields` of a row."""

    schema: dict[str, Any]
    name: str
    fields: list[str]


class RunData:
    """The attachments and files of a run that templates may name."""

    def __init__(
        self,
        store: ArtifactStore,
        teams: StoredTeams,
        run: RunRef,
        attached: list[ArtifactRef],
    ) -> None:
        self._store = store
        self._cache = teams.cache
        self._run_id = run.run_id
        self._files = teams.files_of(run)
        self._attached = {attachment.name: attachment.ref for attachment in attached}

    async def _reports(self) -> list[FileReport]:
        return await self._files.reports() if self._files else []

    async def names(self) -> Data:
        """Returns the names that templates may use, by kind: rows, lines, files."""
        tables: list[str] = []
        files_of_one: list[str] = []
        documents: list[str] = []
        files: list[str] = []
        for report in await self._reports():
            files.append(report.name)
            tables += [table["name"] for table in report.tables]
            if len(report.tables) == 1:
                files_of_one.append(report.name)
            if report.document:
                documents.append(report.name)
        return {
            "rows": [*tables, *files_of_one],
            "lines": [*self._attached, *documents],
            "files": files,
        }

    async def rows(self, name: str, most: int) -> tuple[list[str], int]:
        """Returns the first rows of a table, by its name or its file's, and the number of all."""
        named: list[dict[str, Any]] = []
        of_file: list[dict[str, Any]] = []
        for report in await self._reports():
            named += [table for table in report.tables if table["name"] == name]
            if report.name == name:
                of_file += report.tables
        found = [*named, *of_file]
        if not found or self._files is None:
            return [], 0
        return await self._files.rows(found[0]["file"], most), found[0]["rows"]

    async def lines(self, name: str, most: int) -> tuple[list[str], int]:
        """Returns the first non-empty lines of a text, and the number of all."""
        ref = self._attached.get(name)
        if ref:
            with tempfile.TemporaryDirectory(prefix="supervisor-lines-") as folder:
                file = Path(folder) / "text"
                await asyncio.to_thread(file.write_bytes, await self._store.get(ref))
                return await self._first_lines(str(file), most, is_pdf=False)

        for report in await self._reports():
            if report.name == name and report.document:
                is_pdf = name.casefold().endswith(".pdf")
                return await self._first_lines(report.document["file"], most, is_pdf=is_pdf)
        return [], 0

    async def _first_lines(self, file: str, most: int, *, is_pdf: bool) -> tuple[list[str], int]:
        found = await self._cache.first_lines(
            file,
            most,
            ITEM_BYTES,
            is_pdf=is_pdf,
            owner=self._run_id,
        )
        return found["lines"], found["count"]

    async def files(self, pattern: str) -> list[FileReport]:
        """Returns the reports on files that match a pattern."""
        reports = {report.name: report for report in await self._reports()}
        return [reports[name] for name in matching(reports, pattern)]


def shortened(plan: Plan) -> Plan:
    """Returns the plan cut to a size that fits into history; the stored plan is complete.

    Descriptions of items begin with the item, so that they differ when they are cut.
    """
    subtasks: list[Subtask] = []
    for subtask in plan.subtasks:
        if subtask.item:
            begin = cut(subtask.whole, limits.LINE_BYTES)
            subtask = subtask.model_copy(update={"description": begin, "item": ""})
        subtasks.append(subtask)
    return cut_to(plan.model_copy(update={"subtasks": subtasks}), limits.PAYLOAD_AIM_BYTES)


@dataclass(frozen=True)
class Expansions:
    """Activities that expand templates and tabulate their items."""

    store: ArtifactStore
    teams: StoredTeams

    @activity.defn
    async def expand_plan(self, call: ExpandInput) -> ExpandReply:
        """Returns the stored plan with subtasks for a template's items; none without items."""
        plan = await read_plan(self.store, call.plan_ref)
        template = plan.subtask(call.template)
        items, found, problem = await self._items(call, template.for_each or "")
        subtasks = items_of(template, items[: call.room])
        if not subtasks:
            return ExpandReply(found=found, problem="" if items else problem)

        run_id = call.run.run_id
        whole = with_items(plan, subtasks)
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
        length = len(reply.model_dump_json())
        if length > limits.PLAN_REPLY_BYTES:
            why = f"with its items the plan takes {length} bytes: use fewer"
            return ExpandReply(found=found, problem=why)
        latest = LatestPlan(plan_ref=reply.plan_ref, team_ref=call.team_ref)
        await keep_plan(self.store, call.run, latest)
        return reply

    async def _items(self, call: ExpandInput, for_each: str) -> tuple[list[str], int, str]:
        """Returns the first items of a template, the number of all, and a problem with others."""
        kind, _, name = for_each.partition(":")
        data = RunData(self.store, self.teams, call.run, call.attachments)
        found: list[str]
        count, problem = 0, ""
        if kind == "rows":
            found, count = await data.rows(name, call.room)
        elif kind == "files":
            files = await data.files(name)
            found = [file.name_with_tables for file in files if not file.problem]
            count = len(files)
            problem = unread_of(files)
        elif kind == "lines":
            found, count = await data.lines(name, call.room)
        else:
            found = []
            for text in await read_texts(self.store, call.named_ref):
                found += json.loads(text)
        return [item_text(item) for item in found], count or len(found), problem

    @activity.defn
    async def tabulate(self, call: TableInput) -> TableReply:
        """Stores the tables of templates.

        Returns them, and the answer if one of them is the answer.
        """
        plan = await read_plan(self.store, call.plan_ref)
        team = (await self.teams.load(call.team_ref)).team
        reply = TableReply()
        tables: dict[str, _ItemTable] = {}
        for template, group in groupby(call.findings, _template_of):
            findings = list(group)
            table = await self._table(plan, team, findings)
            if not table.columns:
                continue

            name = f"{template}.csv"
            data = table_csv(table.columns, table.rows)
            ref = await self.store.put_output(call.run.run_id, data)
            reply.tables.append(
                ArtifactRef(
                    name=name,
                    media_type="text/csv",
                    bytes=len(data),
                    ref=ref,
                    subtask_id=template,
                )
            )
            lacking = _lacking(team, table)
            if lacking:
                reply.lacks[template] = lacking
            tables[template] = table
        await self._fill_answer(call, reply, tables)
        return reply

    async def _table(self, plan: Plan, team: Team, findings: list[DependencyRef]) -> _ItemTable:
        """Returns the table of the outputs of a template's items; no columns if there are none."""
        columns_of = {role.name: role.columns for role in team.roles}
        columns: dict[str, None] = {}
        for finding in findings:
            if finding.output_ref:
                columns.update(dict.fromkeys(columns_of.get(finding.role, [])))
        if not columns:
            return _ItemTable([], [], findings)

        sources = {subtask.id: subtask.item for subtask in plan.subtasks}
        refs = [finding.output_ref for finding in findings if finding.output_ref]
        texts = iter(await read_texts(self.store, refs))
        rows: list[ItemRow] = []
        for finding in findings:
            values = json.loads(next(texts)) if finding.output_ref else {}
            source = one_line(sources[finding.subtask_id], limits.SENTENCE_BYTES)
            rows.append(ItemRow(values, finding.subtask_id, source))
        return _ItemTable(list(columns), rows, findings)

    async def _fill_answer(
        self,
        call: TableInput,
        reply: TableReply,
        tables: dict[str, _ItemTable],
    ) -> None:
        """Makes a table the answer if it is the only one that fits the answer's form."""
        if not call.answer_schema_ref:
            return
        schema = json.loads(await read_text(self.store, call.answer_schema_ref))
        sent = await answer_schema.as_sent(schema, call.run.run_id) or schema
        place = list_of_rows(sent)
        if place is None:
            return

        form = _Form(schema, *place)
        wanted = set(form.fields)
        fitting = [name for name, table in tables.items() if wanted <= set(table.columns)]
        if len(fitting) == 1:
            reply.fills = fitting[0]
            await self._fill(reply, form, tables[reply.fills], call.run.run_id)

    async def _fill(self, reply: TableReply, form: _Form, table: _ItemTable, run_id: str) -> None:
        """Makes the fitting rows of a table the answer."""
        lines: list[JsonValue] = [_fields_of(row, form.fields) for row in table.rows]
        misfits, whole = await answer_schema.row_problems(form.schema, lines, form.name, run_id)
        fitting: JsonValue = [line for at, line in enumerate(lines) if at not in misfits]
        value = {form.name: fitting} if form.name else fitting
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")

        unnamed: list[str] = []
        for at, why in misfits.items():
            # Those of partial findings are a gap of their template already.
            if not table.findings[at].partial:
                unnamed.append(f"{table.rows[at].item} ({why})")
        if unnamed:
            shown = "; ".join(unnamed[:_MISFITS_NAMED])
            reply.problem = f"{len(unnamed)} of {len(table.rows)} rows do not fit: {shown}"

        if whole:
            reply.problem = f"the rows are in {reply.fills}.csv alone: {whole}"
        else:
            if len(data) <= limits.ANSWER_JSON_BYTES:
                reply.answer_json = json.loads(data)
            if reply.answer_json is None:
                reply.answer_json_ref = await self.store.put_output(run_id, data)
        text = without_links(first_rows(reply.fills, table.columns, table.rows), frozenset())
        ref = await self.store.put_output(run_id, text)
        reply.first_rows = DependencyRef(
            subtask_id=reply.fills,
            role=DIGEST,
            text_ref=ref,
            bytes=size(text),
        )


def _template_of(finding: DependencyRef) -> str:
    return template_of(finding.subtask_id) or ""


def _lacking(team: Team, table: _ItemTable) -> str:
    """Returns the gap of a table with wanted columns that are mostly empty; else an empty text."""
    wanted_of = {role.name: role.wanted_columns for role in team.roles}
    wanted: set[str] = set()
    for finding in table.findings:
        wanted.update(wanted_of.get(finding.role, []))
    columns = [name for name in table.columns if name in wanted]
    return emptiness(columns, [row.values for row in table.rows])


def _fields_of(row: ItemRow, fields: list[str]) -> JsonValue:
    return {field: row.values[field] for field in fields if field in row.values}
