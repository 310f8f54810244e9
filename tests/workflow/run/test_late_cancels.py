"""A cancellation that comes while a run stores its result: it ends cancelled, with its answer, and replays."""

import asyncio
import functools
import threading
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WorkflowExecutionStatus

from supervision.run.run_state import RunState
from tests.replay.replaying import replayer
from tests.scripted_model import plan, script, when
from tests.serving import own_server, settings_for
from tests.waiting import until
from tests.workflow.runs import Handle, Lab, closed, is_answered
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow

RUNS = 4  # by chance a query comes with the last workflow task of a run, or without it


async def test_a_cancel_that_comes_with_a_query_while_the_result_is_stored_loses_nothing(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query's answer ends the workflow task, and the next one brings the stored result and the cancellation."""
    asked = {f"{lab.run_id}-{number}": threading.Event() for number in range(RUNS)}
    cancelled, planned, status = threading.Event(), asyncio.Event(), RunState.status

    def status_after_the_cancel(state: RunState, cursor: int = 0) -> Any:
        if workflow.in_workflow() and state.phase == "done" and not state.result_ref:
            asked[workflow.info().workflow_id].set()
            cancelled.wait(1.8)  # below the SDK's two seconds for a workflow task without an await
        return status(state, cursor)

    monkeypatch.setattr(RunState, "status", status_after_the_cancel)
    settings = settings_for(lab.model.url, tmp_path)
    async with own_server() as client, serving(client, settings, ["model"]):
        handles: dict[str, Handle] = {}
        async with serving(client, settings, ["workflows"]):
            for name in asked:
                own = lab.on(client).named(name)
                own.play(script(when(planned, plan(answer="none"))))
                handles[name] = await own.start()
                await until(own.sent("plan.1.1"))
        planned.set()
        for name in asked:
            await until(functools.partial(is_answered, client, name))
        queries = [asyncio.create_task(handle.query(SupervisorWorkflow.status)) for handle in handles.values()]
        await asyncio.sleep(0.5)  # nothing shows that a query waits at the server
        async with serving(client, settings, ["workflows"]):
            for name, handle in handles.items():
                await until(functools.partial(_is_asked_or_closed, asked[name], handle))
            late = [handle for name, handle in handles.items() if asked[name].is_set()]
            for handle in late:
                await handle.cancel()
            cancelled.set()
            for handle in handles.values():
                await until(functools.partial(closed, handle))
            await asyncio.gather(*queries)
            assert {(await handle.query(SupervisorWorkflow.result)).answer for handle in handles.values()} == {"none"}
        for handle in handles.values():
            ended = (await handle.describe()).status
            assert ended in (WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.CANCELED)
            await replayer().replay_workflow(await handle.fetch_history())


async def _is_asked_or_closed(asked: threading.Event, handle: Handle) -> bool:
    return asked.is_set() or await closed(handle)
