"""The first activity of a run: it fixes everything outside the request that the run depends on."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from temporalio import activity

from activities.contracts.run_contracts import AttachmentRef, RunRef, RunSetup, SetupInput
from activities.files.manifest import (
    MANIFEST_TYPE,
    FileEntry,
    Manifest,
    adopt_files,
    is_text,
    read_manifest,
)
from activities.files.values import is_data
from activities.model.port import ModelEndpoint, ModelUsage
from activities.model.prompt_fit import brief_tokens
from activities.prompts.agent_prompts import finding_block, tag
from activities.replies import answer_schema
from activities.store.artifacts import ArtifactMissing, ArtifactStore
from activities.store.grants import Grants, RunGrant
from activities.store.reading import read_findings, read_plan, read_text
from activities.teams.stored_teams import StoredTeams
from activities.teams.team_files import team_card
from supervision.base.errors import ErrorKind, SupervisionError
from supervision.base.prompt_marks import ITEM
from supervision.contract.ceilings import Ceilings
from supervision.contract.model_choice import chain_of
from supervision.contract.request import Budget, RunRequest
from supervision.contract.team import Team, TeamCard

GRANT_LIFETIME = timedelta(days=90)  # a deadline stands still while people are awaited, and a reset sets it again


@dataclass(frozen=True)
class ProcessFacts:
    """Facts about the process and its settings that a run records at its start and keeps."""

    endpoint: ModelEndpoint
    tools_queue: str
    model_queue: str
    supervisor_model: str
    worker_model: str
    search_attributes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    model_notice: str | None = None
    notices: bool = False
    ceilings: Ceilings = field(default_factory=Ceilings)


class RunSetupActivities:
    """Preparing runs, with the store, the teams and the facts of this process."""

    def __init__(self, store: ArtifactStore, teams: StoredTeams, facts: ProcessFacts) -> None:
        self._store = store
        self._teams = teams
        self._facts = facts
        self._grants = Grants(store)

    @activity.defn
    async def prepare_run(self, setup: SetupInput) -> RunSetup:
        """Stores goal, team, answer schema and attachments. Returns their references.

        Raises SupervisionError `UnknownTeam` or `InvalidRequest` if one of them is bad, for a dollar budget with a
        model of unknown price, and for what is above the operator's ceilings.
        """
        request, facts = setup.request, self._facts
        run = setup.run
        workers = request.models.workers or chain_of(facts.worker_model)
        supervisor = request.models.supervisor or chain_of(facts.supervisor_model)
        if request.answer_schema is not None:
            await answer_schema.check_schema(request.answer_schema, run.run_id)
        # A nested supervisor's numbers are its root's: lowered there, and granted.
        lowered = [] if setup.brief else facts.ceilings.check(request)
        attachments, files_ref = await self._attached(run, request)
        run = run.model_copy(update={"files_ref": run.files_ref or files_ref})
        team_ref, loaded = await self._teams.save(run.run_id, request.team, workers, self._teams.files_of(run))
        for role in loaded.team.roles:
            if role.output_schema is not None:
                name = f"team.roles.{role.name}.output_schema"
                await answer_schema.check_schema(role.output_schema, run.run_id, name)
        card = team_card(loaded, workers)
        if isinstance(request.team, Team):
            facts.ceilings.check_inline_team(loaded.sources)
        models = _models(supervisor, card)
        facts.ceilings.check_models(models)
        unpriced = [model for model in models if facts.endpoint.price(model, ModelUsage()) is None]
        warnings = _budget_warnings(request, unpriced)
        files = self._teams.files_of(run) if files_ref else None  # those of the run above are its own warning
        unread = files.unread() if files else ""
        attachments = [*(setup.brief.attachments if setup.brief else []), *attachments]
        return RunSetup(
            store_id=await self._store.identity(),
            grant_ref=await self._granted(setup, [*models, *workers], card),
            goal_ref=await self._store.put_output(run.run_id, await self._goal(setup)),
            team_ref=team_ref,
            team=card,
            supervisor_model=supervisor[0],
            supervisor_fallbacks=supervisor[1:],
            prompt_tokens=min(facts.endpoint.window(model).prompt_tokens for model in supervisor),
            answer_schema_ref=await self._store.put_output(run.run_id, json.dumps(request.answer_schema))
            if request.answer_schema is not None
            else None,
            attachments=attachments,
            files_ref=run.files_ref,
            own_plan_ref=await self._store.put_output(run.run_id, request.plan.model_dump_json())
            if request.plan is not None
            else None,
            tools_queue=facts.tools_queue,
            model_queue=facts.model_queue,
            search_attributes=facts.search_attributes,
            notices=facts.notices,
            warnings=[*facts.warnings, *warnings, *lowered, *([unread] if unread else [])],
            model_notice=facts.model_notice,
            ceilings=facts.ceilings,
            data_labels=loaded.toolbox.labels_of_data(),
            was_reset=bool(setup.own_first_run_id) and setup.own_first_run_id != activity.info().workflow_run_id,
        )

    async def _granted(self, setup: SetupInput, models: list[str], team: TeamCard) -> str:
        """Issues the grant of a run, or of a nested supervisor below its parent's. Returns its reference."""
        run_id = setup.run.run_id
        parent = await self._grants.find(run_id, setup.run.grant_ref) if setup.brief else None
        if setup.brief is not None and parent is None:
            raise SupervisionError(ErrorKind.NOT_GRANTED, "a nested run needs its parent's grant")
        return await self._grants.write(
            RunGrant(
                run_id=run_id,
                workflow_id=activity.info().workflow_id or "",
                depth=parent.depth + 1 if parent else 1,
                models=sorted(set(models)),
                nested_teams=sorted({role.team for role in team.roles if role.team}),
                expires_at=parent.expires_at if parent else datetime.now(UTC) + GRANT_LIFETIME,
            )
        )

    async def _goal(self, setup: SetupInput) -> str:
        """Returns the goal; a nested supervisor's is its subtask with the findings that it builds on."""
        brief = setup.brief
        if brief is None:
            return setup.request.goal
        subtask = (await read_plan(self._store, brief.plan_ref)).subtask(brief.subtask_id)
        description = subtask.description
        if brief.description_ref:
            description = await read_text(self._store, brief.description_ref)
        model = (setup.request.models.supervisor or [self._facts.supervisor_model])[0]
        room = self._facts.endpoint.window(model).prompt_tokens
        findings = await read_findings(self._store, brief.dependencies, brief_tokens(room))
        parts = [description, *([tag(ITEM, subtask.item)] if subtask.item else [])]
        if findings:
            parts += ["Build on these findings:", *map(finding_block, findings)]
        if brief.feedback:
            parts.append(f"An earlier answer to this fell short. Fix exactly this: {brief.feedback}")
        return "\n\n".join(parts)

    async def _attached(self, run: RunRef, request: RunRequest) -> tuple[list[AttachmentRef], str]:
        """Returns the attached texts, and the manifest of what is data; a table that is a text is both.

        Everything is copied into the run, so that uploads may be pruned.
        """
        texts, manifests = list[AttachmentRef](), list[Manifest]()
        for attachment in request.attachments:
            name = attachment.name
            try:
                if attachment.media_type == MANIFEST_TYPE:
                    manifests.append(await read_manifest(self._store, attachment.ref or ""))
                    continue
                ref = (
                    await self._store.put_output(run.run_id, attachment.text)
                    if attachment.text is not None
                    else await self._store.adopt(run.run_id, attachment.ref or "")
                )
                data = await self._store.get(ref)
            except (ArtifactMissing, ValueError):
                raise SupervisionError(
                    ErrorKind.INVALID_REQUEST,
                    f"attachment '{name}': nothing is stored at '{attachment.ref}', use one that `put` prints",
                ) from None
            if is_data(name):
                file = FileEntry(name=name, bytes=len(data), sha256=hashlib.sha256(data).hexdigest(), parts=[ref])
                manifests.append(Manifest(files=[file]))
            if is_text(data):
                texts.append(AttachmentRef(name=name, ref=ref, bytes=len(data)))
            elif not is_data(name):
                raise SupervisionError(
                    ErrorKind.INVALID_REQUEST,
                    f"attachment '{name}' is no text, and files of this kind are not read: attach it as text or PDF",
                )
        try:
            return texts, await adopt_files(self._store, run.run_id, manifests) if manifests else ""
        except ArtifactMissing as missing:
            raise SupervisionError(
                ErrorKind.INVALID_REQUEST, f"a file of the attachments is no longer stored: {missing}"
            ) from None


def _models(supervisor: list[str], team: TeamCard) -> list[str]:
    """Returns the models of a run; a role that is a team calls none itself."""
    of_roles = (model for role in team.roles if role.team is None for model in role.models)
    return list(dict.fromkeys([*supervisor, *of_roles]))


def _budget_warnings(request: RunRequest, unpriced: list[str]) -> list[str]:
    """Returns the warning about a default dollar budget that cannot be counted; refuses an explicit one."""
    if request.budget.usd is None or not unpriced:
        return []
    names = ", ".join(unpriced)
    if request.budget.usd != Budget().usd:
        raise SupervisionError(
            ErrorKind.INVALID_REQUEST,
            f"budget.usd: the price of {names} is unknown, so dollars can't be counted: "
            "use models with a known price, or set budget.tokens and leave usd out",
        )
    return [f"the dollar budget is not kept: the price of {names} is unknown"]
