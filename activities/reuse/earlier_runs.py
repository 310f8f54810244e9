"""Earlier runs, as later ones read them: their findings with recipes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter
from temporalio.client import Client, WorkflowQueryFailedError

from activities.contracts.run_contracts import Published
from activities.files.manifest import Manifest
from activities.files.values import DATA_TOML
from activities.reuse.begun_runs import BegunRun, find_begun, find_plan
from activities.store.artifacts import ArtifactChanged, ArtifactMissing, ArtifactStore
from activities.store.reading import read_plan, read_text
from activities.teams.stored_teams import StoredTeam, read_team
from temporal_supervisor.supervision.base.store_keys import digest_of, is_named, run_prefix
from temporal_supervisor.supervision.base.text import cut
from temporal_supervisor.supervision.contract.finding import (
    CheckedClaim,
    Evidence,
    Finding,
    FindingRecord,
)
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.request import invalid_request
from temporal_supervisor.supervision.contract.result import RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.status import Status
from temporal_supervisor.supervision.reuse.earlier import EarlierFinding, EarlierWork
from temporal_supervisor.supervision.reuse.matching import EarlierOffer, offered, with_data
from temporal_supervisor.supervision.reuse.recipes import RunParts, recipes

_STATUS, _RESULT = "status", "result"
_WHY_NOT = "it is unknown, was deleted, has another owner, or is of an earlier version"
_NAME_BYTES = 200  # of a run's id in an error
_GOAL_BYTES = 2000  # of an earlier run, in a planner's prompt
_ANSWER_BYTES = 6000
WORKS = TypeAdapter(list[EarlierWork])
"""What a planner sees of earlier runs, as it is stored."""


@dataclass(frozen=True)
class EarlierRun:
    """A run, ended or not: its plan, its frozen team, and its subtasks so far."""

    begun: BegunRun
    plan: Plan
    team: StoredTeam
    result: RunResult
    files: dict[str, str] = field(default_factory=dict)

    @property
    def reports(self) -> list[SubtaskReport]:
        """Its subtasks."""
        return self.result.subtasks

    @property
    def is_one_finding(self) -> bool:
        """True if its answer is the finding of its only subtask, word for word."""
        is_written = self.result.answer_model is not None
        return bool(self.result.answer) and len(self.reports) == 1 and not is_written

    @property
    def digests(self) -> dict[str, str]:
        """The hashes of its findings' texts, by subtask."""
        found = {report.id: report.finding for report in self.reports}
        return {
            subtask_id: digest_of(finding.text_ref) or finding.text_ref
            for subtask_id, finding in found.items()
            if finding is not None
        }

    def offers(self) -> list[EarlierOffer]:
        """Returns its findings with their recipes; the files behind each are still unknown."""
        begun, digests = self.begun, self.digests
        named = {subtask.id for subtask in self.plan.subtasks if subtask.taken_from}
        taken = {subtask_id: digests[subtask_id] for subtask_id in sorted(named & digests.keys())}
        parts = parts_of(begun, self.team, self.files)
        found = recipes(self.plan, parts, taken)
        return offered(begun.run_id, self.reports, self.plan, found, digests, parts)

    @property
    def team_roles(self) -> set[str]:
        """The names of its roles that are teams."""
        return {role.name for role in self.team.team.roles if role.team}


def parts_of(begun: BegunRun, team: StoredTeam, files: dict[str, str]) -> RunParts:
    """Returns the parts of a run that all its subtasks share."""
    return RunParts(
        roles=team.role_states(),
        generalist=team.team.generalist,
        effort=begun.effort,
        extracts=begun.extracts,
        from_others=begun.data_from_others,
        day=begun.day,
        attachments=begun.attachment_digests,
        files=files,
    )


async def files_of(store: ArtifactStore, files_ref: str) -> dict[str, str]:
    """Returns the hashes of a run's files by name."""
    if not files_ref:
        return {}
    manifest = Manifest.model_validate_json(await store.get(files_ref))
    return {file.name: file.sha256 for file in manifest.files if not file.problem}


