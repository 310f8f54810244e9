"""The command `repair`: what of a run does not replay is reset to the last task up to which it does."""

from console.command import DONE, FAILED, CommandFailed
from console.run.replay import CodeFails, ReplayFault, fault_of, mend, open_workflows
from console.run.run_handle import RunHandle, is_open, state_word, stuck
from console.terminal import counted, print_err, print_out, safe_line
from supervision import limits


async def repair(run: RunHandle) -> int:
    """Resets those of a run's open workflows whose histories do not replay. Returns 1 if one is left as it is.

    Raises CommandFailed if there is no such run, or if it has ended.
    """
    # these load the workflows with their contracts: 0.3 s for one command only
    from runtime.workers import replayer
    from workflows.supervisor import SupervisorWorkflow
    from workflows.worker_agent import WorkerAgentWorkflow

    described = await run.require()
    if not is_open(described):
        raise CommandFailed(FAILED, f"run '{run.id}' has ended ({state_word(described)}): nothing to repair")
    replays = replayer([SupervisorWorkflow, WorkerAgentWorkflow], converter=run.client.data_converter)
    workflows = await open_workflows(run.client, run.id)
    mended, left = 0, 0
    for workflow_id, execution_id in workflows:
        history = await run.client.get_workflow_handle(workflow_id, run_id=execution_id).fetch_history()
        try:
            fault = await fault_of(history, execution_id, replays)
        except CodeFails as error:
            left += 1
            print_err(_sentence(workflow_id, f"raises an error ({error}): it needs fixed code, a reset does not help"))
            continue
        if fault is None:
            continue
        if fault.mended_before:
            left += 1
            print_err(_sentence(workflow_id, _again(fault)))
        else:
            await mend(run.client, fault)
            mended += 1
            print_out(_sentence(workflow_id, _mended(fault)))
    if not mended and not left:
        print_out(_healthy(run.id, len(workflows) - 1, stuck(described)))
    return FAILED if left else DONE


def _sentence(workflow_id: str, words: str) -> str:
    return safe_line(f"workflow '{workflow_id}' {words}", limits.ERROR_BYTES)


def _mended(fault: ReplayFault) -> str:
    return (
        f"did not replay from event {fault.event_id} on ({fault.why}): it was reset to the workflow task that ends "
        "there, and goes on"
    )


def _again(fault: ReplayFault) -> str:
    return (
        f"does not replay from event {fault.event_id} on ({fault.why}), and a repair reset it to this workflow task "
        "before: nothing is changed. Its Workers run other code than this program, or that code is not deterministic"
    )


def _healthy(run_id: str, children: int, failing: str | None) -> str:
    others = f", and so do those of {counted(children, 'open workflow')} below it" if children else ""
    replays = f"the history of run '{run_id}' replays{others}: nothing to repair"
    if failing is None:
        return replays
    return f"{replays}. Yet {failing}: start its Workers with the code of this program"
