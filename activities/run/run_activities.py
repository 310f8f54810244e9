"""The activities of a supervisor beside its questions: the beginning of a run, its end, and look-ups between."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial

from temporalio import activity
from temporalio.api.enums.v1 import DescribeTaskQueueMode, TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.service import RPCError

from activities import steps
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
from activities.contracts.turn_contracts import PoolQuestion
from activities.files.file_cache import FileEntry
from activities.files.manifest import MANIFEST_TYPE, FilesRefused, Manifest, adopt_files, is_text, read_manifest
from activities.files.values import DATA_TOML, is_data
from activities.heartbeat import waiting
from activities.model.asked_endpoint import AskedEndpoint
from activities.model.conversation import ConversationStore
from activities.model.journalled_call import usage_of
from activities.model.port import ModelEndpoint, ModelUsage
from activities.model.prompt_fit import brief_tokens
from activities.prompts.agent_prompts import already_done, finding_block, tag
from activities.replies import answer_schema
from activities.reuse.beginnings import begun_before, begun_run, seen_of, with_given
from activities.reuse.begun_runs import keep_begun
from activities.reuse.earlier_runs import EarlierRuns
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
from temporal_supervisor.supervision.contract.request import Budget, RunRequest, invalid_request
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import TraceEvent
from temporal_supervisor.supervision.contract.team import GENERAL, Team
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.grounding.citations import with_valid_marks
from temporal_supervisor.supervision.planning.estimate import sample_of
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts
from temporal_supervisor.supervision.results.answer import Answer, answer_record, with_gaps
from temporal_supervisor.supervision.results.shown_links import without_own_links

# A deadline stands still while people are awaited, and a reset sets it again.
GRANT_LIFETIME = timedelta(days=90)


@dataclass(frozen=True)
class DefaultModels:
    """The models of supervisors and of worker agents where nothing names others.

    `chosen` if the operator named them. Where nobody did, the only model of an endpoint takes their
    place.
    """

    supervisor: list[str]
    workers: list[str]
    chosen: bool = True

    def at(self, endpoint: EndpointFacts) -> "DefaultModels":
        """Returns the models to use at an endpoint."""
        only = endpoint.only_name
        return self if self.chosen or only is None else DefaultModels([only], [only])


@dataclass(frozen=True)
class RunActivities:
    """Activities of runs, with the store, the teams, the facts and the default models of this process.

    `usual_team` is for requests that name no team. Without `earlier` no run builds on another one.
    """

    store: ArtifactStore
    teams: StoredTeams
    endpoint: ModelEndpoint
    facts: ProcessFacts
    defaults: DefaultModels
    asked: AskedEndpoint = field(default_factory=AskedEndpoint)
    usual_team: str = GENERAL
    earlier: EarlierRuns | None = None

    @activity.defn
    async def prepare_run(self, setup: SetupInput) -> RunSetup:
        """Fixes everything outside the request that the run depends on. Returns references to it.

        Raises SupervisionError `UnknownTeam` or `InvalidRequest` if one of them is bad, for a
        dollar budget with a model of unknown price, and for what is above the operator's ceilings.
        """
        request, facts, run = setup.request, self.facts, setup.run
        # Only a root may begin with an empty store. What a nested run began with was required by
        # the guard.
        was_reset = bool(setup.own_first_run_id) and setup.own_first_run_id != activity.info().workflow_run_id
        store_id = run.store_id or await self.store.begin(again=was_reset)
        parent = await find_grant(self.store, run.run_id, run.grant_ref) if setup.brief else None
        if setup.brief is not None and parent is None:
            raise SupervisionError(ErrorKind.NOT_GRANTED, "a nested run needs its parent's grant")
        known = parent.endpoint if parent else await self._known_endpoint()
        defaults = self.defaults.at(known)
        workers = request.models.workers or defaults.workers
        supervisor = request.models.supervisor or defaults.supervisor
        schema = request.answer_schema
        if schema is not None:
            await answer_schema.check_schema(schema, run.run_id)
        # A nested supervisor's numbers are its root's: lowered there, and granted.
        lowered = [] if setup.brief else facts.ceilings.check(request)
        earlier = await begun_before(self.earlier, setup)
        attachments, files_ref = await self._attached(run, request)
        own = (attachments, files_ref)
        attachments, files_ref = await with_given(self.store, run.run_id, earlier, own)
        run = run.model_copy(update={"files_ref": run.files_ref or files_ref})
        from_others = request.data_from_others or (parent is not None and parent.data_from_others)
        from_others = from_others or any(begun.data_from_others for begun in earlier)
        team = self.usual_team if request.team is None else request.team
        files = self.teams.files_of(run)
        team_ref, loaded = await self.teams.save(
            run.run_id,
            team,
            workers,
            files,
            self.endpoint.runs_tools,
            data_from_others=from_others,
            models_of_roles={} if setup.brief else request.models.roles,
            supervisor_models=supervisor,
        )
        for role in loaded.team.roles:
            if role.output_schema is not None:
                name = f"team.roles.{role.name}.output_schema"
                await answer_schema.check_schema(role.output_schema, run.run_id, name)
        card = team_card(loaded, workers)
        if isinstance(team, Team):
            facts.ceilings.check_inline_team(frozenset(loaded.sources.values()))
        # A role that is a team calls no model itself.
        of_roles = [model for role in card.roles if role.team is None for model in role.models]
        models = list(dict.fromkeys([*supervisor, *of_roles]))
        facts.ceilings.check_models(models)
        known = self._settled(known, models, parent)
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
        # What the run above warns of is no limitation of a team below it.
        known_above = parent.models if parent else []
        new_models = [model for model in models if model not in known_above]
        free = ModelUsage()
        unpriced = [each for each in new_models if self.endpoint.price(each, free) is None]
        warnings = [*_endpoint_warnings(known, new_models), *_budget_warnings(request, unpriced)]
        if parent is None:
            warnings = [*facts.warnings, *warnings]
        # Those of the run above are its own warning.
        unread = files.unread() if files and files_ref else ""
        put = partial(self.store.put_output, run.run_id)
        goal_ref = await put(await self._goal(setup, self._room(known, supervisor[0])))
        if setup.brief is None:
            begun = begun_run(run, request, goal_ref, team_ref, attachments)
            words = {"extracts": facts.extracts, "data_from_others": from_others}
            await keep_begun(self.store, begun.model_copy(update=words))
        seen = await seen_of(self.store, self.earlier, request, earlier, run.run_id)
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
            prompt_tokens=min(self._room(known, model) for model in supervisor),
            endpoint=known,
            answer_schema_ref=None if schema is None else await put(json.dumps(schema)),
            attachments=[*(setup.brief.attachments if setup.brief else []), *attachments],
            files_ref=run.files_ref,
            warnings=[
                *warnings,
                *lowered,
                *([unread] if unread else []),
            ],
            data_labels=loaded.toolbox.labels_of_data(),
            was_reset=was_reset,
            earlier_ref=seen[0],
            earlier_labels=seen[1],
        )

    async def _known_endpoint(self) -> EndpointFacts:
        """Returns the facts about the endpoint, waiting for its answers.

        This process has only just begun to ask.
        """
        async with waiting():
            return await self.asked.facts()

    def _settled(self, known: EndpointFacts, models: list[str], parent: RunGrant | None) -> EndpointFacts:
        """Returns the run's facts about its endpoint: how each of its models is called from now on.

        A nested run calls those of the run above in the way in which that one does.
        """
        kept = parent.endpoint.models if parent else {}
        settled = {model: kept.get(model) or self.endpoint.settled(model, known) for model in models}
        return known.model_copy(update={"models": settled})

    def _reviews_itself(self, known: EndpointFacts, supervisor: str, models: list[str]) -> bool:
        """True if a reviewer would be the small model that makes all findings: what it says of them is noise."""
        return set(models) == {supervisor} and self.endpoint.window(supervisor, known.traits(supervisor)).is_small

    def _left_out(self, known: EndpointFacts, supervisor: list[str]) -> dict[str, list[OptionalStep]]:
        """Returns the steps that are left out by model: those of the settings, and of small models those that fail.

        Their rewritten descriptions and changed plans brought no finding that the first ones had
        not. A model that the settings name has what they say of it.
        """
        off = dict(self.facts.model_off)
        for model in supervisor:
            is_named = any(fnmatchcase(model, name) for name in off)
            if not is_named and self.endpoint.window(model, known.traits(model)).is_small:
                off[model] = ["refine", "replan"]
        return off

    def _room(self, known: EndpointFacts, model: str) -> int:
        """Returns the tokens that one prompt of a model has for findings."""
        return self.endpoint.window(model, known.traits(model)).prompt_tokens

    async def _goal(self, setup: SetupInput, room: int) -> str:
        """Returns the goal.

        A nested supervisor's is its subtask with the findings that it builds on.
        """
        brief = setup.brief
        if brief is None:
            return setup.request.goal
        subtask = (await read_plan(self.store, brief.plan_ref)).subtask(brief.subtask_id)
        description = subtask.description
        if brief.description_ref:
            description = await read_text(self.store, brief.description_ref)
        findings = await read_findings(self.store, brief.dependencies, brief_tokens(room))
        parts = [description, *([tag(ITEM, subtask.item)] if subtask.item else [])]
        if findings:
            parts += ["Build on these findings:", *map(finding_block, findings)]
        if brief.effects:
            parts.append(already_done(brief.effects))
        if brief.feedback:
            parts.append(f"An earlier answer to this fell short. Fix exactly this: {brief.feedback}")
        return "\n\n".join(parts)

    async def _attached(self, run: RunRef, request: RunRequest) -> tuple[list[ArtifactRef], str]:
        """Returns the attached texts, and the manifest of what is data.

        A table that is a text is both. Everything is copied into the run, so that uploads may be
        pruned.
        """
        texts, manifests = list[ArtifactRef](), list[Manifest]()
        for attachment in request.attachments:
            name = attachment.name
            try:
                if attachment.media_type == MANIFEST_TYPE:
                    manifests.append(await read_manifest(self.store, attachment.ref or ""))
                    continue
                if attachment.text is not None:
                    ref = await self.store.put_output(run.run_id, attachment.text)
                else:
                    ref = await self.store.adopt(run.run_id, attachment.ref or "")
                data = await self.store.get(ref)
            except (ArtifactMissing, ValueError):
                words = f"attachment '{name}': the Worker's store, {self.store.url}, has nothing at '{attachment.ref}'"
                words += ": let SUPERVISOR_ARTIFACTS_URL name one store in all processes, or `put` it again"
                raise invalid_request(words) from None
            if is_data(name) or name == DATA_TOML:
                file = FileEntry(name=name, bytes=len(data), sha256=hashlib.sha256(data).hexdigest(), parts=[ref])
                manifests.append(Manifest(files=[file]))
            if is_text(data):
                texts.append(ArtifactRef(name=name, ref=ref, bytes=len(data)))
            elif not is_data(name):
                words = f"attachment '{name}' is no text, and files of this kind are not read"
                raise invalid_request(f"{words}: attach it as text or PDF")
        try:
            return texts, await adopt_files(self.store, run.run_id, manifests) if manifests else ""
        except ArtifactMissing as missing:
            raise invalid_request(f"a file of the attachments is no longer stored: {missing}") from None
        except FilesRefused as refused:
            raise invalid_request(f"the attachments hold {refused}") from None

    @activity.defn
    async def child_consumed(self, child: ChildRef) -> Consumed:
        """Returns the usage of a child, with its own children, in all of its executions."""
        run = child.run
        own = calls_of(run.run_id, run.first_run_id, child.workflow_id)
        consumed, conversations = Consumed(), ConversationStore(self.store)
        for key in await self.store.list_keys(calls_prefix(run.run_id, run.first_run_id)):
            if key.startswith(own):
                entry = await conversations.entry(key)
                reply = entry.reply
                consumed.usage += usage_of(self.endpoint, reply.model, reply.usage) + entry.spent
                consumed.usage += Usage(tool_calls=min(len(reply.tool_uses()), limits.TOOL_CALLS_PER_TURN))
                consumed.turns += 1
        return consumed

    @staticmethod
    @activity.defn
    async def pool_backlog(question: PoolQuestion) -> float:
        """Returns the seconds that the oldest activity in a queue has waited.

        0 if none waits or the server fails. The server caches its answer for a while
        (`matching.TaskQueueInfoByBuildIdTTL`, 5 s): it may be that old.
        """
        client = activity.client()
        request = DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=question.queue),
            api_mode=DescribeTaskQueueMode.DESCRIBE_TASK_QUEUE_MODE_ENHANCED,
            task_queue_types=[TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY],
            report_stats=True,
        )
        try:
            described = await client.workflow_service.describe_task_queue(request)
        except RPCError:
            return 0.0
        kinds = [kind for version in described.versions_info.values() for kind in version.types_info.values()]
        return max((kind.stats.approximate_backlog_age.ToTimedelta().total_seconds() for kind in kinds), default=0.0)

    @activity.defn
    async def publish_result(self, publication: PublishInput, trace: list[TraceEvent]) -> Published:
        """Stores the result with its whole texts, and the trace, or a page of it.

        Returns where they are.
        """
        run, result, info = publication.run, publication.result, activity.info()
        put = partial(self.store.put_output, run.run_id)
        if publication.is_page:
            return Published(result_ref=await put(result.model_dump_json()))
        answer_ref = result.answer_ref
        plan = await read_plan(self.store, publication.plan_ref) if publication.plan_ref else Plan()
        if answer_ref:
            answer = await read_text(self.store, answer_ref)
            result = result.model_copy(update={"answer": with_gaps(answer, result.gaps)})
        elif result.answer:  # findings as they came: no model call has stored them
            answer_ref = await put(result.answer)
            result = result.model_copy(update={"answer_ref": answer_ref})
        if publication.answer_json_ref:
            value = json.loads(await self.store.get(publication.answer_json_ref))
            result = result.model_copy(update={"answer_json": value})
        result = await self._whole(result, publication.pages, plan)
        refs = Published(
            result_ref=await put(result.model_dump_json(indent=1)),
            trace_ref=await put("[" + ",\n".join(event.model_dump_json() for event in trace) + "]\n"),
            answer_ref=answer_ref,
        )
        # What the supervisor above reads as a finding.
        if str(info.workflow_id).startswith(f"{run.run_id}/") and answer_ref:
            whole = await read_text(self.store, answer_ref)
            refs.answer_ref = await put(with_valid_marks(whole, {subtask.id for subtask in plan.subtasks}, set()))
            refs.record_ref = await put(answer_record(result).model_dump_json())
        ended_at, facts = datetime.now(UTC), publication.facts
        # Found by the run's id alone, long after Temporal has forgotten the run.
        if info.workflow_id == run.run_id:
            left = refs.model_copy(update={"facts": facts, "first_run_id": run.first_run_id})
            ended = left.model_dump_json().encode("utf-8", "replace")
            await self.store.create(named_key("ended", run.run_id, info.workflow_run_id or ""), ended)
            if facts:
                whose = facts.model_dump(include={"owner", "team"})
                spent = RunSpend(run_id=run.run_id, ended_at=ended_at, usage=result.usage, **whose)
                await keep_run_spend(self.store, spent)
        if publication.team is not None:
            sample = sample_of(result, plan, publication.planned, publication.estimate)
            try:
                await keep_sample(self.store, publication.team, run.run_id, info.scheduled_time, sample)
            except ArtifactError as error:  # it is for estimates of later plans: a run is complete without it
                activity.logger.warning("what the run took is not kept for estimates: %s", error)
        steps.run_ended(run, facts, result, info.workflow_id or "", ended_at)
        return refs

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
        """Stores texts of people, and returns each as a finding."""
        return [await self._kept(said.run.run_id, words) for words in said.words]

    async def _kept(self, run_id: str, words: PersonWords) -> Finding:
        put = partial(self.store.put_output, run_id)
        record = FindingRecord(summary=words.text, sources=[words.source])
        return Finding(
            **record.model_dump(exclude={"checked", "evidence"}),
            text_ref=await put(words.text),
            text_bytes=size(words.text),
            record_ref=await put(record.model_dump_json()),
        )

    async def _whole(self, result: RunResult, pages: list[str], plan: Plan) -> RunResult:
        """Returns the result with all subtasks, their descriptions as planned, and the artifacts of their findings."""
        stored = [RunResult.model_validate_json(await self.store.get(page)) for page in pages]
        reports = [report for part in (*stored, result) for report in part.subtasks]
        planned = {subtask.id: subtask.whole for subtask in plan.subtasks}
        reports = [r.model_copy(update={"description": planned.get(r.id, r.description)}) for r in reports]
        artifacts = [artifact for report in reports if report.finding for artifact in report.finding.artifacts]
        return result.model_copy(update={"subtasks": reports, "artifacts": [*result.artifacts, *artifacts]})


def _endpoint_warnings(known: EndpointFacts, models: list[str]) -> list[str]:
    """Returns the problems of the endpoint, and facts about it that are not known."""
    patience = limits.ENDPOINT_PATIENCE.total_seconds()
    if not models:
        return []
    if known.address and not known.asked:
        windows = ", ".join(f"{known.traits(model).window:,} tokens of {model}" for model in models)
        return [f"the model endpoint {known.address} did not answer within {patience:.0f} s: assumed {windows}"]
    unlisted = [model for model in models if model not in known.names]
    if not (known.names and unlisted):
        return []
    words = f"the model endpoint {known.address} does not list {', '.join(unlisted)}; it has {known.shown_names()}"
    return [f"{words}: name one with SUPERVISOR_SUPERVISOR_MODEL and SUPERVISOR_WORKER_MODEL"]


def _budget_warnings(request: RunRequest, unpriced: list[str]) -> list[str]:
    """Returns the warning about a default dollar budget that cannot be counted.

    Refuses an explicit one.
    """
    if request.budget.usd is None or not unpriced:
        return []
    names = ", ".join(unpriced)
    if request.budget.usd != Budget().usd:
        helps = "use models with a known price, or set budget.tokens and leave usd out"
        raise invalid_request(f"budget.usd: the price of {names} is unknown, so dollars can't be counted: {helps}")
    return [f"the dollar budget is not kept: the price of {names} is unknown"]
