"""Looking up what a run takes from earlier ones, on a real store: many items, encryption, what is gone."""

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from activities.contracts.run_contracts import Published, RunRef
from activities.files.file_cache import FileEntry
from activities.files.manifest import Manifest
from activities.reuse.begun_runs import BegunRun, LatestPlan, find_begun, keep_begun, keep_plan
from activities.reuse.earlier_runs import EarlierRuns
from activities.reuse.saved_findings import SavedFindings, SavedInput, SavedReply
from activities.store.artifacts import ArtifactStore
from activities.store.grants import RunGrant, write_grant
from activities.store.store_urls import open_store
from activities.teams.stored_teams import StoredTeams
from activities.teams.team_files import TeamFiles
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import SupervisionError
from temporal_supervisor.supervision.base.store_keys import named_key, run_prefix
from temporal_supervisor.supervision.contract.finding import Evidence, Finding, FindingRecord
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.result import RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.reuse.matching import SavedFinding
from tests.serving import TEAMS, keys_in

TEMPLATE = Subtask(id="t1", description="Read the lease", role="reader", for_each="files:*.pdf")


def within(run: RunRef, below: str = "") -> ActivityEnvironment:
    """Returns the surroundings of an activity of a run, or of a workflow below it."""
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, workflow_id=f"{run.run_id}{below}")
    return environment


class Earlier:
    """Two runs of one store: `first` has ended with a finding for each lease, `second` builds on it."""

    def __init__(self, store: ArtifactStore) -> None:
        self.store = store
        self.teams = StoredTeams(store, TeamFiles([TEAMS]))

    async def begin(self, run_id: str, leases: dict[str, str], **begun: Any) -> tuple[RunRef, Plan, str]:
        """Stores how a run with these files began, and its plan with a subtask for each."""
        team_ref, _ = await self.teams.save(run_id, "again", ["small"])
        entries = [FileEntry(name=name, sha256=sha256) for name, sha256 in leases.items()]
        files_ref = await self.store.put_output(run_id, Manifest(files=entries).model_dump_json())
        fields = {"run_id": run_id, "first_run_id": "first", "team_ref": team_ref, "files_ref": files_ref, **begun}
        await keep_begun(self.store, BegunRun(**fields))
        items = [
            TEMPLATE.model_copy(update={"id": f"t1.{at}", "item": name, "for_each": None})
            for at, name in enumerate(leases, 1)
        ]
        plan = Plan(subtasks=[TEMPLATE, *items])
        plan_ref = await self.store.put_output(run_id, plan.model_dump_json())
        run = RunRef(run_id=run_id, first_run_id="first", files_ref=files_ref)
        await within(run).run(keep_plan, self.store, run, LatestPlan(plan_ref=plan_ref, team_ref=team_ref))
        return run, plan, plan_ref

    async def end(self, run_id: str, plan: Plan) -> None:
        """Stores the end of a run in which each item has a finding, made from its own file."""
        reports = []
        for subtask in plan.subtasks[1:]:
            output_ref = await self.store.put_output(run_id, f"text of {subtask.item}")
            record = FindingRecord(
                summary=f"The rent of {subtask.item}",
                sources=[subtask.item],
                evidence=[Evidence(tool="read_document", output_ref=output_ref)],
            )
            finding = Finding(
                summary=record.summary,
                text_ref=await self.store.put_output(run_id, f"finding of {subtask.item}"),
                record_ref=await self.store.put_output(run_id, record.model_dump_json()),
            )
            usage = Usage(model_calls=2)
            reports.append(SubtaskReport(id=subtask.id, role="reader", state="completed", finding=finding, usage=usage))
        result = RunResult(status="completed", subtasks=reports)
        result_ref = await self.store.put_output(run_id, result.model_dump_json())
        published = Published(result_ref=result_ref, first_run_id="first")
        await self.store.create(named_key("ended", run_id, "1"), published.model_dump_json().encode())

    async def found(self, run: RunRef, plan_ref: str, reuse_from: list[str]) -> tuple[SavedReply, list[SavedFinding]]:
        """Returns what a run that may take from these takes, on all pages."""
        grant = RunGrant(
            run_id=run.run_id,
            workflow_id=run.run_id,
            depth=1,
            models=["small"],
            nested_teams=[],
            expires_at=datetime.now(UTC) + timedelta(days=1),
            reuse_from=reuse_from,
        )
        run = run.model_copy(update={"grant_ref": await write_grant(self.store, grant)})
        team_ref, _ = await self.teams.save(run.run_id, "again", ["small"])
        call = SavedInput(run=run, plan_ref=plan_ref, team_ref=team_ref)
        find = SavedFindings(self.store, EarlierRuns(self.store, cast("Any", None))).find_saved
        reply = await within(run).run(find, call)
        saved = [*reply.saved]
        for ref in reply.more_refs:
            page = call.model_copy(update={"page_ref": ref})
            saved += (await within(run).run(find, page)).saved
        return reply, saved


def leases(*numbers: int) -> dict[str, str]:
    return {f"lease-{number:03}.pdf": f"content {number}" for number in numbers}


@pytest.fixture
async def earlier(tmp_path: Path) -> Earlier:
    store = open_store(tmp_path / "artifacts")
    await store.begin()
    return Earlier(store)


