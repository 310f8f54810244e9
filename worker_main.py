"""The Worker process, which only composes: settings -> client -> activities -> Workers."""

import argparse
import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

try:
    from temporalio.client import Client
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"{missing}: run `make setup` once, then .venv/bin/temporal-supervisor-worker"
    ) from None

from activities.agent.agent_turn import AgentTurnActivities
from activities.agent.tool_calls import ToolActivities
from activities.attempt_interceptor import AttemptInterceptor
from activities.contracts.run_contracts import ProcessFacts
from activities.evals.eval_activities import EvalActivities
from activities.files.file_cache import FileCache
from activities.model.anthropic_model import AnthropicModel
from activities.model.endpoint_probe import ENDPOINTS_FILE, EndpointMemory, EndpointProbe
from activities.model.journalled_call import ModelCalls
from activities.model.port import ModelEndpoint
from activities.questions.items import Expansions
from activities.questions.judgement import JUDGE, REFINE, REVIEW
from activities.questions.opinions import OPINION
from activities.questions.other_runs import OtherRuns
from activities.questions.planning import PLAN
from activities.questions.question import Desk
from activities.questions.synthesis import SYNTHESIS
from activities.reuse.earlier_runs import EarlierRuns
from activities.reuse.saved_findings import SavedFindings
from activities.run.notices import NoticeActivities
from activities.run.orphans import Orphans
from activities.run.run_activities import DefaultModels, RunActivities
from activities.store.artifacts import ArtifactStore, ArtifactUnavailable
from activities.store.store_reports import StoreWaits
from activities.store.store_urls import open_store
from activities.teams.stored_teams import StoredTeams
from activities.teams.team_files import TeamFiles, roles_of_teams
from activities.tools.secrets import Secrets
from temporal_supervisor.runtime import logs, process, search_attributes, telemetry
from temporal_supervisor.runtime.connection import ConnectionFailed, connect, namespace_id
from temporal_supervisor.runtime.local_models import find_local_model, take_local_model
from temporal_supervisor.runtime.setting_checks import start_warnings
from temporal_supervisor.runtime.settings import Settings, load_settings
from temporal_supervisor.runtime.watchdog import Watchdog, stop_by_signal
from temporal_supervisor.runtime.workers import ALL_ROLES, POOL_ROLES, WorkerRole, workers
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.queues import (
    MODEL_QUEUE,
    OUTWARD_QUEUE,
    TOOLS_QUEUE,
    WORKFLOW_QUEUE,
)
from temporal_supervisor.supervision.contract.team import is_name
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts
from workflows.eval_workflow import EvalWorkflow
from workflows.supervisor import SupervisorWorkflow
from workflows.worker_agent import WorkerAgentWorkflow

# The file of the cache folder that health checks read: a Worker that serves keeps touching it.
SERVING = "serving"
_BEAT_SECONDS = 5.0
STANDIN_NOTICE = "answers come from the stand-in model: it extracts, it does not reason"
_NO_MODEL = (
    "no model to call: set ANTHROPIC_API_KEY (or ANTHROPIC_BASE_URL for a compatible endpoint) "
    "in this process's environment, or start it with --roles workflows,tools,outward "
    "to serve no model calls. Without a key: {} brings the stand-in model along, "
    "which looks up values and sentences and does not reason"
)


@contextlib.asynccontextmanager
async def serving(
    client: Client,
    settings: Settings,
    roles: Sequence[WorkerRole] = ALL_ROLES,
    *,
    pool: str | None = None,
    attributes: Sequence[str] | None = None,
    strict_sandbox: bool = True,
    report: Callable[[str], None] | None = None,
) -> AsyncIterator[list[str]]:
    """Runs the Workers of one process during a `with` block; yields usable search attributes.

    Missing attributes are added first, unless `attributes` lists the ones to use. `strict_sandbox`
    is for tests. With a `report`, the model endpoint is asked for its abilities, and `report` is
    called with lines on them.
    """
    usable = await search_attributes.ensure(client) if attributes is None else list(attributes)
    store = open_store(settings.artifacts_url, await namespace_id(client), settings.keys)
    teams = StoredTeams(store, _team_files(settings, roles))
    endpoint = model_endpoint(settings)
    probe = EndpointProbe(
        endpoint if settings.asks_endpoint else None,
        settings.chosen_models,
        EndpointMemory(process.cache_dir() / ENDPOINTS_FILE),
    )
    calls = ModelCalls(
        endpoint,
        store,
        settings.model_calls,
        call_header=settings.call_header == "on",
        daily_usd=settings.daily_usd,
    )
    facts = _process_facts(settings, roles, usable)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(endpoint.close)  # first in, last out: calls in flight may finish
        show_content = settings.capture_content
        attempts = AttemptInterceptor(store, telemetry.parent_of, content=show_content)
        for worker in workers(
            client,
            roles,
            workflows=[SupervisorWorkflow, WorkerAgentWorkflow, EvalWorkflow],
            run_activities=_run_activities(settings, client, store, teams, endpoint, facts, probe),
            model_activities=_model_activities(client, calls, teams) if "model" in roles else [],
            tool_activities=[ToolActivities(store, teams, endpoint).run_tool],
            interceptors=[attempts],
            model_rate=model_rate(settings),
            model_slots=settings.model_calls,
            pool=pool,
            strict_sandbox=strict_sandbox,
            build_id=settings.build_id,
            store_id=await _known_id(store, report),
            teams=settings.teams_mark,
        ):
            await stack.enter_async_context(worker)
        if report:
            probe.start(partial(_use_facts, settings, calls, report))
            stack.push_async_callback(probe.stop)
        yield usable


