"""Requests that build on earlier runs: further questions, repeated plans, single changes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from temporalio.client import Client

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.console.base.command import BAD_INPUT, FAILED, CommandFailed, hint
from temporal_supervisor.console.run.found_runs import find_run, recorded_request
from temporal_supervisor.runs import Run
from temporal_supervisor.starting import RUN_TYPE
from temporal_supervisor.supervision.base.text import did_you_mean, quoted
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.request import RunRequest, parse_request
from temporal_supervisor.supervision.reuse.earlier import plan_again, plan_of_failed
from temporal_supervisor.supervision.run.attempt_rules import is_child_id

if TYPE_CHECKING:
    from activities.reuse.earlier_runs import EarlierRun

_SHOWN = 5


async def built_on(client: Client, wanted: RunRequest, runs: Sequence[str]) -> RunRequest:
    """Returns a request that builds on some runs.

    The first of them gives team and owner if the request has none. Raises CommandFailed for a
    missing run, and SupervisionError for too many runs.
    """
    ids = [await find_run(client, each) for each in runs]
    before = await _recorded_request(Run(client, ids[0]))
    changes: dict[str, Any] = {"reuse_from": [*wanted.reuse_from, *ids]}
    if wanted.team is None and before.team is not None:
        changes["team"] = before.team
    if before.owner and not wanted.owner:
        changes["metadata"] = {**wanted.metadata, "owner": before.metadata["owner"]}
    return _check_changed(wanted, changes)


async def once_more(run: Run, store: ArtifactStore, *, failed: bool = False) -> RunRequest:
    """Returns the request of a run with its plan, which takes unchanged findings from it.

    With `failed` it takes every finding of work that did not fail. A run that answered without a
    plan gets a new plan. Raises CommandFailed.
    """
    before = await _recorded_request(run)
    earlier = await _load_run(run, store)
    # Without attachments it has the run's own copies: uploads may have been deleted since.
    changes: dict[str, Any] = {"reuse_from": [run.id], "attachments": [], "plan": None}
    if earlier.plan.subtasks:
        changes["plan"] = _plan_to_repeat(earlier, failed=failed)
        changes["strategy"] = "plan"
    elif failed:
        raise CommandFailed(FAILED, f"run '{run.id}' had no subtasks, so none of them failed")
    return _check_changed(before, changes)


def _plan_to_repeat(earlier: "EarlierRun", *, failed: bool) -> Plan:
    run_id = earlier.begun.run_id
    if failed:
        return plan_of_failed(earlier.plan, earlier.reports, run_id)
    plan = plan_again(earlier.plan, run_id)
    if earlier.is_one_finding:  # as the strategy `route` has it: no answer is written of it
        plan = plan.model_copy(update={"aggregation": "select"})
    return plan


def with_subtask_description(request: RunRequest, subtask_id: str, description: str) -> RunRequest:
    """Returns a request whose plan has another description of a subtask.

    Raises CommandFailed if there is no such subtask.
    """
    plan = _plan_of(request)
    ids = [subtask.id for subtask in plan.subtasks]
    if subtask_id not in ids:
        unknown = f"the plan has no subtask {quoted(subtask_id)}{did_you_mean(subtask_id, ids)}"
        raise CommandFailed(BAD_INPUT, f"{unknown}: it has {', '.join(ids)}")
    place = ids.index(subtask_id)
    subtasks = [*plan.subtasks]
    subtasks[place] = subtasks[place].model_copy(update={"description": description})
    return _check_changed(request, {"plan": plan.model_copy(update={"subtasks": subtasks})})


def with_plan(request: RunRequest, plan: Plan, run_id: str) -> RunRequest:
    """Returns a request with a changed plan of that run."""
    return _check_changed(request, {"plan": plan_again(plan, run_id), "strategy": "plan"})


def with_model(request: RunRequest, role: str, models: list[str]) -> RunRequest:
    """Returns a request in which a role has these models."""
    roles = {**request.models.roles, role: models}
    return _check_changed(request, {"models": request.models.model_copy(update={"roles": roles})})


def _plan_of(request: RunRequest) -> Plan:
    if request.plan is None:
        words = "this run had no plan that could be changed: ask again with `run --after`"
        raise CommandFailed(FAILED, words)
    return request.plan


async def _recorded_request(run: Run) -> RunRequest:
    """Returns the request of a run. Raises CommandFailed if the server no longer has it."""
    await run.require()
    recorded = await recorded_request(run)
    if not recorded:
        words = f"the request of run '{run.id}' can't be read"
        raise CommandFailed(FAILED, f"{words}: {hint('status', run.id)}")
    return parse_request(dict(recorded))


async def _load_run(run: Run, store: ArtifactStore) -> "EarlierRun":
    # loads teams and their tools: 0.1 s for some commands only
    from activities.reuse.earlier_runs import EarlierRuns

    earlier = await EarlierRuns(store, run.client).load(run.id)
    if earlier is None:
        words = f"run '{run.id}' has no plan in the artifact store: it made none, or was deleted"
        raise CommandFailed(FAILED, words)
    return earlier


def _check_changed(request: RunRequest, changes: Mapping[str, Any]) -> RunRequest:
    """Returns a changed request after a new check.

    Raises SupervisionError `InvalidRequest`.
    """
    return parse_request(request.model_copy(update=dict(changes)).model_dump())


async def runs_built_on(client: Client, run_ids: Sequence[str]) -> dict[str, list[str]]:
    """Returns the open runs that build on each of these runs, by its id."""
    wanted = set(run_ids)
    found: dict[str, list[str]] = {}
    query = f"WorkflowType = '{RUN_TYPE}' AND ExecutionStatus = 'Running'"
    async for each in client.list_workflows(query):
        if is_child_id(each.id, each.parent_id):
            continue
        request = await recorded_request(Run(client, each.id))
        named = request.get("reuse_from")
        if not isinstance(named, list):
            continue
        for run_id in wanted.intersection(named):
            found.setdefault(run_id, []).append(each.id)
    return found


def built_on_words(run_id: str, by: Sequence[str]) -> str:
    """Returns a sentence on the open runs that build on a run to be deleted."""
    more = f" and {len(by) - _SHOWN} more" if len(by) > _SHOWN else ""
    named = ", ".join(f"'{each}'" for each in by[:_SHOWN])
    words = f"run '{run_id}' is built on by open runs: {named}{more}"
    return f"{words}; they keep what they have taken, and do the rest themselves"
