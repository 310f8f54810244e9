"""What holds for every run, whatever went wrong in it."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base.errors import RUN_KINDS
from temporal_supervisor.supervision.base.store_keys import run_prefix
from temporal_supervisor.supervision.contract.plan import template_of
from temporal_supervisor.supervision.contract.result import RunResult, SubtaskReport, Timing
from tests.machine.model_replies import AS_OF
from tests.machine.playing import WORD, Ending
from tests.machine.records import Record, Tree, calls_in_a_pause, tree
from tests.serving import store_of
from tests.waiting import until

FINAL = {"completed", "failed", "skipped", "cancelled"}
PHASES = {"completed": "done", "failed": "failed", "cancelled": "cancelled"}


STOPPED_IN = 30.0
"""Seconds, on a machine that has much else to do."""

ON_ITS_WAY = 1.0
"""Seconds in which a call begins that the server gave out before the end."""


async def broken(client: Client, ending: Ending, artifacts: Path) -> list[str]:
    """Returns what does not hold for a run that has ended."""
    result = ending.result
    last = await tree(client, ending.run_id, ending.executions[-1])
    before = Tree()  # what executions had that were reset, and the last one does not
    for execution in ending.executions[:-1]:
        before.add(await tree(client, ending.run_id, execution, last.records))
    ending.histories = {**last.histories, **before.histories}
    records, root = last.records, last.records[ending.executions[-1]]
    if ending.unread:
        return [f"a query failed: {ending.unread}"]
    failures = [
        f"a workflow task of {record.workflow_id} failed: {failure}"
        for record in [*records.values(), *before.records.values()]
        for failure in record.task_failures
    ]
    if result is None:
        return [f"it {ending.kind} with {ending.error}, without a result", *failures[:2]]
    wrong = [*failures, *_wrong_end(ending, result), *_wrong_states(result), *_wrong_queries(ending, result)]
    wrong += _too_many_subtasks(ending, result)
    wrong += _lost_findings(ending.run_id, result, root)
    for record in records.values():
        wrong += [fault async for fault in _open_children(client, record, was_reset=ending.was_reset)]
    wrong += _wrong_spending(ending, result, records, abandoned_calls(root, before.records))
    wrong += await paid_again(ending, await store_of(client, artifacts))
    wrong += _late_calls(ending, records, before.records)
    wrong += [fault for history in ending.histories.values() for fault in calls_in_a_pause(history)]
    wrong += _said_twice(ending)
    wrong += _misapplied(ending, result)
    wrong += _wrong_plans(ending)
    return wrong


# --- what the run shows -----------------------------------------------------------------------------------


def _wrong_end(ending: Ending, result: RunResult) -> Iterator[str]:
    acts = {deed.action for deed in ending.case.deeds}
    if ending.kind == "completed" and result.status not in ("completed", "partial"):
        yield f"it completed as {result.status}"
    if ending.kind == "completed" and not result.answer:
        yield "it completed without an answer"
    if ending.kind == "failed" and ending.error not in RUN_KINDS:
        yield f"it failed with {ending.error}"
    if ending.kind == "cancelled" and "cancel" not in acts:
        yield "it was cancelled by nobody"


# How a gap begins whose subtask has a finding: it lacks what a review or a person asked for.
_KEPT = ("review still finds", "fix", "what came back had less that is supported")


def _wrong_states(result: RunResult) -> Iterator[str]:
    ids = [report.id for report in result.subtasks]
    if len(ids) != len(set(ids)):
        yield f"subtasks are listed twice: {ids}"
    for report in result.subtasks:
        if report.state not in FINAL:
            yield f"{report.id} is {report.state} at the end"
        if report.state == "completed" and report.finding is None and report.counts is None:
            yield f"{report.id} is completed without a finding"
        if report.state != "completed" and report.error is None:
            yield f"{report.id} is {report.state} without a reason"
    done = {report.id for report in result.subtasks if report.state == "completed" and report.counts is None}
    partial = {report.id for report in result.subtasks if report.finding and report.finding.outcome == "partial"}
    reopened = {gap.subtask_id for gap in result.gaps if any(words in gap.reason for words in _KEPT)}
    for gap in result.gaps:
        if gap.subtask_id in done - reopened - partial:
            yield f"{gap.subtask_id} is completed and a gap: {gap.reason}"
    named = {gap.subtask_id for gap in result.gaps}
    for report in result.subtasks:
        named_as = template_of(report.id) or report.id
        if report.state != "completed" and report.replaced_by is None and named_as not in named:
            yield f"{report.id} is {report.state} and no gap"


def _too_many_subtasks(ending: Ending, result: RunResult) -> Iterator[str]:
    """Yields a sentence if the plans of all levels named more subtasks than the run may have."""
    most = ending.case.request["max_subtasks"]
    named = sum(report.template is None for report in result.subtasks)
    below = sum(report.nested.named for report in result.subtasks if report.nested)
    if named + below > most:
        yield f"its plans name {named} subtasks, and those below {below}: {most} are allowed"


def _wrong_queries(ending: Ending, result: RunResult) -> Iterator[str]:
    shown, status = ending.shown, ending.status
    assert shown is not None
    assert status is not None
    for path, seen, returned in _differences("", _timeless(shown), _timeless(result)):
        yield f"the query shows {path} as {seen}, {returned} was returned"
    if status.phase != PHASES[ending.kind]:
        yield f"it {ending.kind} and shows the phase {status.phase}"
    if status.usage != result.usage:
        yield "status shows another usage than the result"
    states: dict[str, str] = {report.id: report.state for report in result.subtasks}
    if {report.id: report.state for report in status.subtasks} != states:
        yield "status shows other states than the result"
    states = {report.id: report.state for report in result.subtasks if report.counts is None}
    counts = status.counts.model_dump()
    for state in FINAL | {"running", "waiting"}:
        if counts[state] != list(states.values()).count(state):
            yield f"status counts {counts[state]} {state} subtasks"
    if status.waiting or any(dict(status.flags).values()):
        yield f"it waits after its end: {status.flags}, {status.waiting}"


def _timeless(result: RunResult) -> dict[str, Any]:
    """Returns a result without its times: in a replay a task without commands has the time of the one after it."""
    times = {"started_at": None, "finished_at": None, "held_seconds": 0.0}
    subtasks = [report.model_copy(update=times) for report in result.subtasks]
    return result.model_copy(update={"timing": Timing(), "subtasks": subtasks}).model_dump(mode="json")


def _differences(path: str, seen: Any, returned: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(seen, dict) and isinstance(returned, dict) and seen.keys() == returned.keys():
        for name in seen:
            yield from _differences(f"{path}.{name}", seen[name], returned[name])
    elif isinstance(seen, list) and isinstance(returned, list) and len(seen) == len(returned):
        for number, (one, other) in enumerate(zip(seen, returned, strict=True)):
            yield from _differences(f"{path}[{number}]", one, other)
    elif seen != returned:
        yield path, seen, returned


# --- findings -------------------------------------------------------------------------------------------


def _lost_findings(run_id: str, result: RunResult, root: Record) -> Iterator[str]:
    """What a child returned after the run had given up on it comes too late."""
    reports = {report.id: report for report in result.subtasks}
    for child in root.children.values():
        subtask_id = child.workflow_id.removeprefix(f"{run_id}/").split("/")[0]
        report = reports.get(subtask_id)
        if report is None:
            yield f"{subtask_id} was worked on and is not in the result"
        elif child.value.get("finding") and report.finding is None:
            if (late := root.given_up.get(child.run_id)) and child.ended > late.seen:
                continue
            yield f"the finding of {child.workflow_id} is lost: {report.state}, {report.error}"
    for report in result.subtasks:
        if report.finding is not None and not _is_own(report):
            yield f"{report.id} has a finding of another one: {report.finding.summary[:60]}"


def _is_own(report: SubtaskReport) -> bool:
    words = report.finding.summary if report.finding else ""
    return not words.startswith("finding of") or f"finding of {report.id}/" in words


# --- money ----------------------------------------------------------------------------------------------


def _wrong_spending(ending: Ending, result: RunResult, records: dict[str, Record], abandoned: int) -> Iterator[str]:
    """Compares what the run says with the model's ledger; what is missing was in flight when something ended it.

    Or it was `abandoned` at a reset.
    """
    ledger = zip(ending.served, ending.calls(), strict=False)
    answered = [served for served, call in ledger if served.tokens and call.answered_at]
    paid, spent = sum(served.tokens for served in answered), result.usage.tokens
    in_books = [call for record in records.values() for call in record.booked()]
    history = sum(call.tokens for call in in_books)
    if not history <= spent <= paid:
        yield f"spent {spent} tokens, its histories have {history}, the model was paid {paid}"
    calls, booked = len(answered), sum(call.calls for call in in_books)
    unbooked = calls - result.usage.model_calls
    repeated = calls - len({served.step.call for served in answered}) if ending.restarted else 0
    in_flight = sum(len(record.model_calls) - len(record.booked()) for record in records.values())
    in_flight += repeated + abandoned
    if not booked <= result.usage.model_calls <= calls or unbooked > in_flight:
        yield (
            f"{result.usage.model_calls} calls are booked, the histories have {booked}, the model answered {calls}, "
            f"{in_flight} were in flight at an end, or abandoned at a reset"
        )
    if ending.error != "BudgetExhausted" and sum((report.usage.tokens for report in result.subtasks), start=0) > spent:
        yield "the subtasks consumed more than the run"


def _late_calls(ending: Ending, records: dict[str, Record], before: dict[str, Record]) -> Iterator[str]:
    """Returns calls that began after the end of their workflow, or of one above it.

    But for those on their way: a Worker had them, and hears later. Whom a reset left behind nobody stops.
    """
    ends = {record.workflow_id: record.closed_at for record in records.values()}
    for record in [*records.values(), *before.values()]:
        if record.workflow_id in ends:
            ends[record.workflow_id] = max(ends[record.workflow_id], record.closed_at)
    late, in_time = Counter[str](), set[str]()
    for call in ending.calls():
        names = call.step.call.split("/")
        above = [ends[path] for n in range(1, len(names)) if (path := "/".join(names[:n])) in ends]
        left_behind = ending.was_reset and call.step.call.rpartition("/")[0] not in ends
        since_end = call.at - min(above)
        if since_end > ON_ITS_WAY and not left_behind:
            late[call.step.call] += 1
        elif since_end <= 0 or left_behind:
            in_time.add(call.step.call)
    for name, times in late.items():
        if times > 1 or name in in_time:
            yield f"{name} was tried again after the end"


def _said_twice(ending: Ending) -> Iterator[str]:
    """Returns requests that have a person's word more than once."""
    for served in ending.served:
        words = Counter(re.findall(f"{WORD}[0-9a-f]+", json.dumps(served.step.body)))
        if words.total() > len(words):
            yield f"{served.step.call} has a word twice: {words}"


