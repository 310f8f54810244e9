"""The activity that looks up earlier findings for the plan of a run that names their runs."""

import asyncio
from dataclasses import dataclass

from pydantic import TypeAdapter
from temporalio import activity

from activities.contracts.eval_contracts import GIVEN, GIVEN_FINDINGS, GivenInput
from activities.contracts.run_contracts import RunRef
from activities.reuse.begun_runs import own_beginning
from activities.reuse.earlier_runs import EarlierRun, EarlierRuns, files_of, parts_of
from activities.store.artifacts import ArtifactMissing, ArtifactStore
from activities.store.grants import find_grant
from activities.store.reading import read_plan
from activities.teams.stored_teams import read_team
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.store_keys import named_key
from temporal_supervisor.supervision.base.text import cut, size
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.result import Reused
from temporal_supervisor.supervision.results.payload_fit import pages
from temporal_supervisor.supervision.reuse.matching import (
    EarlierOffer,
    SavedFinding,
    chosen,
    named_offer,
)
from temporal_supervisor.supervision.reuse.recipes import RunParts, recipes

_PAGE_BYTES = 120 * limits.KIB  # of findings in one reply: a thousand of them would be no payload
_Page = TypeAdapter(list[SavedFinding])


class SavedInput(Model):
    """A plan that may take findings; `page_ref` asks for a further page of the reply."""

    run: RunRef
    plan_ref: str
    team_ref: str
    page_ref: str = ""


class SavedReply(Model):
    """The findings that a plan takes, copied into its run; `more_refs` are further pages.

    `missing` gives the reason for each subtask whose named finding is not there.
    """

    saved: list[SavedFinding] = []
    more_refs: list[str] = []
    missing: dict[str, str] = {}
    warnings: list[str] = []


