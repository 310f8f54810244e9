"""Raw payloads from anybody: none leaves a run stuck. Each ends typed, is refused, is ignored, or the run completes."""

import asyncio
import gc
import json
from collections.abc import Awaitable, Iterable
from datetime import timedelta
from itertools import cycle
from typing import Any
from uuid import uuid4

import pytest
from temporalio.api.common.v1 import Header, Memo, Payload, Payloads, WorkflowExecution, WorkflowType
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.update.v1 import Input, Meta, Request
from temporalio.api.workflowservice.v1 import (
    QueryWorkflowRequest,
    SignalWithStartWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
    UpdateWorkflowExecutionRequest,
)
from temporalio.client import Client, WorkflowFailureError, WorkflowQueryFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from temporal_supervisor.console.run.found_runs import listed_facts, stuck_sentence
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import size
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import Status
from tests.scripted_model import ScriptedModel, answer, plan, script, text, when
from tests.task_failures import task_failures
from tests.waiting import until
from tests.workflow.runs import Handle, Lab
from workflows.supervisor import SupervisorWorkflow

AT_ONCE = asyncio.Semaphore(4)
PATIENCE = timedelta(seconds=60)  # a call that waits behind the others: some payloads have two megabytes
REFUSALS = ("InvalidRequest", "UnknownTeam")
LARGE = 10**400


def raw(data: bytes | str, encoding: bytes | None = b"json/plain", **metadata: bytes) -> Payload:
    content = data.encode() if isinstance(data, str) else data
    return Payload(metadata=metadata if encoding is None else {"encoding": encoding, **metadata}, data=content)


def field(name: str, value: str) -> Payload:
    """A request whose field is that JSON text."""
    return raw(f'{{"goal": "Weigh the pears", "team": "crew", "max_reviews": 0, "{name}": {value}}}')


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


UNDECODABLE = {
    **{f"encoding {name!r}": raw("{}", name) for name in (None, b"", b"\xff\xfe", b"binary/evil", b"json/plain ")},
    "protobuf of no type": raw("{}", b"json/protobuf"),
    "protobuf of an unknown type": raw("{}", b"json/protobuf", messageType=b"no.such.Type"),
    "protobuf that is none": raw(b"\xff\xff", b"binary/protobuf", messageType=b"temporal.api.common.v1.Payload"),
    "empty": raw(""),
    "white space": raw(" \n"),
    "half": raw('{"goal": "x'),
    "words": raw("Weigh the pears"),
    "single quotes": raw("{'goal': 'x'}"),
    "two values": raw('{"goal": "x"} {"goal": "y"}'),
    "trailing comma": raw('{"goal": "x",}'),
    "UTF-16": raw('{"goal": "x"}'.encode("utf-16")),
    "byte order mark": raw(b'\xef\xbb\xbf{"goal": "x"}'),
    "Latin-1": raw('{"goal": "Äpfel"}'.encode("latin-1")),
    "NUL": raw(b"\x00"),
    **{f"lists {depth} deep": raw(nested(depth)) for depth in (202, 1500, 200_000)},
    "objects 300 deep": raw('{"a":' * 300 + "1" + "}" * 300),
    **{f"{digits} digits": raw("9" * digits) for digits in (4301, 100_000)},
    "tokens of 5,000 digits": field("budget", f'{{"tokens": {"9" * 5000}}}'),
    "surrogate as a goal": raw('{"goal": "\\ud83e"}'),
    "surrogate in a key": raw('{"goal": "x", "\\udc00": 1}'),
    "surrogate in a team's name": field("team", '{"name": "\\ud83e"}'),
    "surrogate in a model's name": field("models", '{"workers": "\\ud83e"}'),
    "surrogate in an attachment": field("attachments", '[{"name": "\\udfff", "text": "x"}]'),
    "surrogate in bytes": raw(b'{"goal": "\xed\xa0\x80"}'),
    "130,000 keys": raw(json.dumps({f"key{n:06}": 1 for n in range(130_000)})),
    "1.9 MB of a goal": raw(json.dumps({"goal": "x" * 1_900_000})),
}
WRONG = {
    "null": raw("", b"binary/null"),
    "bytes": raw(b"\x00\x01", b"binary/plain"),
    "protobuf": raw("{}", b"json/protobuf", messageType=b"temporal.api.common.v1.Payload"),
    **{
        f"JSON {text[:12]}": raw(text) for text in ("null", "true", "3", '"x"', "[]", "{}", "NaN", "1e999", '"\\u0000"')
    },
    "lists 199 deep": raw(nested(199)),
    "4,300 digits": raw("9" * 4300),
    "20,000 keys": raw(json.dumps({f"key{n:06}": 1 for n in range(20_000)})),
    "a key of 300 KB": raw(json.dumps({"k" * 300_000: 1})),
    "control characters": raw('{"\\u001b[31m\\u0000\\u202e": 1}'),
}
ODD = {**UNDECODABLE, **WRONG}
VALUES = ("null", "true", '"x"', "[]", "{}", "-1", "1e308", "NaN", str(LARGE))
FIELDS = {
    **{f"{name} {value[:5]}": field(name, value) for number, name in enumerate(RunRequest.model_fields)
       for value in VALUES[number % 2::2]},
    **{f"budget.{name} {value[:5]}": field("budget", f'{{"{name}": {value}}}')
       for name in ("tokens", "usd") for value in VALUES},
    **{f"answer_schema {depth} deep": field("answer_schema", f'{{"x": {nested(depth)}}}') for depth in (90, 99, 196)},
    "answer_schema with NaN": field("answer_schema", '{"const": NaN}'),
    "answer_schema with a large number": field("answer_schema", f'{{"minimum": {LARGE}}}'),
    "answer_schema with 4,300 digits": field("answer_schema", f'{{"minimum": {"9" * 4300}}}'),
    "a key twice": field("goal", '"Weigh the apples"'),
}  # fmt: skip
LATE = {"budget.tokens true": "BudgetExhausted", "plan {}": "NoSubtasks"}
"""Requests that are valid, with which the run fails later."""
SOME_FIELDS = {
    **{f"{name} {value[:5]}": field(name, value) for name, value in zip(RunRequest.model_fields, cycle(VALUES))},
    **{name: FIELDS[name] for name in FIELDS if name.startswith("answer_schema")},
    **{name: FIELDS[name] for name in (*LATE, "a key twice")},
}
"""Each field with one value, and what is about a field of its own."""


