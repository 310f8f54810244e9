"""The runs whose histories are kept: together they pass through every branch of the two workflows."""

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle

from supervision.contract.request import RunRequest
from tests.scripted_model import Script, ScriptedModel, Step, answer, plan, script, stop, text, tools, when
from tests.waiting import until
from workflows.supervisor import SupervisorWorkflow


@dataclass(frozen=True)
class Scenario:
    """A run: what is asked, how the model answers, what happens to it meanwhile."""

    script: Script
    fields: dict[str, Any]
    meanwhile: Callable[[WorkflowHandle[Any, Any], ScriptedModel], Awaitable[None]] | None = None


def _tool_then_text(step: Step) -> Any:
    if step.number == 1:
        return tools(("lookup", {"query": "a"}), ("lookup", {"query": "b"}), ("unknown_tool", {}))
    return text("found\n\nConfidence: 0.6\nLimitations: small sample")


def _endless(step: Step) -> Any:
    return tools(("lookup", {"query": str(step.number)}))


def _never(step: Step) -> Any:
    return when(asyncio.Event(), text("never"))


def _odd_turns(step: Step) -> Any:
    odd = {1: stop("pause_turn", "let me see"), 2: stop("max_tokens", "cut"), 3: stop("end_turn")}
    return odd.get(step.number) or text("at last")


def _file_then_text(step: Step) -> Any:
    if step.number > 1:
        return text("there")
    _, path = tempfile.mkstemp()  # it exists, so the tool ends at once
    return tools(("wait_for_file", {"path": path}))


async def _cancel(handle: WorkflowHandle[Any, Any], model: ScriptedModel) -> None:
    await until(lambda: len(model.of(handle.id)) >= 3)
    await handle.cancel()


def scenarios() -> dict[str, Scenario]:
    """By name; made anew for each use, because events belong to one loop."""
    diamond = plan(
        {"id": "t1"}, {"id": "t2", "role": "scribe"}, {"id": "t3", "after": ["t1", "t2"]}, {"id": "t4", "after": ["t3"]}
    )
    mended = script(plan({"id": "t1"}))
    return {
        "direct_answer": Scenario(script(plan(answer="four")), {}),
        "diamond_with_tools": Scenario(script(diamond, {"t1": _tool_then_text}, answer(cites=["t1"])), {}),
        "failed_and_skipped": Scenario(
            script(
                plan({"id": "t1"}, {"id": "t2"}, {"id": "t3", "after": ["t1"]}, {"id": "t4", "after": ["t1", "t2"]}),
                {"t1": _endless},
            ),
            {"max_turns": 2},
        ),
        "all_failed": Scenario(script(plan({"id": "t1"}), {"t1": lambda step: stop("refusal")}), {}),
        "plan_mended": Scenario(lambda step: plan() if step.number == 1 and step.kind == "plan" else mended(step), {}),
        "plan_invalid": Scenario(script(plan()), {}),
        "odd_turns": Scenario(script(plan({"id": "t1"}), {"t1": _odd_turns}), {}),
        "deadline": Scenario(script(plan({"id": "t1"}, {"id": "t2"}), {"t2": _never}), {"deadline": "PT6S"}),
        "cancelled": Scenario(script(plan({"id": "t1"}, {"id": "t2"}), {"t2": _never}), {}, _cancel),
        "file_tool": Scenario(
            script(
                plan({"id": "t1", "role": "counter"}),
                {"t1": _file_then_text},
            ),
            {},
        ),
    }


async def play(client: Client, model: ScriptedModel, name: str, run_id: str) -> list[str]:
    """Plays a scenario to its end; returns the ids of its workflows, the run's first."""
    scenario = scenarios()[name]
    model.play(run_id, scenario.script)
    request = RunRequest(goal=f"scenario {name}", team="lab", **scenario.fields)
    handle = await client.start_workflow(SupervisorWorkflow.run, request, id=run_id, task_queue="supervisor")
    if scenario.meanwhile:
        await scenario.meanwhile(handle, model)
    with contextlib.suppress(WorkflowFailureError):
        await handle.result()
    reports = (await handle.query(SupervisorWorkflow.status)).subtasks
    return [run_id, *[report.workflow_id for report in reports if report.workflow_id]]
