"""The command `repair`: resets workflows that do not replay.

They are reset to the last task up to which they replay. `--pay-again` resets workflows whose
history refers to objects that the store has lost, to a task before these were made.
"""

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer
from temporalio.api.common.v1 import WorkflowExecution as WorkflowExecutionRef
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowHistory
from temporalio.workflow import NondeterminismError

from temporal_supervisor.console.base.command import DONE, FAILED, Access, CommandFailed
from temporal_supervisor.console.base.terminal import print_err, print_out, safe_line
from temporal_supervisor.console.run.command_line import AnyRun
from temporal_supervisor.console.run.found_runs import list_tree, recorded_store, stuck_sentence
from temporal_supervisor.console.run.lost_objects import losses_of
from temporal_supervisor.outcomes import is_open, state_word
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.base import limits

if TYPE_CHECKING:
    from temporalio.worker import Replayer

_RESET_WAIT = timedelta(seconds=10)
_ANYWAY_REPLAYS = (
    "`--anyway` replays their histories with the code of this program, "
    "and resets what does not replay"
)
_MESSAGE = re.compile(r'message: "((?:[^"\\]|\\.)*)"')
_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED


class CodeFails(Exception):
    """Workflow code raises an error in a replay, so that a reset does not help."""


_ANYWAY_HELP = "even if no workflow task fails, or for a run of another build"
_PAY_AGAIN_HELP = "make and pay again what the artifact store has lost"
Anyway = Annotated[bool, typer.Option("--anyway", help=_ANYWAY_HELP)]
PayAgain = Annotated[bool, typer.Option("--pay-again", help=_PAY_AGAIN_HELP)]


async def repair(
    run: AnyRun, access: Access, pay_again: PayAgain = False, anyway: Anyway = False
) -> int:
    """Mend a run whose history does not replay: reset it to the last task up to which it does."""
    described = await run.require()
    if not is_open(described):
        ended = f"run '{run.id}' has ended ({state_word(described)})"
        raise CommandFailed(FAILED, f"{ended}: nothing to repair")

    tree = await list_tree(run.client, run.id, "Running")
    below = [(child.id, child.run_id) for child in tree if child.id != run.id]
    own = (run.id, described.run_id)
    if pay_again:
        return await _make_again(run, access, [own, *below])

    if not anyway:
        versioning = described.raw_description.workflow_execution_info.versioning_info
        check_build(run.id, versioning.deployment_version.build_id, access.settings.build_id)
        failing = stuck_sentence(described) or await _first_stuck(run, below)
        if not failing:
            nothing = f"no workflow task of run '{run.id}' or below it fails: nothing to repair"
            print_out(f"{nothing} ({_ANYWAY_REPLAYS})")
            return DONE

    # deepest first: one that is reset looks for them
    below.sort(key=lambda child: (-child[0].count("/"), child[0]))
    return await _reset_stuck(run, described, [*below, own])


def check_build(run_id: str, build: str, own_build: str | None) -> None:
    """Raises CommandFailed if the run belongs to another build, whose code replays it."""
    if not build or build == own_build:
        return
    own = f"build {own_build}" if own_build else "of no build (SUPERVISOR_BUILD_ID is not set)"
    differs = f"run '{run_id}' belongs to build {build}, this program is {own}"
    anyway = "`--anyway` to have it go on with this one's code"
    raise CommandFailed(FAILED, f"{differs}: use the program of build {build}, or {anyway}")


async def _first_stuck(run: Run, below: Sequence[tuple[str, str]]) -> str | None:
    """Returns the failure of the first stuck workflow below a run; None if all work."""
    for workflow_id, _ in below:
        failing = stuck_sentence(await run.describe(workflow_id))
        if failing:
            return failing
    return None