class EarlierRuns:
    """Earlier runs in a store.

    `client` queries runs that have not ended, or could not store their end.
    """

    def __init__(self, store: ArtifactStore, client: Client) -> None:
        self._store = store
        self._client = client

    async def require(self, run_ids: Sequence[str], own_id: str, owner: str) -> list[BegunRun]:
        """Returns the beginnings of some runs.

        Raises `InvalidRequest` for one that may not be named. A missing run and another owner's run
        get the same message.
        """
        found = []
        for run_id in run_ids:
            begun = await find_begun(self._store, run_id) if run_id != own_id else None
            if begun is None or begun.owner != owner:
                name = cut(run_id, _NAME_BYTES)
                words = f"reuse_from: there is no run '{name}' that this one could build on"
                raise invalid_request(f"{words}: {_WHY_NOT}")
            found.append(begun)
        return found

    async def load(self, run_id: str, owner: str | None = None) -> EarlierRun | None:
        """Returns a run; None if it is no longer in the store, or has no plan yet.

        Also None if it now belongs to another `owner`: ids can be reused.
        """
        try:
            begun = await find_begun(self._store, run_id)
            if begun is None or owner not in (None, begun.owner):
                return None
            latest = await find_plan(self._store, begun)
            if latest is None:
                return None
            plan = await read_plan(self._store, latest.plan_ref)
            team = await read_team(self._store, latest.team_ref or begun.team_ref)
            files = await files_of(self._store, begun.files_ref)
            ended = await self._ended(begun)
        except (ArtifactMissing, ArtifactChanged):
            return None
        return EarlierRun(begun, plan, team, ended or await self._query_result(run_id), files)

    async def _ended(self, begun: BegunRun) -> RunResult | None:
        """Returns the result of a run; None if this run of its id left none."""
        ended = await self._store.latest_ended(begun.run_id)
        if ended is None:
            return None
        published = Published.model_validate_json(ended)
        if published.first_run_id != begun.first_run_id:
            return None
        return RunResult.model_validate_json(await self._store.get(published.result_ref))

    async def _query_result(self, run_id: str) -> RunResult:
        """Returns the current result of a run that has stored no end, with all of its subtasks."""
        handle = self._client.get_workflow_handle(run_id)
        reports, cursor = list[SubtaskReport](), 0
        try:
            while True:
                page = await handle.query(_STATUS, cursor, result_type=Status)
                reports += page.subtasks
                if page.next_cursor is None or not page.subtasks:
                    break
                cursor = page.next_cursor
            result: RunResult = await handle.query(_RESULT, result_type=RunResult)
        except WorkflowQueryFailedError:  # it did not begin
            return RunResult()
        return result.model_copy(update={"subtasks": reports})

    async def with_data(
        self,
        run: EarlierRun,
        offers: Sequence[EarlierOffer],
    ) -> list[EarlierOffer]:
        """Returns the offers of a run with the files behind each, where they are known.

        A team within a team may have read all of them.
        """
        teams = run.team_roles
        of_teams = any(offer.report.role in teams for offer in offers)
        as_begun = of_teams and await self._has_teams_as_begun(run)
        every = {"files": {**run.files}, "all_files": True}
        refs = [offer.report.finding.record_ref for offer in offers if offer.report.finding]
        problems = list[str]()
        read = FindingRecord.model_validate_json
        records = await self._store.read_all(filter(None, refs), read, problems)
        found = []
        for offer in offers:
            if offer.report.role in teams:
                found.append(offer.model_copy(update=every) if as_begun else offer)
                continue
            finding = offer.report.finding
            record = records.get(finding.record_ref) if finding else None
            known = record and with_data(offer, record, run.team.tools, run.files, DATA_TOML)
            found.append(known or offer)
        return found

    async def _has_teams_as_begun(self, run: EarlierRun) -> bool:
        """True if no team within a run's team was edited while the run was open.

        Each of them is read when its own part of the run begins.
        """
        async for meta in self._store.objects(run_prefix(run.begun.run_id)):
            if not is_named("team", meta["path"]):
                continue
            team = await read_team(self._store, meta["path"])
            known = run.team.teams.get(team.team.name)
            if known is not None and team.state != known:
                return False
        return True

    async def work(self, run: EarlierRun, place: str) -> EarlierWork:
        """Returns a run in the form that a planner sees."""
        goal = await read_text(self._store, run.begun.goal_ref) if run.begun.goal_ref else ""
        whole = {subtask.id: subtask.description for subtask in run.plan.subtasks}
        findings = [
            EarlierFinding(
                id=report.id,
                role=report.role,
                description=whole.get(report.id, report.description),
                summary=report.finding.summary,
            )
            for report in run.reports
            if report.state == "completed" and report.finding
        ]
        return EarlierWork(
            run_id=run.begun.run_id,
            place=place,
            goal=cut(goal, _GOAL_BYTES),
            answer=cut(run.result.answer, _ANSWER_BYTES),
            findings=findings,
        )

    async def copy_finding(self, run_id: str, finding: Finding) -> Finding:
        """Copies a finding into a run, with everything that it refers to. Returns the copy.

        Raises ArtifactMissing if a part is gone.
        """
        copy = self._store.copy_output
        changes: dict[str, object] = {"text_ref": await copy(run_id, finding.text_ref)}
        for name in ("items_ref", "output_ref"):
            ref = getattr(finding, name)
            changes[name] = await copy(run_id, ref) if ref else ""
        artifacts = []
        for item in finding.artifacts:
            artifacts.append(item.model_copy(update={"ref": await copy(run_id, item.ref)}))
        changes["artifacts"] = artifacts
        if finding.record_ref:
            record = FindingRecord.model_validate_json(await self._store.get(finding.record_ref))
            changes["record_ref"] = await self._copy_record(run_id, record)
        return finding.model_copy(update=changes)

    async def _copy_record(self, run_id: str, record: FindingRecord) -> str:
        """Copies a record and everything that it refers to into a run. Returns its reference."""
        places = {item.output_ref for item in record.evidence}
        places |= {claim.ref for claim in record.checked}
        copies = {ref: await self._store.copy_output(run_id, ref) for ref in sorted(places - {""})}
        evidence = [_with_copied_output(item, copies) for item in record.evidence]
        checked = [_with_copied_ref(claim, copies) for claim in record.checked]
        own = record.model_copy(update={"evidence": evidence, "checked": checked})
        return await self._store.put_output(run_id, own.model_dump_json())


def _with_copied_ref(claim: CheckedClaim, copies: dict[str, str]) -> CheckedClaim:
    return claim.model_copy(update={"ref": copies.get(claim.ref, "")})


def _with_copied_output(item: Evidence, copies: dict[str, str]) -> Evidence:
    return item.model_copy(update={"output_ref": copies.get(item.output_ref, "")})