def of_run(run_id: str) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=run_id)


async def begin(client: Client, run_id: str, kind: str, inputs: Iterable[Payload], odd: Payload) -> None:
    """Starts a workflow with those inputs; `odd` is in its memo and its header."""
    await client.workflow_service.start_workflow_execution(
        StartWorkflowExecutionRequest(
            namespace=client.namespace,
            request_id=uuid4().hex,
            workflow_id=run_id,
            workflow_type=WorkflowType(name=kind),
            task_queue=TaskQueue(name="supervisor"),
            input=Payloads(payloads=inputs),
            memo=Memo(fields={"phase": odd, "team": odd, "partial": odd} if len(odd.data) < 10_000 else {}),
            header=Header(fields={"note": odd} if len(odd.data) < 10_000 else {}),
        ),
        timeout=PATIENCE,
    )


ENDED = ("completed", "partial")  # a JSON schema that no answer fits leaves the written one


async def end(client: Client, run_id: str) -> str:
    """Returns how a run ended: `completed`, or the type of its error; a stuck one says so."""
    handle = client.get_workflow_handle(run_id, result_type=RunResult)
    try:
        async with asyncio.timeout(90):
            result: RunResult = await handle.result()
    except TimeoutError:
        return f"stuck: {stuck_sentence(await handle.describe())}"
    except WorkflowFailureError as failed:
        error = failed.cause
        if not isinstance(error, ApplicationError) or not error.message.strip() or "\n" in error.message:
            return f"odd: {error!r}"
        return f"{error.type}" if size(error.message) <= limits.ERROR_BYTES else f"long: {error.message}"
    return result.status


async def phase(handle: Handle) -> str:
    """Returns the phase of an ended run as `status` has it; one whose input was refused did not begin.

    On a busy machine a query that comes while its run is being closed may get no answer: it is asked again.
    """
    for _ in range(3):
        try:
            return (await handle.query(SupervisorWorkflow.status, rpc_timeout=PATIENCE / 3)).phase
        except WorkflowQueryFailedError as refused:
            if "TMPRL1101" not in str(refused):  # it took more than two seconds: not an answer
                return "not begun" if "its input was not valid" in str(refused) else str(refused)
        except RPCError as unanswered:
            if unanswered.status is not RPCStatusCode.DEADLINE_EXCEEDED:
                raise
    return "no answer"