async def _reset_stuck(
    run: Run,
    described: WorkflowExecutionDescription,
    places: Sequence[tuple[str, str]],
) -> int:
    """Resets workflows that do not replay. Returns the exit code."""
    # these load the workflows with their contracts: 0.3 s for one command only
    from temporal_supervisor.runtime.workers import replayer
    from workflows.supervisor import SupervisorWorkflow
    from workflows.worker_agent import WorkerAgentWorkflow

    client = run.client
    types = [SupervisorWorkflow, WorkerAgentWorkflow]
    replays = replayer(types, converter=client.data_converter)
    mended = 0
    left = 0
    for workflow_id, execution_id in places:
        handle = client.get_workflow_handle(workflow_id, run_id=execution_id)
        try:
            fault = await fault_of(await handle.fetch_history(), replays)
        except CodeFails as error:
            left += 1
            helps = "it needs fixed code, a reset does not help"
            _print_about(print_err, workflow_id, f"raises an error ({error}): {helps}")
            continue
        if fault is None:
            continue

        event_id, why = fault
        reason = f"the history did not replay from event {event_id} on: {why}"
        await _reset(client, workflow_id, execution_id, event_id, reason)
        mended += 1
        failed = f"did not replay from event {event_id} on ({why})"
        reset = "it was reset to the workflow task that ends there, and continues"
        _print_about(print_out, workflow_id, f"{failed}: {reset}")

    if not mended and not left:
        nothing = (
            f"the histories of run '{run.id}' and what is open below it replay: nothing to repair"
        )
        failing = stuck_sentence(described)
        yet = f"; yet {failing}: start its Workers with the code of this program" if failing else ""
        print_out(f"{nothing}{yet}")
    return FAILED if left else DONE


async def _make_again(run: Run, access: Access, places: Sequence[tuple[str, str]]) -> int:
    """Resets workflows that need lost objects, so that paid work is paid again."""
    store = await access.store()
    store_id = await recorded_store(run)
    if store_id:
        # in another store, or in one that is not mounted, nothing counts as lost
        await store.require(store_id)

    losses = await losses_of(run, store, places)
    for loss in losses:
        reason = f"the store has lost what event {loss.event_id} names: {loss.key}"
        await _reset(run.client, loss.workflow_id, loss.execution_id, loss.reset_to, reason)
        reset = f"was reset to before event {loss.event_id}"
        lost = f"which names an object that the store has lost ({loss.key})"
        _print_about(
            print_out, loss.workflow_id, f"{reset}, {lost}: it is made again, and paid again"
        )
    if not losses:
        histories = f"the histories of run '{run.id}' and of what is open below it"
        print_out(f"the store has all that {histories} name")
    return DONE


def _print_about(write: Callable[[str], None], workflow_id: str, words: str) -> None:
    write(safe_line(f"workflow '{workflow_id}' {words}", limits.ERROR_BYTES))


async def fault_of(history: WorkflowHistory, replayer: "Replayer") -> tuple[int, str] | None:
    """Returns the event at which a replay fails, and the reason; None if it succeeds.

    The event ends the first workflow task whose outcome differs from the history. Raises CodeFails.
    """
    events = history.events
    why = await _error_of_replay(history.workflow_id, events, replayer)
    if why is None:
        return None
    ends = [place for place, event in enumerate(events) if event.event_type == _COMPLETED]
    if not ends:
        raise CodeFails(why)

    # What follows the end of a task are its commands: a history that ends with the start of the
    # next task shows whether they come out. Those of the tasks before `low` do, those of some task
    # before `high` do not.
    low, high = 0, len(ends)
    while high - low > 1:
        middle = (low + high) // 2
        refusal = await _error_of_replay(history.workflow_id, events[: ends[middle]], replayer)
        if refusal is None:
            low = middle
        else:
            high, why = middle, refusal
    return events[ends[low]].event_id, why


async def _error_of_replay(
    workflow_id: str,
    events: Sequence[HistoryEvent],
    replayer: "Replayer",
) -> str | None:
    """Returns the error of a replay of these events; None if it succeeds. Raises CodeFails."""
    history = WorkflowHistory(workflow_id, events)
    replayed = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    failure = replayed.replay_failure
    if failure is None:
        return None
    if isinstance(failure, NondeterminismError):
        return _replay_error(failure.message)
    raise CodeFails(_replay_error(str(failure)))


def _replay_error(failure: str) -> str:
    """Returns the message within the SDK's error of a failed replay.

    The rest of that error is a dump of its data structure.
    """
    message = _MESSAGE.search(failure)
    text = message[1].replace('\\"', '"') if message else failure
    return safe_line(text, limits.SENTENCE_BYTES)


async def _reset(
    client: Client, workflow_id: str, execution_id: str, event_id: int, why: str
) -> None:
    request = ResetWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecutionRef(workflow_id=workflow_id, run_id=execution_id),
        reason=safe_line(f"mended by the command repair: {why}", limits.ERROR_BYTES),
        workflow_task_finish_event_id=event_id,
        request_id=str(uuid4()),
    )
    await client.workflow_service.reset_workflow_execution(request, timeout=_RESET_WAIT)