# --- what people decided -----------------------------------------------------------------------------------


def _misapplied(ending: Ending, result: RunResult) -> Iterator[str]:
    """Returns decisions that were applied to anything else than what was shown with their hash."""
    sent = defaultdict[str, set[tuple[str, str]]](set)
    for served in ending.served:
        if served.step.kind == "turn":
            workflow_id = served.step.call.rpartition("/")[0]
            for call, output in _answered_calls(served.step.body["messages"]):
                yield from _wrong_replies(ending, workflow_id, call, output)
                text = str(call["input"].get("text", ""))  # names the call that asked for it
                is_own = text.startswith(f"{workflow_id}/")  # a review goes on with the conversation of another attempt
                if call["name"] == "send" and is_own and output in ("sent", "noted"):
                    sent[text].add((workflow_id, str(served.step.body["model"])))
    for text, places in sent.items():
        approved = [sha256 for sha256 in ending.approved if ending.shown_waits[sha256].prompt_preview == f"send {text}"]
        if len(places) > len(approved):
            yield f"{text} was sent in {sorted(places)} with {len(approved)} approvals of it"
    for report in result.subtasks:
        for sha256 in _SEEN.findall(report.finding.summary if report.finding else ""):
            wait = ending.shown_waits.get(sha256)
            if wait is not None and wait.kind == "finding" and wait.subtask_id != report.id:
                yield f"{report.id} has the finding that was given for {wait}"


