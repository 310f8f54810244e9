"""The names that users, dashboards and recorded histories rely on: a change of any of them is a new release's.

Each list is written out here and compared with the code, so that a rename can't go unnoticed.
"""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from temporalio import activity, workflow
from temporalio.client import Client

import starter
import supervision.contract
import worker_main
from activities.teams import toolbox
from activities.teams.team_files import TeamFiles
from activities.tools import tool
from runtime import search_attributes
from runtime.connection import connect
from runtime.server.embedded_server import ServerInfo
from runtime.settings import Settings
from runtime.workers import ALL_ROLES
from supervision.base import errors, queues
from workflows.supervisor import SupervisorWorkflow
from workflows.worker_agent import WorkerAgentWorkflow

WORKFLOWS = {
    "SupervisorWorkflow": {
        "queries": {"status", "plan", "trace", "result", "waiting"},
        "updates": {
            *("extend_limits", "resume", "decide_plan", "reply", "decide_tool_call"),
            *("pause", "steer", "retry_subtask", "skip_subtask"),
        },
        "signals": {"nested_report", "nested_terms", "decided", "instructions"},
    },
    "WorkerAgentWorkflow": {"queries": {"trace"}, "updates": set(), "signals": {"instructions"}},
}
ACTIVITIES = {
    *("prepare_run", "publish_result", "adopt_finding", "keep_words", "expand_plan", "tabulate", "pool_backlog"),
    *("end_earlier_child", "child_consumed", "notify"),
    *("plan", "call_model", "refine", "review", "judge", "synthesize"),
    *("run_tool",),
}
RUN_ERRORS = {
    *("InvalidRequest", "UnknownTeam", "NoSubtasks", "InvalidPlan", "NoCapableWorker", "PlanRejected"),
    *("AllSubtasksFailed", "QuorumNotMet", "DeadlineExceeded", "BudgetExhausted"),
    *("ProviderAuthentication", "ProviderRejected"),
}
SUBTASK_ERRORS = {
    *("TurnLimit", "Refused", "CannotDo", "Timeout", "ContextOverflow", "ModelUnavailable"),
    *("DependenciesFailed", "Cancelled", "Paused", "NeedsPerson"),
}
CALL_ERRORS = {
    *("RateLimited", "Overloaded", "ProviderError", "ProviderUnreachable", "StreamBroken", "IdleTimeout"),
    *("BadResponse", "ProviderBilling", "ModelNotServed", "CircuitOpen"),
    *("ArtifactUnavailable", "ArtifactMissing", "ArtifactTooLarge", "ArtifactChanged", "PayloadTooLarge"),
    *("TeamUnavailable", "ServerUnavailable", "NotGranted", "Unexpected"),
}
SEARCH_ATTRIBUTES = {
    *("SupervisorPhase", "SupervisorTeam", "SupervisorWaiting", "SupervisorUsd", "SupervisorOwner", "SupervisorStatus"),
}
TOOL_KINDS = {
    *("attachment", "calculator", "document_format", "document_read", "document_search", "sql_query", "sql_tables"),
    *("provider_web_fetch", "provider_web_search", "web_fetch"),
}
QUEUES = {"supervisor", "supervisor-model", "supervisor-tools", "supervisor-outward", "supervisor.far"}
SETTINGS = {
    *(
        "SUPERVISOR_ARTIFACTS_URL",
        "SUPERVISOR_KEYS_FILE",
        "SUPERVISOR_BUILD_ID",
        "SUPERVISOR_TEAMS_DIR",
        "SUPERVISOR_SECRETS_DIR",
        "SUPERVISOR_MODEL",
    ),
    "SUPERVISOR_MODEL_RPM",
    *("SUPERVISOR_MODEL_CALLS", "SUPERVISOR_MODEL_STRUCTURED", "SUPERVISOR_MODEL_WITHOUT"),
    *(
        "SUPERVISOR_MODEL_MAX_TOKENS",
        "SUPERVISOR_MODEL_IDLE_SECONDS",
        "SUPERVISOR_CALL_HEADER",
        "SUPERVISOR_MODEL_PLAIN_HTTP",
        "SUPERVISOR_MODEL_WINDOW",
    ),
    *("SUPERVISOR_MAX_BUDGET_USD", "SUPERVISOR_MAX_BUDGET_TOKENS", "SUPERVISOR_MAX_PARALLEL"),
    *("SUPERVISOR_ALLOWED_MODELS", "SUPERVISOR_INLINE_TEAMS", "SUPERVISOR_DAILY_USD"),
    *("SUPERVISOR_LOG_FORMAT", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
    *("SUPERVISOR_MCP_TOKEN", "SUPERVISOR_MCP_SERVERS", "SUPERVISOR_MCP_MEMORY_MIB", "SUPERVISOR_NOTIFY"),
    *("SUPERVISOR_SUPERVISOR_MODEL", "SUPERVISOR_WORKER_MODEL"),
    *("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY_FILE", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"),
}
GLOBAL_OPTIONS = {"--address", "--namespace", "--env-file", "--debug", "--version"}
COMMANDS = {
    "run": {
        *("GOAL", "--goal-file", "--request", "--team", "--strategy", "--success", "--max-subtasks", "--max-parallel"),
        *("--max-turns", "--max-reviews", "--max-depth", "--incremental-synthesis", "--deadline", "--budget-tokens"),
        *(
            "--budget-usd",
            "--data",
            "--answer-schema",
            "--supervisor-model",
            "--worker-model",
            "--attach",
            "--id",
            "--detach",
        ),
        *("--json", "--queue-anyway", "--effort", "--max-replans", "--subtask-timeout", "--plan"),
        *("--approve-plan", "--approval-timeout", "--on-approval-timeout"),
    },
    "follow": {"RUN_ID", "--json"},
    "status": {"RUN_ID", "--json"},
    "plan": {"RUN_ID", "--json"},
    "trace": {"RUN_ID", "--full", "--json"},
    "report": {"RUN_ID", "--output", "--prompts"},
    "verify": {"RUN_ID", "--json"},
    "result": {"RUN_ID", "--json", "--full", "--wait", "--output"},
    "artifacts": {"RUN_ID", "--save", "--json"},
    "artifact": {"REF", "--run", "--output"},
    "inspect": {"PATHS", "--json"},
    "list": {"--limit", "--state", "--team", "--owner", "--waiting", "--json"},
    "spend": {"--days", "--by", "--json"},
    "inbox": {"--owner", "--json"},
    "show": {"WORDS", "--json"},
    "approve": {"WORDS", "--by", "--json", "--plan"},
    "deny": {"WORDS", "--by", "--json", "--why"},
    "reply": {"WORDS", "--by", "--json", "--file"},
    "cancel": {"RUN_ID"},
    "extend": {"RUN_ID", "--deadline", "--budget-tokens", "--budget-usd", "--unlimited"},
    "pause": {"RUN_ID", "--by", "--json", "--now", "--why"},
    "resume": {"RUN_ID", "--by", "--json"},
    "steer": {"RUN_ID", "TEXT", "--by", "--json", "--to"},
    "retry": {"RUN_ID", "SUBTASK", "--by", "--json", "--instruction"},
    "skip": {"RUN_ID", "SUBTASK", "--by", "--json", "--why"},
    "repair": {"RUN_ID"},
    "teams": {"TEAM", "NAME", "--data", "--check", "--ask", "--json"},
    "tool": {"NAME", "ARGUMENTS", "--attach"},
    "put": {"PATH"},
    "prune": {"--older-than", "--yes", "--dry-run"},
    "delete": {"RUN_ID", "--yes"},
    "doctor": {"--quiet", "--json"},
    "mcp": {"--http", "--allow-host"},
    "codec": {"--port", "--ui"},
    "serve": set(),  # and those of `python -m runtime.server`
    "worker": set(),  # and those of `worker_main.py`
    "standin": set(),  # and those of `python -m standin`
}
CONTRACT = {
    *("RunRequest", "Budget", "Models", "Attachment"),
    *("RunResult", "SubtaskReport", "Finding", "Gap", "Contradiction", "Citation", "ArtifactRef", "Problem"),
    *("Usage", "Timing", "Plan", "Subtask", "NewRole"),
    *("Status", "Flags", "Counts", "NestedRun", "Wait", "RunLimits", "TraceEvent", "TracePage"),
    *("ExtendLimits", "NewBudget", "Resume", "UpdateReply", "Team", "Role", "ToolEntry"),
}
TOOL_MODULE = {"NoOptions", "Arguments", "NewArtifact", "Tool", "ToolContext", "ToolMisuse", "ToolOutput", "ToolSource"}


@pytest.mark.parametrize("type_", [SupervisorWorkflow, WorkerAgentWorkflow])
def test_workflow_types_queries_updates_and_signals(type_: type) -> None:
    defined = workflow._Definition.must_from_class(type_)
    expected = WORKFLOWS[str(defined.name)]
    assert set(defined.queries) - {None} == expected["queries"]
    assert set(defined.updates) - {None} == expected["updates"]
    assert all(update.description for update in defined.updates.values())  # the Web UI's form shows it
    assert set(defined.signals) - {None} == expected["signals"]


async def test_activity_types(settings: Settings, server: ServerInfo) -> None:
    # A client of its own: one client refuses a second Worker for the same queue.
    alone = await connect(address=server.address)
    assert {name for name in registered(alone, settings) if name} == ACTIVITIES


def registered(client: Client, settings: Settings) -> Iterator[str | None]:
    """The names under which a Worker process with all roles registers activities."""
    endpoint = worker_main.model_endpoint(settings)
    for worker in worker_main.compose(client, settings, endpoint, TeamFiles([]), ALL_ROLES, [], "space-1"):
        for function in worker.config()["activities"]:
            yield activity._Definition.must_from_callable(function).name


def test_error_types() -> None:
    assert {str(kind) for kind in errors.RUN_KINDS} == RUN_ERRORS
    assert {str(kind) for kind in errors.ErrorKind} == RUN_ERRORS | SUBTASK_ERRORS | CALL_ERRORS
    assert {str(errors.run_kind(kind)) for kind in (*errors.ACCOUNT, *errors.FATAL)} <= RUN_ERRORS


def test_search_attributes_and_queues() -> None:
    assert set(search_attributes.WANTED) == SEARCH_ATTRIBUTES
    named = {queues.WORKFLOW_QUEUE, queues.MODEL_QUEUE, queues.TOOLS_QUEUE, queues.OUTWARD_QUEUE}
    assert named | {queues.pool_queue("far")} == QUEUES


def test_settings() -> None:
    def variable(name: str) -> str:
        alias: Any = Settings.model_fields[name].validation_alias
        return alias.choices[0] if alias else f"SUPERVISOR_{name}".upper()

    assert {variable(name) for name in Settings.model_fields} == SETTINGS


def test_commands_and_their_options() -> None:
    group = typer.main.get_group(starter.app)
    assert options(group) == GLOBAL_OPTIONS
    assert {name: options(command) for name, command in group.commands.items()} == COMMANDS


def options(command: Any) -> set[str]:
    """Long options, and arguments in capitals."""
    return {
        parameter.name.upper() if parameter.param_type_name == "argument" else parameter.opts[0]
        for parameter in command.params
    }


def test_kinds_of_tools_in_team_files() -> None:
    assert set(toolbox.KINDS) == TOOL_KINDS


def test_python_names() -> None:
    assert set(supervision.contract.__all__) == CONTRACT
    assert all(inspect.isclass(getattr(supervision.contract, name)) for name in CONTRACT)
    own = {name for name, value in vars(tool).items() if getattr(value, "__module__", "") == tool.__name__}
    assert {name for name in own if inspect.isclass(getattr(tool, name))} == TOOL_MODULE
    assert list(inspect.signature(connect).parameters) == ["address", "namespace", "wait", "report", "keys"]
    assert list(inspect.signature(worker_main.serving).parameters) == [
        *("client", "settings", "roles", "pool", "attributes", "strict_sandbox", "words")
    ]