async def test_of_six_hundred_contracts_three_new_ones_are_three_items(earlier: Earlier) -> None:
    """Their numbers move, as the new ones stand between the others; the reply stays a payload."""
    known = [number for number in range(603) if number not in (5, 300, 601)]
    _, plan, _ = await earlier.begin("first", leases(*known))
    await earlier.end("first", plan)
    run, plan, plan_ref = await earlier.begin("second", leases(*range(603)))
    reply, saved = await earlier.found(run, plan_ref, ["first"])
    assert len(saved) == 600
    anew = {subtask.item for subtask in plan.subtasks[1:]} - {
        plan.subtask(finding.subtask_id).item for finding in saved
    }
    assert anew == {"lease-005.pdf", "lease-300.pdf", "lease-601.pdf"}
    assert all(f"of {plan.subtask(each.subtask_id).item}" in each.finding.summary for each in saved)
    assert reply.more_refs
    assert len(reply.model_dump_json()) < limits.PAYLOAD_HARD_BYTES
    assert (await earlier.found(run, plan_ref, ["first"]))[1] == saved, "the same plan gets the same findings"


async def test_a_finding_is_copied_with_all_that_it_leads_to(tmp_path: Path) -> None:
    """Encrypted content, too; then the earlier run may be deleted."""
    keys = keys_in(tmp_path / "keys", one=b"1" * 32)
    store = open_store(tmp_path / "artifacts", seal=keys)
    await store.begin()
    earlier = Earlier(store)
    _, plan, _ = await earlier.begin("first", leases(1))
    await earlier.end("first", plan)
    run, _, plan_ref = await earlier.begin("second", leases(1))
    _, (saved,) = await earlier.found(run, plan_ref, ["first"])
    await store.delete_run(run_prefix("first"))
    finding = saved.finding
    assert await store.get(finding.text_ref) == b"finding of lease-001.pdf"
    record = FindingRecord.model_validate_json(await store.get(finding.record_ref))
    assert await store.get(record.evidence[0].output_ref) == b"text of lease-001.pdf"
    refs = [finding.text_ref, finding.record_ref, record.evidence[0].output_ref]
    assert all(ref.startswith(run_prefix("second")) for ref in refs)
    assert (saved.reused.place, saved.reused.usage.model_calls) == ("first/t1.1", 2)


async def test_a_changed_file_or_another_run_than_the_granted_ones_gives_nothing(earlier: Earlier) -> None:
    _, plan, _ = await earlier.begin("first", leases(1, 2))
    await earlier.end("first", plan)
    run, _, plan_ref = await earlier.begin("second", {**leases(1, 2), "lease-002.pdf": "other"})
    _, saved = await earlier.found(run, plan_ref, ["first"])
    assert [finding.subtask_id for finding in saved] == ["t1.1"]
    _, saved = await earlier.found(run, plan_ref, [])
    assert saved == []


async def test_a_part_that_is_gone_is_done_again_and_a_run_that_is_gone_is_said(earlier: Earlier) -> None:
    _, plan, _ = await earlier.begin("first", leases(1, 2))
    await earlier.end("first", plan)
    run, _, plan_ref = await earlier.begin("second", leases(1, 2))
    gone = await earlier.store.put_output("first", "text of lease-001.pdf")
    await earlier.store.delete(gone)
    reply, saved = await earlier.found(run, plan_ref, ["first", "lost"])
    assert [finding.subtask_id for finding in saved] == ["t1.2"]
    assert reply.warnings == ["nothing is taken from run 'lost': it was deleted, or has no plan"]


async def test_unknown_runs_those_of_others_and_the_run_itself_are_refused_alike(earlier: Earlier) -> None:
    await earlier.begin("first", leases(1), owner="anna")
    runs = EarlierRuns(earlier.store, cast("Any", None))
    (begun,) = await runs.require(["first"], "second", "anna")
    assert begun.run_id == "first"
    for run_id, own_id, owner in (("first", "second", "eve"), ("none", "second", "anna"), ("first", "first", "anna")):
        with pytest.raises(SupervisionError, match="reuse_from: there is no run '(first|none)' that this one could"):
            await runs.require([run_id], own_id, owner)


async def test_an_id_that_runs_of_several_owners_had_is_refused(earlier: Earlier) -> None:
    await keep_begun(earlier.store, BegunRun(run_id="monday", first_run_id="a", owner="ann"))
    assert (await find_begun(earlier.store, "monday")) is not None
    await keep_begun(earlier.store, BegunRun(run_id="monday", first_run_id="b", owner="bob"))
    assert await find_begun(earlier.store, "monday") is None


async def test_only_a_root_asks_for_findings_of_earlier_runs(earlier: Earlier) -> None:
    """A nested run has the same reference to its run, and to its grant."""
    _, plan, _ = await earlier.begin("first", leases(1))
    await earlier.end("first", plan)
    run, _, plan_ref = await earlier.begin("second", leases(1))
    reply, (saved,) = await earlier.found(run, plan_ref, ["first"])
    find = SavedFindings(earlier.store, EarlierRuns(earlier.store, cast("Any", None))).find_saved
    call = SavedInput(run=run, plan_ref=plan_ref, team_ref=plan_ref)
    for asked in (call, call.model_copy(update={"page_ref": saved.finding.text_ref})):
        for below in ("/t1/1", "-2"):
            with pytest.raises(SupervisionError, match="only a root builds on earlier runs"):
                await within(run, below).run(find, asked)
    assert reply.missing == {}


async def test_an_id_that_another_owner_used_since_gives_nothing(earlier: Earlier) -> None:
    """Between the beginning of a run, which is when owners are compared, and its look-up."""
    _, plan, _ = await earlier.begin("first", leases(1), owner="ann")
    await earlier.end("first", plan)
    run, _, plan_ref = await earlier.begin("second", leases(1), owner="ann")
    assert len((await earlier.found(run, plan_ref, ["first"]))[1]) == 1
    await earlier.store.delete_run(run_prefix("first"))
    _, plan, _ = await earlier.begin("first", leases(1), owner="eve")
    await earlier.end("first", plan)
    reply, saved = await earlier.found(run, plan_ref, ["first"])
    assert (saved, len(reply.warnings)) == ([], 1)