def _wrong_replies(ending: Ending, workflow_id: str, call: dict[str, Any], output: str) -> Iterator[str]:
    if call["name"] != "ask_person":
        return
    asks = str(call["input"]["question"])  # names the call that asked, as a review goes on with its conversation
    for sha256 in _SEEN.findall(output):
        wait = ending.shown_waits.get(sha256)
        if wait is None or wait.prompt_preview != asks:
            yield f"a reply to {wait} went to the question {asks} of {workflow_id}"


def _wrong_plans(ending: Ending) -> Iterator[str]:
    """Returns worker agents that work on what no approved plan says, where people approve plans.

    A later revision needs no approval if it has no new role. What was shown and not approved never runs.
    """
    if not ending.case.request.get("approve_plan"):
        return
    approved = [plan for sha256, plan in ending.shown_plans.items() if sha256 in ending.approved]
    approved += ending.edited.values()
    said = {subtask.description for plan in approved for subtask in plan.subtasks}
    others = {subtask.description for plan in ending.shown_plans.values() for subtask in plan.subtasks} - said
    roles = {subtask.role for plan in approved for subtask in plan.subtasks}
    for served in ending.served:
        names = served.step.call.removeprefix(f"{ending.run_id}/").split("/")
        if served.step.kind != "turn" or len(names) != 3:  # one of a nested run works on a plan of that run
            continue
        for described in _DESCRIBED.findall(json.dumps(served.step.body["messages"][0])):
            is_new = described not in said and not described.startswith("Find it out in another way")
            role = names[0].partition(".")[0].rpartition("-")[2]
            if is_new and (described in others or role not in roles | {names[0].partition(".")[0]}):
                yield f"{served.step.call} works on '{described}', which nobody approved"
            elif is_new and f"{AS_OF} plan.1." in described:
                yield f"{served.step.call} works on the first plan, '{described}', which nobody approved"


