"""Activities of a supervisor that call no model: the start and the end of a run, and look-ups."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial

from temporalio import activity
from temporalio.api.enums.v1 import DescribeTaskQueueMode, TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.service import RPCError

from activities.activity_telemetry import record_run_end
from activities.contracts.run_contracts import (
    AdoptInput,
    ChildRef,
    Consumed,
    PersonWords,
    ProcessFacts,
    Published,
    PublishInput,
    RunRef,
    RunSetup,
    SetupInput,
    WordsInput,
)
from activities.contracts.turn_contracts import BacklogInput
from activities.files.file_cache import FileEntry
from activities.files.manifest import (
    MANIFEST_TYPE,
    FilesRefused,
    Manifest,
    adopt_files,
    is_text,
    read_manifest,
)
from activities.files.values import DATA_TOML, is_data
from activities.heartbeat import waiting
from activities.model.conversation import ConversationStore
from activities.model.endpoint_probe import EndpointProbe
from activities.model.journalled_call import usage_of
from activities.model.port import ModelEndpoint, ModelUsage
from activities.model.prompt_fit import brief_tokens
from activities.prompts.agent_prompts import already_done
from activities.prompts.prompt_blocks import finding_block, tag
from activities.replies import answer_schema
from activities.reuse.beginnings import (
    begun_run,
    find_beginnings,
    store_planner_words,
    with_earlier_data,
)
from activities.reuse.begun_runs import BegunRun, keep_begun
from activities.reuse.earlier_runs import EarlierRuns
from activities.run.run_warnings import budget_warnings, endpoint_warnings
from activities.store.artifacts import ArtifactError, ArtifactMissing, ArtifactStore
from activities.store.grants import RunGrant, find_grant, write_grant
from activities.store.reading import read_findings, read_plan, read_text
from activities.store.spending import RunSpend, keep_run_spend, keep_sample
from activities.teams.stored_teams import StoredTeams
from activities.teams.team_files import team_card
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.prompt_marks import ITEM
from temporal_supervisor.supervision.base.store_keys import calls_of, calls_prefix, named_key
from temporal_supervisor.supervision.base.text import cut, size
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Finding, FindingRecord
from temporal_supervisor.supervision.contract.model_choice import OptionalStep
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.request import (
    Attachment,
    RunRequest,
    invalid_request,
)
from temporal_supervisor.supervision.contract.result import RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.status import TraceEvent
from temporal_supervisor.supervision.contract.team import GENERAL, Team, TeamCard
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.grounding.citations import with_valid_marks
from temporal_supervisor.supervision.planning.estimate import RunSample, sample_of
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts
from temporal_supervisor.supervision.results.answer import Answer, answer_record, with_gaps
from temporal_supervisor.supervision.results.shown_links import without_own_links

# A deadline stands still while people are awaited, and a reset sets it again.
GRANT_LIFETIME = timedelta(days=90)


@dataclass(frozen=True)
class DefaultModels:
    """The models of supervisors and of worker agents where nothing names others.

    `chosen` is True if the operator named them. Otherwise the only model of an endpoint replaces
    them.
    """

    supervisor: list[str]
    workers: list[str]
    chosen: bool = True

    def for_endpoint(self, endpoint: EndpointFacts) -> "DefaultModels":
        """Returns the models to use at an endpoint."""
        only = endpoint.only_name
        return self if self.chosen or only is None else DefaultModels([only], [only])


@dataclass(frozen=True)
class RunActivities:
    """Activities of runs, with the store, teams, facts and default models of this process.

    `usual_team` is for requests that name no team. Without `earlier` no run builds on another one.
    """

    store: ArtifactStore
    teams: StoredTeams
    endpoint: ModelEndpoint
    facts: ProcessFacts
    defaults: DefaultModels
    probe: EndpointProbe = field(default_factory=EndpointProbe)
    usual_team: str = GENERAL
    earlier: EarlierRuns | None = None

    @activity.defn
    async def prepare_run(self, setup: SetupInput) -> RunSetup:
        """Fixes everything that the run depends on in addition to its request.

        Returns references to it. Raises SupervisionError `UnknownTeam` or `InvalidRequest` for a
        bad team or request, for a dollar budget with a model of unknown price, and for values above
        the operator's ceilings.
        """
        request = setup.request
        facts = self.facts
        # Only a root may begin with an empty store: for a nested run the guard has asked for the
        # root's already.
        own_first = setup.own_first_run_id
        was_reset = bool(own_first) and own_first != activity.info().workflow_run_id
        store_id = setup.run.store_id or await self.store.begin(again=was_reset)

        parent = await self._grant_above(setup)
        known = parent.endpoint if parent else await self._known_endpoint()
        defaults = self.defaults.for_endpoint(known)
        workers = request.models.workers or defaults.workers
        supervisor = request.models.supervisor or defaults.supervisor
        schema = request.answer_schema
        if schema is not None:
            await answer_schema.check_schema(schema, setup.run.run_id)
        # A nested supervisor's numbers are its root's: lowered there, and granted.
        lowered = [] if parent else facts.ceilings.check(request)

        earlier = await find_beginnings(self.earlier, setup)
        own = await self._copy_attachments(setup.run, request)
        attachments, files_ref = await with_earlier_data(self.store, setup.run.run_id, earlier, own)
        run = setup.run.model_copy(update={"files_ref": setup.run.files_ref or files_ref})
        from_others = _has_data_from_others(request, parent, earlier)

        files = self.teams.files_of(run)
        team_ref, loaded = await self.teams.save(
            run.run_id,
            self.usual_team if request.team is None else request.team,
            workers,
            files,
            self.endpoint.runs_tools,
            data_from_others=from_others,
            models_of_roles={} if parent else request.models.roles,
            supervisor_models=supervisor,
        )
        await _check_output_schemas(loaded.team, run.run_id)
        if isinstance(request.team, Team):
            facts.ceilings.check_inline_team(frozenset(loaded.sources.values()))

        card = team_card(loaded, workers)
        models = _called_models(supervisor, card)
        facts.ceilings.check_models(models)
        known = self._fixed_endpoint(known, models, parent)
        grant = RunGrant(
            run_id=run.run_id,
            workflow_id=activity.info().workflow_id or "",
            depth=parent.depth + 1 if parent else 1,
            models=sorted({*models, *workers}),
            nested_teams=sorted({role.team for role in card.roles if role.team}),
            expires_at=parent.expires_at if parent else datetime.now(UTC) + GRANT_LIFETIME,
            endpoint=known,
            data_from_others=from_others,
            reuse_from=[begun.run_id for begun in earlier],
        )

        warnings = [*self._warnings(request, parent, known, models), *lowered]
        # The run above has warned of the files that it was given.
        unread = files.unread() if files and files_ref else ""
        if unread:
            warnings.append(unread)

        put = partial(self.store.put_output, run.run_id)
        goal_ref = await put(await self._goal(setup, self._finding_tokens(known, supervisor[0])))
        if parent is None:
            begun = begun_run(run, request, goal_ref, team_ref, attachments)
            words = {"extracts": facts.extracts, "data_from_others": from_others}
            await keep_begun(self.store, begun.model_copy(update=words))

        earlier_ref, earlier_labels = await store_planner_words(
            self.store,
            self.earlier,
            request,
            earlier,
            run.run_id,
        )
        return RunSetup(
            **facts.model_dump(exclude={"warnings", "model_off"}),
            store_id=store_id,
            grant_ref=await write_grant(self.store, grant),
            goal_ref=goal_ref,
            team_ref=team_ref,
            team=card,
            supervisor_models=supervisor,
            reviewed=not self._reviews_itself(known, supervisor[0], models),
            model_off=self._left_out(known, supervisor),
            prompt_tokens=min(self._finding_tokens(known, model) for model in supervisor),
            endpoint=known,
            answer_schema_ref=None if schema is None else await put(json.dumps(schema)),
            attachments=[*(setup.brief.attachments if setup.brief else []), *attachments],
            files_ref=run.files_ref,
            warnings=warnings,
            data_labels=loaded.toolbox.labels_of_data(),
            was_reset=was_reset,
            earlier_ref=earlier_ref,
            earlier_labels=earlier_labels,
        )

    def _warnings(
        self,
        request: RunRequest,
        parent: RunGrant | None,
        known: EndpointFacts,
        models: Sequence[str],
    ) -> list[str]:
        """Returns the warnings about a run's models, except those that the run above has given."""
        known_above = parent.models if parent else []
        new_models = [model for model in models if model not in known_above]
        unpriced = [model for model in new_models if not self._has_price(model)]
        warnings = [] if parent else [*self.facts.warnings]
        warnings += endpoint_warnings(known, new_models)
        return warnings + budget_warnings(request, unpriced)

    async def _grant_above(self, setup: SetupInput) -> RunGrant | None:
        """Returns the grant of the run above; None for a root.

        Raises SupervisionError `NotGranted`.
        """
        if setup.brief is None:
            return None
        grant = await find_grant(self.store, setup.run.run_id, setup.run.grant_ref)
        if grant is None:
            raise SupervisionError(ErrorKind.NOT_GRANTED, "a nested run needs its parent's grant")
        return grant

    async def _known_endpoint(self) -> EndpointFacts:
        """Returns the facts about the endpoint, waiting if this process still asks for them."""
        async with waiting():
            return await self.probe.facts()

    def _fixed_endpoint(
        self,
        known: EndpointFacts,
        models: list[str],
        parent: RunGrant | None,
    ) -> EndpointFacts:
        """Returns the facts about the endpoint, with the traits by which each model is called.

        They hold for the whole run. A nested run calls the models of the run above in the same way.
        """
        kept = parent.endpoint.models if parent else {}
        fixed = {}
        for model in models:
            fixed[model] = kept.get(model) or self.endpoint.traits_for_run(model, known)
        return known.model_copy(update={"models": fixed})

    def _reviews_itself(self, known: EndpointFacts, supervisor: str, models: list[str]) -> bool:
        """True if a small model makes all findings: its review of them would be noise."""
        if set(models) != {supervisor}:
            return False
        return self.endpoint.window(supervisor, known.traits(supervisor)).is_small

    def _left_out(
        self,
        known: EndpointFacts,
        supervisor: list[str],
    ) -> dict[str, list[OptionalStep]]:
        """Returns the steps that are left out, by model.

        The settings decide for models that they name. Other small models leave out `refine` and
        `replan`, which led to no finding that the first descriptions and plans had not.
        """
        off = dict(self.facts.model_off)
        for model in supervisor:
            is_named = any(fnmatchcase(model, name) for name in off)
            if not is_named and self.endpoint.window(model, known.traits(model)).is_small:
                off[model] = ["refine", "replan"]
        return off

    def _has_price(self, model: str) -> bool:
        return self.endpoint.price(model, ModelUsage()) is not None

    def _finding_tokens(self, known: EndpointFacts, model: str) -> int:
        """Returns the tokens for findings in one prompt of a model."""
        return self.endpoint.window(model, known.traits(model)).prompt_tokens

    async def _goal(self, setup: SetupInput, room: int) -> str:
        """Returns the goal; for a nested supervisor its subtask, with the findings to build on."""
        brief = setup.brief
        if brief is None:
            return setup.request.goal
        subtask = (await read_plan(self.store, brief.plan_ref)).subtask(brief.subtask_id)
        description = subtask.description
        if brief.description_ref:
            description = await read_text(self.store, brief.description_ref)
        findings = await read_findings(self.store, brief.dependencies, brief_tokens(room))
        parts = [description]
        if subtask.item:
            parts.append(tag(ITEM, subtask.item))
        if findings:
            parts += ["Build on these findings:", *map(finding_block, findings)]
        if brief.effects:
            parts.append(already_done(brief.effects))
        if brief.feedback:
            short = "An earlier answer to this fell short."
            parts.append(f"{short} Fix exactly this: {brief.feedback}")
        return "\n\n".join(parts)

    async def _copy_attachments(
        self,
        run: RunRef,
        request: RunRequest,
    ) -> tuple[list[ArtifactRef], str]:
        """Copies the attachments into the run, so that uploads may be pruned.

        Returns the attached texts, and the manifest of the attached data; a table in a text file is
        both. Raises SupervisionError `InvalidRequest` for an attachment that is missing or can't be
        read.
        """
        texts: list[ArtifactRef] = []
        manifests: list[Manifest] = []
        for attachment in request.attachments:
            name = attachment.name
            try:
                if attachment.media_type == MANIFEST_TYPE:
                    manifests.append(await read_manifest(self.store, attachment.ref or ""))
                    continue
                ref = await self._copy_attachment(run.run_id, attachment)
                data = await self.store.get(ref)
            except (ArtifactMissing, ValueError):
                missing = f"the Worker's store, {self.store.url}, has nothing at '{attachment.ref}'"
                helps = "let SUPERVISOR_ARTIFACTS_URL name one store in all processes"
                words = f"attachment '{name}': {missing}: {helps}, or `put` it again"
                raise invalid_request(words) from None

            if is_data(name) or name == DATA_TOML:
                sha256 = hashlib.sha256(data).hexdigest()
                file = FileEntry(name=name, bytes=len(data), sha256=sha256, parts=[ref])
                manifests.append(Manifest(files=[file]))
            if is_text(data):
                texts.append(ArtifactRef(name=name, ref=ref, bytes=len(data)))
            elif not is_data(name):
                words = f"attachment '{name}' is no text, and files of this kind are not read"
                raise invalid_request(f"{words}: attach it as text or PDF")

        if not manifests:
            return texts, ""
        try:
            return texts, await adopt_files(self.store, run.run_id, manifests)
        except ArtifactMissing as missing:
            lost = "a file of the attachments is no longer stored"
            raise invalid_request(f"{lost}: {missing}") from None
        except FilesRefused as refused:
            raise invalid_request(f"the attachments hold {refused}") from None

    async def _copy_attachment(self, run_id: str, attachment: Attachment) -> str:
        """Copies an attachment into the run. Returns its reference."""
        if attachment.text is not None:
            return await self.store.put_output(run_id, attachment.text)
        return await self.store.copy_upload(run_id, attachment.ref or "")

    @activity.defn
    async def child_consumed(self, child: ChildRef) -> Consumed:
        """Returns the usage of a child and its descendants, over all of its executions."""
        run = child.run
        own = calls_of(run.run_id, run.first_run_id, child.workflow_id)
        consumed = Consumed()
        conversations = ConversationStore(self.store)
        for key in await self.store.list_keys(calls_prefix(run.run_id, run.first_run_id)):
            if not key.startswith(own):
                continue
            entry = await conversations.entry(key)
            reply = entry.reply
            tool_calls = min(len(reply.tool_uses()), limits.TOOL_CALLS_PER_TURN)
            consumed.usage += usage_of(self.endpoint, reply.model, reply.usage) + entry.spent
            consumed.usage += Usage(tool_calls=tool_calls)
            consumed.turns += 1
        return consumed

    @staticmethod
    @activity.defn
    async def pool_backlog(backlog: BacklogInput) -> float:
        """Returns the seconds that the oldest activity in a queue has waited.

        0 if none waits or the server fails. The server caches its answer for a while
        (`matching.TaskQueueInfoByBuildIdTTL`, 5 s), so it may be that old.
        """
        client = activity.client()
        request = DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=backlog.queue),
            api_mode=DescribeTaskQueueMode.DESCRIBE_TASK_QUEUE_MODE_ENHANCED,
            task_queue_types=[TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY],
            report_stats=True,
        )
        try:
            described = await client.workflow_service.describe_task_queue(request)
        except RPCError:
            return 0.0
        oldest = 0.0
        for version in described.versions_info.values():
            for kind in version.types_info.values():
                age = kind.stats.approximate_backlog_age.ToTimedelta()
                oldest = max(oldest, age.total_seconds())
        return oldest

    @activity.defn
    async def publish_result(self, publication: PublishInput, trace: list[TraceEvent]) -> Published:
        """Stores the result with its complete texts, and the trace; or one page of the result.

        Returns the references.
        """
        run = publication.run
        workflow_id = activity.info().workflow_id or ""
        put = partial(self.store.put_output, run.run_id)
        if publication.is_page:
            return Published(result_ref=await put(publication.result.model_dump_json()))

        plan = await read_plan(self.store, publication.plan_ref) if publication.plan_ref else Plan()
        result = await self._with_answer(publication)
        result = await self._whole_result(result, publication.pages, plan)
        events = ",\n".join(event.model_dump_json() for event in trace)
        refs = Published(
            result_ref=await put(result.model_dump_json(indent=1)),
            trace_ref=await put(f"[{events}]\n"),
            answer_ref=result.answer_ref,
        )
        is_nested = workflow_id.startswith(f"{run.run_id}/")
        if is_nested and result.answer_ref:
            # The supervisor above reads the answer as a finding: its marks name subtasks of here.
            whole = await read_text(self.store, result.answer_ref)
            own_marks = {subtask.id for subtask in plan.subtasks}
            refs.answer_ref = await put(with_valid_marks(whole, own_marks, set()))
            refs.record_ref = await put(answer_record(result).model_dump_json())

        ended_at = datetime.now(UTC)
        if workflow_id == run.run_id:
            await self._keep_end(publication, result, refs, ended_at)
        if publication.team is not None:
            sample = sample_of(result, plan, publication.planned, publication.estimate)
            await self._keep_sample(publication.team, run.run_id, sample)
        record_run_end(run, publication.facts, result, workflow_id, ended_at)
        return refs

    async def _with_answer(self, publication: PublishInput) -> RunResult:
        """Returns the result with its complete answer, which is stored, and its complete JSON."""
        result = publication.result
        if result.answer_ref:
            answer = await read_text(self.store, result.answer_ref)
            result = result.model_copy(update={"answer": with_gaps(answer, result.gaps)})
        elif result.answer:  # findings as they came: no model call has stored them
            answer_ref = await self.store.put_output(publication.run.run_id, result.answer)
            result = result.model_copy(update={"answer_ref": answer_ref})
        if publication.answer_json_ref:
            value = json.loads(await self.store.get(publication.answer_json_ref))
            result = result.model_copy(update={"answer_json": value})
        return result

    async def _keep_end(
        self,
        publication: PublishInput,
        result: RunResult,
        refs: Published,
        ended_at: datetime,
    ) -> None:
        """Stores the end of a run under its id, which outlives Temporal's record of the run."""
        run, facts = publication.run, publication.facts
        end = refs.model_copy(update={"facts": facts, "first_run_id": run.first_run_id})
        key = named_key("ended", run.run_id, activity.info().workflow_run_id or "")
        await self.store.create(key, end.model_dump_json().encode("utf-8", "replace"))
        if facts:
            whose = facts.model_dump(include={"owner", "team"})
            spent = RunSpend(run_id=run.run_id, ended_at=ended_at, usage=result.usage, **whose)
            await keep_run_spend(self.store, spent)

    async def _keep_sample(self, team: str, run_id: str, sample: RunSample) -> None:
        """Stores the usage of a run for estimates of later plans; a failure is only logged."""
        # Known to each attempt alike: so they store one sample, not several.
        ended_at = activity.info().scheduled_time
        try:
            await keep_sample(self.store, team, run_id, ended_at, sample)
        except ArtifactError as error:
            activity.logger.warning("what the run took is not kept for estimates: %s", error)

    @activity.defn
    async def adopt_finding(self, adoption: AdoptInput) -> Answer:
        """Returns a finding as the run's answer, word for word."""
        # It may be a person's.
        text = without_own_links(await read_text(self.store, adoption.text_ref))
        if adoption.label:
            text = f"**{adoption.label}**\n\n{text}"
        ref = await self.store.put_output(adoption.run.run_id, text)
        return Answer(text=cut(text, limits.ANSWER_INLINE_BYTES), ref=ref)

    @activity.defn
    async def keep_words(self, said: WordsInput) -> list[Finding]:
        """Stores people's texts, and returns each as a finding."""
        return [await self._store_words(said.run.run_id, words) for words in said.words]

    async def _store_words(self, run_id: str, words: PersonWords) -> Finding:
        put = partial(self.store.put_output, run_id)
        record = FindingRecord(summary=words.text, sources=[words.source])
        return Finding(
            **record.model_dump(exclude={"checked", "evidence"}),
            text_ref=await put(words.text),
            text_bytes=size(words.text),
            record_ref=await put(record.model_dump_json()),
        )

    async def _whole_result(self, result: RunResult, pages: list[str], plan: Plan) -> RunResult:
        """Returns the result with the subtasks of all pages, and the artifacts of their findings.

        The descriptions are complete, as planned.
        """
        stored = [RunResult.model_validate_json(await self.store.get(page)) for page in pages]
        planned = {subtask.id: subtask.whole for subtask in plan.subtasks}
        reports: list[SubtaskReport] = []
        artifacts = [*result.artifacts]
        for part in (*stored, result):
            for report in part.subtasks:
                description = planned.get(report.id, report.description)
                reports.append(report.model_copy(update={"description": description}))
                if report.finding:
                    artifacts += report.finding.artifacts
        return result.model_copy(update={"subtasks": reports, "artifacts": artifacts})


def _has_data_from_others(
    request: RunRequest,
    parent: RunGrant | None,
    earlier: Sequence[BegunRun],
) -> bool:
    """True if the run has untrusted data, by its request, the run above, or an earlier run."""
    if request.data_from_others:
        return True
    if parent is not None and parent.data_from_others:
        return True
    return any(begun.data_from_others for begun in earlier)


async def _check_output_schemas(team: Team, run_id: str) -> None:
    for role in team.roles:
        if role.output_schema is not None:
            name = f"team.roles.{role.name}.output_schema"
            await answer_schema.check_schema(role.output_schema, run_id, name)


def _called_models(supervisor: Sequence[str], card: TeamCard) -> list[str]:
    """Returns the models that a run calls, without duplicates."""
    models = [*supervisor]
    for role in card.roles:
        # A role that is a team calls no model itself.
        if role.team is None:
            models += role.models
    return list(dict.fromkeys(models))