def _team_files(settings: Settings, roles: Sequence[WorkerRole]) -> TeamFiles:
    return TeamFiles(
        settings.teams_folders,
        FileCache(process.cache_dir()),
        Secrets(settings.secrets_dir),
        settings.mcp_memory_mib,
        data=set(roles) != {"outward"},  # a process that goes out need not hold the files of teams
    )


def _process_facts(
    settings: Settings,
    roles: Sequence[WorkerRole],
    usable: list[str],
) -> ProcessFacts:
    """Returns the facts that runs take from the process in which they begin."""
    is_standin = settings.model == "standin"
    makes_all_calls = set(roles) == set(ALL_ROLES) and not settings.model_rpm
    model_queue = WORKFLOW_QUEUE if makes_all_calls else MODEL_QUEUE
    tools_queue = WORKFLOW_QUEUE if "tools" in roles else TOOLS_QUEUE
    outward_queue = WORKFLOW_QUEUE if "outward" in roles else OUTWARD_QUEUE
    notice = STANDIN_NOTICE if is_standin else None

    return ProcessFacts(
        model_queue=model_queue,
        tools_queue=tools_queue,
        outward_queue=outward_queue,
        search_attributes=usable,
        warnings=search_attributes.warnings(usable),
        model_notice=notice,
        extracts=is_standin,
        model_off=settings.model_off,
        notices=bool(settings.notice_words),
        ceilings=settings.ceilings,
    )


def _run_activities(
    settings: Settings,
    client: Client,
    store: ArtifactStore,
    teams: StoredTeams,
    endpoint: ModelEndpoint,
    facts: ProcessFacts,
    probe: EndpointProbe,
) -> list[Callable[..., Any]]:
    """Returns the activities around a run's model and tool calls."""
    has_chosen = bool(settings.chosen_models)
    defaults = DefaultModels(settings.supervisor_model, settings.worker_model, has_chosen)
    earlier = EarlierRuns(store, client)
    run = RunActivities(store, teams, endpoint, facts, defaults, probe, settings.team, earlier)
    saved = SavedFindings(store, earlier)
    items = Expansions(store, teams)
    evals = EvalActivities(store, facts, probe.facts)
    return [
        run.prepare_run,
        items.expand_plan,
        items.tabulate,
        saved.find_saved,
        saved.given_findings,
        run.adopt_finding,
        run.keep_words,
        run.publish_result,
        NoticeActivities(settings.notice_words).notify,
        run.child_consumed,
        run.pool_backlog,
        StoreWaits().await_store,
        Orphans().end_orphans,
        evals.begin_eval,
        evals.eval_cases,
        evals.judge_case,
        evals.tabulate_eval,
    ]


def _model_activities(
    client: Client,
    calls: ModelCalls,
    teams: StoredTeams,
) -> list[Callable[..., Any]]:
    """Returns the activities that call a model: the supervisor's questions, and turns."""
    desk = Desk(calls, teams, OtherRuns(client))
    asked = (PLAN, REFINE, REVIEW, JUDGE, SYNTHESIS, OPINION)
    questions = [question.activity(desk) for question in asked]
    return [*questions, AgentTurnActivities(calls, teams).call_model]


def _use_facts(
    settings: Settings,
    calls: ModelCalls,
    report: Callable[[str], None],
    found: EndpointFacts,
) -> None:
    """Limits model calls to the endpoint's slots, unless they are set, and reports the facts."""
    if found.slots and "model_calls" not in settings.model_fields_set:
        calls.limit_calls(found.slots)
    for line in found.lines():
        report(line)


async def _known_id(store: ArtifactStore, report: Callable[[str], None] | None) -> str | None:
    """Returns the id of the store.

    None if it has no id yet or cannot be reached, which is reported.
    """
    try:
        return await store.identity()
    except ArtifactUnavailable as error:
        if report:
            report(f"warning: {error}")
        return None


def model_rate(settings: Settings) -> float | None:
    """Returns the calls per second for each queue of model calls.

    The limit is divided equally among the pools of team files; None means no limit.
    """
    if settings.model_rpm is None:
        return None
    roles = roles_of_teams(settings.teams_folders).values()
    pools = {role.pool for role in roles if role.pool and role.pool_model}
    queues = 1 + len(pools)
    return settings.model_rpm / 60 / queues


def model_endpoint(settings: Settings) -> ModelEndpoint:
    """Returns the process's model endpoint, which connects at its first call."""
    return AnthropicModel(**settings.endpoint_options())