_DESCRIBED = re.compile(r"<subtask>\\n(.*?)\\n</subtask>")
_SEEN = re.compile("by a person who saw ([0-9a-f]{64})")


def _answered_calls(messages: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the tool calls of a conversation with their outputs."""
    calls: dict[str, dict[str, Any]] = {}
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("type") == "tool_use":
                calls[block["id"]] = block
            elif block.get("type") == "tool_result" and block["tool_use_id"] in calls:
                content = block.get("content", "")
                text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
                yield calls[block["tool_use_id"]], text


# --- children ---------------------------------------------------------------------------------------------


async def _open_children(client: Client, record: Record, *, was_reset: bool) -> AsyncIterator[str]:
    """The server ends those that a run started; one from before a reset was asked to stop, and will."""
    for child in record.children.values():
        if not child.run_id or child.ended:
            continue
        handle = client.get_workflow_handle(child.workflow_id, run_id=child.run_id)

        async def is_closed(handle: WorkflowHandle[Any, Any] = handle) -> bool:
            return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

        try:
            if not await is_closed():
                await until(is_closed, STOPPED_IN if was_reset else 0)
        except TimeoutError:
            yield f"{child.workflow_id} runs after the end"


# --- calls that were stored are never sent again, through kills, waits and resets --------------------


def abandoned_calls(last: Record, before: dict[str, Record]) -> int:
    """Returns how many model calls of the executions `before` a reset may have left in no book: at most all of them."""
    return sum(len(record.model_calls) for record in before.values() if record.workflow_id != last.workflow_id) + sum(
        not _is_copied(number, record, last)
        for record in before.values()
        for number in record.model_calls
        if record.workflow_id == last.workflow_id
    )


def _is_copied(number: int, record: Record, last: Record) -> bool:
    call, copy = record.model_calls[number], last.model_calls.get(number)
    return copy is not None and call.done_at is not None and copy.done_at == call.done_at


async def paid_again(ending: Ending, store: ArtifactStore) -> list[str]:
    """Returns the calls that were answered once more after the answer to the same question had been stored."""
    stored = await _stored_at(ending.run_id, store)
    return list(_paid_again(ending, stored))


async def _stored_at(run_id: str, store: ArtifactStore) -> dict[str, list[float]]:
    """Returns when the answers to each step of each workflow of a run were stored, in order."""
    stored = defaultdict[str, list[float]](list)
    for key in await store.list_keys(run_prefix(run_id)):
        if key.count("/") == 4:
            _, _, workflow_id, step, _ = key.split("/")
            at = json.loads((await store.get(key)).decode("utf-8", "surrogatepass"))["at"]
            stored[f"{unquote(workflow_id)}/{unquote(step)}"].append(datetime.fromisoformat(at).timestamp())
    return stored


def _paid_again(ending: Ending, stored: dict[str, list[float]]) -> Iterator[str]:
    """Two calls of a step with the same prompt ask the same; a call with an answer of its own has another question."""
    asked = defaultdict[tuple[str, str], list[tuple[float, float]]](list)
    for served, call in zip(ending.served, ending.calls(), strict=False):
        if served.tokens and call.answered_at:
            asked[call.step.call, call.step.prompt].append((call.at, call.answered_at))
    for (name, _), calls in asked.items():
        if len(calls) > len(stored[name]) > 0:
            for at, _ in calls[1:]:
                if any(when < at for when in stored[name]):
                    yield f"{name} was paid again {at - min(stored[name]):.2f} s after its answer was stored"