async def ends(client: Client, model: ScriptedModel, run_id: str, kind: str, inputs: dict[str, Any]) -> dict[str, str]:
    """Starts a run with each of the inputs. Returns how it ended, once it can be listed and asked."""

    async def one(number: int, given: Payload | list[Payload]) -> str:
        own = f"{run_id}-{number}"
        payloads = given if isinstance(given, list) else [given]
        model.play(own, script(plan(answer="Three."), answer_reply=answer(answer_json={})))
        async with AT_ONCE:
            await begin(client, own, kind, payloads, payloads[0] if payloads else raw("", None))
            ended = await end(client, own)
            handle = client.get_workflow_handle_for(SupervisorWorkflow.run, own)
            await listed_facts(await handle.describe(rpc_timeout=PATIENCE))
            if kind == "SupervisorWorkflow" and ended in ENDED:
                assert await phase(handle) == "done"
            elif kind == "SupervisorWorkflow" and not ended.startswith("stuck"):
                assert await phase(handle) in ("failed", "not begun")
        return ended

    endings = await asyncio.gather(*(one(number, given) for number, given in enumerate(inputs.values())))
    return dict(zip(inputs, endings, strict=True))


@pytest.mark.parametrize("kind", ["SupervisorWorkflow", "WorkerAgentWorkflow"])
async def test_a_run_with_an_odd_input_ends_as_an_invalid_request(lab: Lab, kind: str) -> None:
    endings = await ends(lab.client, lab.model, lab.run_id, kind, ODD)
    assert set(endings.values()) == {"InvalidRequest"}, endings
    assert [call for call in lab.model.calls if call.step.run_id.startswith(lab.run_id)] == []


async def test_what_cannot_be_decoded_is_told_to_its_sender(lab: Lab) -> None:
    await begin(lab.client, lab.run_id, "SupervisorWorkflow", [UNDECODABLE["lists 1500 deep"]], raw("1"))
    with pytest.raises(WorkflowFailureError) as caught:
        await lab.client.get_workflow_handle(lab.run_id).result()
    assert "the input can't be decoded (Invalid JSON: recursion limit exceeded" in str(caught.value.cause)


async def test_a_run_with_an_odd_number_of_inputs_ends_as_an_invalid_request(lab: Lab) -> None:
    good = field("max_turns", "3")
    counts = {
        "none": [],
        "two": [good, good],
        "odd": [good, raw("{")],
        "odd first": [raw("{"), good],
        "many": [good] * 3000,
    }
    endings = await ends(lab.client, lab.model, lab.run_id, "SupervisorWorkflow", counts)
    assert set(endings.values()) == {"InvalidRequest"}, endings


@pytest.mark.parametrize(
    "fields", [pytest.param(SOME_FIELDS, id="some"), pytest.param(FIELDS, id="all", marks=pytest.mark.long)]
)
async def test_every_field_with_any_value_is_refused_or_the_run_completes(lab: Lab, fields: dict[str, Payload]) -> None:
    endings = await ends(lab.client, lab.model, lab.run_id, "SupervisorWorkflow", fields)
    others = {name: ending for name, ending in endings.items() if ending not in (*REFUSALS, *ENDED)}
    assert others == LATE
    assert sum(ending == "completed" for ending in endings.values()) >= 5


async def signal_with_start(client: Client, run_id: str, name: str, inputs: Iterable[Payload]) -> None:
    await client.workflow_service.signal_with_start_workflow_execution(
        SignalWithStartWorkflowExecutionRequest(
            namespace=client.namespace,
            request_id=uuid4().hex,
            workflow_id=run_id,
            workflow_type=WorkflowType(name="SupervisorWorkflow"),
            task_queue=TaskQueue(name="supervisor"),
            input=Payloads(payloads=[field("max_turns", "3")]),
            signal_name=name,
            signal_input=Payloads(payloads=inputs),
        ),
        timeout=PATIENCE,
    )


REPORTS = [
    [],
    [raw("{")],
    [raw("null")],
    [raw("{}"), raw("{}")],
    [raw('{"subtask_id": "t1", "phase": "done"}')],
    [raw('{"subtask_id": "t1", "phase": "done", "subtasks": [{"id": "x", "turns": 1%s}]}' % ("0" * 400))],
    [raw('{"subtask_id": "t1", "phase": "done", "waits": [{"name": "x", "workflow_id": "", "retry_at": "x"}]}')],
]