@dataclass(frozen=True)
class SavedFindings:
    """Activities that look up findings of earlier runs in the store of this process."""

    store: ArtifactStore
    earlier: EarlierRuns

    @activity.defn
    async def find_saved(self, call: SavedInput) -> SavedReply:
        """Returns the findings that a plan takes from the runs in its grant.

        No other run is read, whatever the input names; the same plan gets the same findings each
        time.
        """
        run_id = call.run.run_id
        if activity.info().workflow_id != run_id:
            raise SupervisionError(ErrorKind.NOT_GRANTED, "only a root builds on earlier runs")
        if call.page_ref:
            return SavedReply(saved=_Page.validate_json(await self.store.get(call.page_ref)))
        grant = await find_grant(self.store, run_id, call.run.grant_ref)
        begun = await own_beginning(self.store, call.run)
        if grant is None or begun is None or not grant.reuse_from:
            return SavedReply()

        reply = SavedReply()
        earlier = await self._earlier(grant.reuse_from, begun.owner, reply)
        plan = await read_plan(self.store, call.plan_ref)
        team = await read_team(self.store, call.team_ref)
        files = await files_of(self.store, call.run.files_ref)
        parts = parts_of(begun, team, files)

        # In threads: of a thousand subtasks the hashes alone take a second.
        found, taken, wanted = await asyncio.to_thread(_wanted_offers, plan, parts, earlier)
        offers: list[EarlierOffer] = []
        for run, own in zip(earlier, wanted, strict=True):
            offers += await self.earlier.with_data(run, own)
        best = await asyncio.to_thread(chosen, plan, found, offers, parts)
        saved = await self._copy_findings(run_id, best, taken)
        reply.missing = _missing(plan, {finding.subtask_id for finding in saved})
        return await self._paged(run_id, reply, saved)

    @activity.defn
    async def given_findings(self, given: GivenInput) -> SavedReply:
        """Returns the findings that an eval left in a run which only writes an answer.

        They have no evidence: an answer is compared with their texts.
        """
        run_id = given.run.run_id
        left = await self.store.get(named_key("given", run_id, GIVEN))
        saved = list[SavedFinding]()
        for number, each in enumerate(GIVEN_FINDINGS.validate_json(left), 1):
            ref = await self.store.put_output(run_id, each.text)
            finding = Finding(
                summary=cut(each.text, limits.SUMMARY_BYTES),
                text_ref=ref,
                text_bytes=size(each.text),
            )
            subtask_id = f"t{number}"
            saved.append(
                SavedFinding(
                    subtask_id=subtask_id,
                    role=each.role,
                    finding=finding,
                    reused=Reused(run_id=run_id, subtask_id=subtask_id),
                    is_named=True,
                ),
            )
        return SavedReply(saved=saved)

    async def _earlier(
        self,
        run_ids: list[str],
        owner: str,
        reply: SavedReply,
    ) -> list[EarlierRun]:
        found = []
        for run_id in run_ids:
            run = await self.earlier.load(run_id, owner)
            if run is None:
                why = "it was deleted, or has no plan"
                reply.warnings.append(f"nothing is taken from run '{run_id}': {why}")
            else:
                found.append(run)
        return found

    async def _copy_findings(
        self,
        run_id: str,
        offers: dict[str, EarlierOffer],
        named: set[str],
    ) -> list[SavedFinding]:
        """Returns the findings that could be copied; an incomplete one is left out and redone."""
        copying = asyncio.Semaphore(limits.STORE_READS)

        async def copy_offer(subtask_id: str, offer: EarlierOffer) -> SavedFinding | None:
            finding = offer.report.finding
            if finding is None:
                return None
            try:
                async with copying:
                    own = await self.earlier.copy_finding(run_id, finding)
            except ArtifactMissing:
                return None
            owner = {"subtask_id": subtask_id}
            artifacts = [item.model_copy(update=owner) for item in own.artifacts]
            return SavedFinding(
                subtask_id=subtask_id,
                role=offer.report.role,
                model=offer.report.model,
                finding=own.model_copy(update={"artifacts": artifacts}),
                reused=offer.reused,
                rests_on=offer.rests_on,
                is_named=subtask_id in named,
            )

        found = await asyncio.gather(*(copy_offer(*each) for each in offers.items()))
        return [finding for finding in found if finding is not None]

    async def _paged(self, run_id: str, reply: SavedReply, saved: list[SavedFinding]) -> SavedReply:
        first, *others = pages(saved, _PAGE_BYTES)
        reply.saved = first
        for page in others:
            reply.more_refs.append(await self.store.put_output(run_id, _Page.dump_json(page)))
        return reply


def _wanted_offers(
    plan: Plan, parts: RunParts, earlier: list[EarlierRun]
) -> tuple[dict[str, str], set[str], list[list[EarlierOffer]]]:
    """Returns a plan's recipes, its subtasks with a named finding, and each run's useful offers."""
    offers = [run.offers() for run in earlier]
    every = [offer for own in offers for offer in own]
    there = dict[str, EarlierOffer]()
    for subtask in plan.subtasks:
        offer = named_offer(subtask, every)
        if offer is not None:
            there[subtask.id] = offer
    found = recipes(plan, parts, {subtask_id: offer.digest for subtask_id, offer in there.items()})
    known = {*found.values()}
    by_name = {offer.reused.place for offer in there.values()}

    def is_wanted(offer: EarlierOffer) -> bool:
        return offer.recipe in known or offer.reused.place in by_name

    return found, {*there}, [list(filter(is_wanted, own)) for own in offers]


def _missing(plan: Plan, there: set[str]) -> dict[str, str]:
    """Returns the reasons for subtasks that can only take an earlier finding, and have none."""
    found = {}
    for subtask in plan.subtasks:
        is_alone = subtask.for_each is None and not subtask.item
        if subtask.taken_from and is_alone and subtask.id not in there:
            found[subtask.id] = f"the finding {subtask.taken_from} is not there, or no longer"
    return found
