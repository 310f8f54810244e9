"""The first activity of a run: everything outside the request that its course depends on."""

from dataclasses import dataclass, field

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.artifact_store import ArtifactStore
from activities.contracts import AttachmentRef, RunRef, RunSetup, SetupInput
from activities.stored_teams import StoredTeams
from activities.team_files import team_card
from supervision.base import SupervisionError
from supervision.keys import is_upload
from supervision.request import Attachment


@dataclass(frozen=True)
class ProcessFacts:
    """What a process knows of its surroundings; a run takes these values over and keeps them."""

    tools_queue: str
    supervisor_model: str
    worker_model: str
    search_attributes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    model_notice: str | None = None


class RunSetupActivities:
    """Preparing runs, with the store, the teams and the facts of this process."""

    def __init__(self, store: ArtifactStore, teams: StoredTeams, facts: ProcessFacts) -> None:
        self._store = store
        self._teams = teams
        self._facts = facts

    @activity.defn
    async def prepare_run(self, input: SetupInput) -> RunSetup:
        """Stores goal, team and attachments; ApplicationError `UnknownTeam` or `InvalidRequest` on bad ones."""
        request, facts = input.request, self._facts
        run = RunRef(run_id=input.run_id, store_id="", scope=input.scope)
        try:
            team_ref, loaded = await self._teams.save(run.key("team"), request.team)
            attachments = [await self._attachment(run, i, a) for i, a in enumerate(request.attachments)]
        except SupervisionError as error:
            raise ApplicationError(
                error.message, type=error.type, non_retryable=True, category=ApplicationErrorCategory.BENIGN
            ) from error
        goal_ref = run.key("goal")
        await self._store.put(goal_ref, request.goal.encode("utf-8", "replace"))
        return RunSetup(
            store_id=await self._store.identity(),
            goal_ref=goal_ref,
            team_ref=team_ref,
            team=team_card(loaded, facts.worker_model, override=request.models.workers),
            supervisor_model=request.models.supervisor or facts.supervisor_model,
            attachments=attachments,
            tools_queue=facts.tools_queue,
            search_attributes=facts.search_attributes,
            warnings=facts.warnings,
            model_notice=facts.model_notice,
        )

    async def _attachment(self, run: RunRef, index: int, attachment: Attachment) -> AttachmentRef:
        if attachment.text is not None:
            data = attachment.text.encode("utf-8", "replace")
            ref = run.key(f"attachment.{index}")
            await self._store.put(ref, data)
            return AttachmentRef(name=attachment.name, ref=ref, bytes=len(data))
        ref = attachment.ref or ""
        found = await self._store.find(ref) if is_upload(ref) else None
        if found is None:
            raise SupervisionError(
                "InvalidRequest",
                f"attachment '{attachment.name}': nothing is stored at '{ref}', use a ref that `starter.py put` prints",
            )
        copied = await self._store.put_output(run.run_id, found)  # the run's own, so that uploads may be pruned
        return AttachmentRef(name=attachment.name, ref=copied, bytes=len(found))