async def test_signals_before_the_first_workflow_task_are_ignored(lab: Lab) -> None:
    sent = [(name, inputs) for name in ("instructions", "nested_report", "no_such_signal") for inputs in REPORTS]

    async def one(number: int, name: str, inputs: list[Payload]) -> str:
        own = f"{lab.run_id}-{number}"
        lab.model.play(own, script(plan(answer="Three.")))
        async with AT_ONCE:
            await signal_with_start(lab.client, own, name, inputs)
            return await end(lab.client, own)

    endings = await asyncio.gather(*(one(number, *signal) for number, signal in enumerate(sent)))
    assert set(endings) == {"completed"}, list(zip(sent, endings, strict=True))


async def accepted(request: Awaitable[Any]) -> bool:
    """True if the server's answer is neither an error nor a rejected update."""
    try:
        async with asyncio.timeout(60):
            reply = await request
    except RPCError:
        return False
    return not (hasattr(reply, "outcome") and reply.outcome.HasField("failure"))


def update(client: Client, run_id: str, name: str, inputs: Iterable[Payload]) -> Awaitable[Any]:
    request = Request(meta=Meta(update_id=uuid4().hex), input=Input(name=name, args=Payloads(payloads=inputs)))
    return client.workflow_service.update_workflow_execution(
        UpdateWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=of_run(run_id), request=request),
        timeout=PATIENCE,
    )


def signal(client: Client, run_id: str, name: str, inputs: Iterable[Payload]) -> Awaitable[Any]:
    return client.workflow_service.signal_workflow_execution(
        SignalWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=of_run(run_id),
            signal_name=name,
            input=Payloads(payloads=inputs),
        ),
        timeout=PATIENCE,
    )


def query(client: Client, run_id: str, name: str, inputs: Iterable[Payload]) -> Awaitable[Any]:
    asked = WorkflowQuery(query_type=name, query_args=Payloads(payloads=inputs))
    request = QueryWorkflowRequest(namespace=client.namespace, execution=of_run(run_id), query=asked)
    return client.workflow_service.query_workflow(request, timeout=PATIENCE)


class OpenRun:
    """A run that waits for its plan, and may be sent anything meanwhile."""

    def __init__(self, client: Client, model: ScriptedModel, run_id: str) -> None:
        self.handle = client.get_workflow_handle_for(SupervisorWorkflow.run, run_id)
        self._client, self._model, self._run_id = client, model, run_id
        self._go_on = asyncio.Event()

    async def planning(self) -> None:
        """Starts the run and returns once it waits."""
        self._model.play(self._run_id, script(when(self._go_on, plan(answer="Three."))))
        await begin(self._client, self._run_id, "SupervisorWorkflow", [field("max_turns", "3")], raw("1"))
        await until(lambda: bool(self._model.of(self._run_id)))

    async def status(self) -> Status:
        """Returns its status."""
        return await self.handle.query(SupervisorWorkflow.status, rpc_timeout=PATIENCE)

    async def ends(self) -> str:
        """Lets it go on, and returns how it ended."""
        self._go_on.set()
        return await end(self._client, self._run_id)


@pytest.fixture
async def open_run(client: Client, model: ScriptedModel, run_id: str, worker: None) -> OpenRun:
    """A run that waits for its plan."""
    opened = OpenRun(client, model, run_id)
    await opened.planning()
    return opened


AMOUNTS = [
    *(raw(f'{{"budget": {{"{name}": {value}}}}}') for name in ("tokens", "usd") for value in VALUES[2:]),
    *(raw(f'{{"deadline": {value}}}') for value in (*VALUES[2:], "-1e14", '"-P999999999D"')),
    raw('{"request_id": {}}'),
    raw('{"budget": {"tokens": 1, "usd": null, "euro": 1}}'),
]


async def test_odd_updates_are_refused_and_change_nothing(lab: Lab, open_run: OpenRun) -> None:
    before = await open_run.status()
    nothing = {name: odd for name, odd in ODD.items() if name not in ("null", "JSON null", "JSON {}")}
    for odd in [*nothing.values(), *AMOUNTS]:
        assert not await accepted(update(lab.client, lab.run_id, "extend_limits", [odd])), odd
    for odd in UNDECODABLE.values():
        assert not await accepted(update(lab.client, lab.run_id, "resume", [odd])), odd
    assert not await accepted(update(lab.client, lab.run_id, "resume", [raw("{}"), raw("{")]))
    assert not await accepted(update(lab.client, lab.run_id, "no_such_update", [raw("{}")]))
    assert await open_run.status() == before
    assert await open_run.ends() == "completed"