async def serve(
    settings: Settings,
    roles: Sequence[WorkerRole],
    pool: str | None,
    watchdog: Watchdog,
    say: Callable[[str], None],
) -> None:
    """Runs until SIGTERM or Ctrl-C, then lets calls in flight finish.

    A second signal ends the process at once.
    """
    loop = asyncio.get_running_loop()
    watchdog.watch(loop)
    client = await connect(wait=limits.WORKER_CONNECT_WAIT, report=say, keys=settings.keys)
    stop = asyncio.Event()
    stop_by_signal(loop, stop)
    async with serving(
        client,
        settings,
        roles,
        pool=pool,
        strict_sandbox=False,
        report=say,
    ) as attributes:
        if "SupervisorWaiting" in attributes:
            telemetry.count_waits(client)
        unusable = search_attributes.warnings(attributes)
        for warning in [*start_warnings(settings, os.environ), *unusable]:
            say(f"warning: {warning}")
        if settings.model == "standin":
            say(STANDIN_NOTICE)

        served = f"pool {pool}: {', '.join(roles)}" if pool else ", ".join(roles)
        server = f"{client.service_client.config.target_host}, namespace {client.namespace}"
        say(f"worker ready ({served}) on {server}, pid {os.getpid()}")
        while not stop.is_set():
            with contextlib.suppress(OSError):
                (process.cache_dir() / SERVING).touch()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _BEAT_SECONDS)


def parse_roles(text: str) -> list[WorkerRole]:
    """Returns the named roles in the project's order.

    Raises ArgumentTypeError for unknown roles.
    """
    named = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [part for part in named if part not in ALL_ROLES]
    if unknown or not named:
        raise argparse.ArgumentTypeError(f"must be some of {','.join(ALL_ROLES)}, not '{text}'")
    return [role for role in ALL_ROLES if role in named]


def _parsed_options() -> argparse.Namespace:
    """Returns the options of the command line, with the roles to serve."""
    parser = argparse.ArgumentParser(
        prog=f"{process.PROGRAM} worker",
        description="Serve supervisor runs: workflows, model calls and tools.",
    )
    parser.add_argument(
        "--roles",
        type=parse_roles,
        help=f"default: {','.join(ALL_ROLES)}; of a pool: model,tools",
    )
    parser.add_argument(
        "--pool",
        help="make the model and tool calls of this pool's roles, no others",
    )
    models = parser.add_mutually_exclusive_group()
    models.add_argument(
        "--local",
        action="store_true",
        help="use the model server that runs on this machine",
    )
    models.add_argument(
        "--standin",
        action="store_true",
        help="without a key: bring the stand-in model along",
    )
    parser.add_argument(
        "--env-file",
        type=Path,
        help="settings, instead of .env beside this program",
    )
    parser.add_argument(
        "--debug",
        action="store_true",
        help="log tracebacks of failed calls, and the SDK's warnings",
    )
    parser.add_argument(
        "--log-format",
        choices=["text", "json"],
        help="instead of SUPERVISOR_LOG_FORMAT",
    )
    options = parser.parse_args()
    if options.roles is None:
        options.roles = list(ALL_ROLES if options.pool is None else POOL_ROLES)

    if options.pool is not None:
        fits = options.roles in (["tools"], list(POOL_ROLES))
        if not fits or not is_name(options.pool):
            form = "--pool takes letters, digits, _ and - only"
            parser.error(f"{form}, and goes with --roles model,tools or --roles tools")
    return options


def main() -> None:
    """The command `temporal-supervisor-worker`.

    Exit codes: 0 stopped, 1 failed, 2 can't serve as configured, 70 ended by its watchdog.
    """
    options = _parsed_options()
    process.keep_private()
    process.keep_files_private()
    try:
        if options.local:
            process.write_stderr(take_local_model().description)
        if options.standin:
            # Loads the stand-in: for this option only.
            from temporal_supervisor.standin.__main__ import start_in_thread

            os.environ.update(start_in_thread())
        settings = load_settings(options.env_file)
        process.cache_dir()  # or it would fail once the Worker is connected
        log_format = options.log_format or settings.log_format
        report = logs.configure(log_format, telemetry.core_metrics(), options.debug)
        send_rest = telemetry.configure("temporal-supervisor-worker", measured=True)
    except (ValueError, OSError) as error:
        process.write_stderr(str(error))
        process.exit_now(2)

    if "model" in options.roles and not settings.has_model:
        command = process.shell_command(process.PROGRAM, ["worker", "--standin"])
        process.write_stderr(_NO_MODEL.format(command))
        found = find_local_model()
        if found:
            process.write_stderr(found.worker_hint)
        process.exit_now(2)

    try:
        process.search_later_objects_only()
        with Watchdog() as watchdog:
            process.run(serve(settings, options.roles, options.pool, watchdog, report))
            send_rest()
    except (ConnectionFailed, ValueError) as error:
        logs.write_last_line(str(error))
        process.exit_now(2)
    except KeyboardInterrupt:  # while it waits for the server; later the signal is handled
        process.exit_now(0)
    process.exit_now(0)


if __name__ == "__main__":
    main()