async def test_large_updates_at_once_do_not_hold_a_run_up(lab: Lab, open_run: OpenRun) -> None:
    # The SDK sends refused updates back: the server ends a run for one above 2 MiB, and takes 4 MiB at once.
    large = UNDECODABLE["130,000 keys"]
    sent = [asyncio.create_task(accepted(update(lab.client, lab.run_id, "extend_limits", [large]))) for _ in range(5)]
    small = raw('{"budget": {"tokens": 2000000}}')
    assert await accepted(update(lab.client, lab.run_id, "extend_limits", [small]))
    assert await open_run.ends() == "completed"
    assert True not in await asyncio.gather(*sent)
    history = await open_run.handle.fetch_history()
    assert list(task_failures(history.events)) == []


def held(marker: str) -> int:
    """Returns how many lists, dictionaries and tuples of this process hold a text that begins so."""
    containers = [value for value in gc.get_objects() if type(value) in (dict, list, tuple)]
    parts = (list(value.values()) if isinstance(value, dict) else value for value in containers)
    return sum(any(type(part) is str and part.startswith(marker) for part in items) for items in parts)


@pytest.mark.holds_loop  # it looks through all objects of the process
async def test_an_open_run_does_not_hold_the_content_of_its_request(lab: Lab) -> None:
    marker, go_on = f"{lab.run_id} pears ", asyncio.Event()
    lab.play(script(when(go_on, plan(answer="Three."))))
    texts = [{"name": str(number), "text": marker + "x" * 15_000} for number in range(9)]
    payload = field("attachments", json.dumps(texts))
    texts.clear()
    await begin(lab.client, lab.run_id, "SupervisorWorkflow", [payload], raw("1"))
    await until(lambda: bool(lab.calls))
    gc.collect()
    assert held(marker) == 0
    go_on.set()
    assert await end(lab.client, lab.run_id) == "completed"


async def test_odd_queries_are_refused(lab: Lab, open_run: OpenRun) -> None:
    for name in ("status", "trace"):
        for odd in [*UNDECODABLE.values(), raw("[]"), raw("1e999"), raw("x", b"binary/plain")]:
            assert not await accepted(query(lab.client, lab.run_id, name, [odd])), (name, odd)
    for odd in UNDECODABLE.values():
        assert not await accepted(query(lab.client, lab.run_id, "no_such_query", [odd])), odd
        assert await accepted(query(lab.client, lab.run_id, "result", [odd])), odd  # it takes none, so they are ignored
    assert await accepted(query(lab.client, lab.run_id, "status", [raw("-7")]))
    assert await open_run.ends() == "completed"


async def test_odd_signals_are_ignored(lab: Lab, open_run: OpenRun) -> None:
    before = await open_run.status()
    for inputs in [*([odd] for odd in ODD.values()), *REPORTS]:
        for name in ("instructions", "nested_report", "no_such_signal"):
            await signal(lab.client, lab.run_id, name, inputs)
        if sum(len(odd.data) for odd in inputs) > 10_000:  # one workflow task may not get more than the server sends
            await open_run.status()
    assert await open_run.status() == before
    assert await open_run.ends() == "completed"


async def test_odd_queries_of_a_worker_agent_are_refused(lab: Lab) -> None:
    go_on = asyncio.Event()
    found = when(go_on, text("found it"))
    lab.play(script(plan({"id": "t1", "role": "hand"}), {"t1": lambda step: found}))
    await begin(lab.client, lab.run_id, "SupervisorWorkflow", [field("max_turns", "3")], raw("1"))
    await until(lambda: "turn" in [call.step.kind for call in lab.calls])
    (child,) = await lab.started_children()
    for odd in UNDECODABLE.values():
        assert not await accepted(query(lab.client, child, "trace", [odd])), odd
        if len(odd.data) < 10_000:
            assert not await accepted(update(lab.client, child, "resume", [odd])), odd
            await signal(lab.client, child, "nested_report", [odd])
    go_on.set()
    assert await end(lab.client, lab.run_id) == "completed"
