"""The commands that change a run while it runs: `cancel`, `extend`, `pause`, `resume`, `steer`, `retry` and `skip`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from temporalio.client import WorkflowFailureError

from console.base.command import BAD_INPUT, DONE, FAILED, CommandFailed
from console.base.hints import hint
from console.base.terminal import Report, print_err, print_out
from console.run.request_options import seconds
from console.run.run_handle import RunHandle, is_open, state_word
from supervision.base.text import did_you_mean
from supervision.contract.updates import ExtendLimits, Resume, Steer, Update, UpdateReply
from temporal_supervisor.people import UpdateRefused, send

_NAMED = 12  # subtasks, for one who named another
_CANCEL_WAIT = timedelta(seconds=20)  # a cancelled run closes in under a second, after a Worker restart in some


async def cancel(run: RunHandle) -> int:
    """Cancels a run and waits a moment for its end. Returns the exit code."""
    before = await run.require()
    reading = hint("result", run.id)
    if not is_open(before):
        print_err(f"run '{run.id}' has ended already ({state_word(before)}): read it with {reading}")
        return DONE if state_word(before) == "cancelled" else FAILED
    await run.handle.cancel()
    try:
        async with asyncio.timeout(_CANCEL_WAIT.total_seconds()):
            await run.handle.result()
    except TimeoutError:
        print_err(f"run '{run.id}' will be cancelled as soon as a worker takes it up")
        return DONE
    except WorkflowFailureError:
        pass
    after = state_word(await run.describe())
    print_err(f"run '{run.id}' is {after}; its partial result: {reading}")
    return DONE if after == "cancelled" else FAILED


async def extend(
    run: RunHandle, deadline: str | None, tokens: int | None, usd: float | None, unlimited: Sequence[str] = ()
) -> int:
    """Sets new totals; a limit that is None stays. Raises CommandFailed if nothing is given, or both of two."""
    budget: dict[str, object] = {name: new for name, new in (("tokens", tokens), ("usd", usd)) if new is not None}
    if both := [name for name in unlimited if name in budget]:
        raise CommandFailed(BAD_INPUT, f"give --budget-{both[0]} or --unlimited {both[0]}, not both")
    budget |= {"unlimited": unlimited} if unlimited else {}
    if deadline is None and not budget:
        options = "--deadline, --budget-tokens, --budget-usd or --unlimited"
        raise CommandFailed(BAD_INPUT, f"nothing to change: give {options}")
    fields = {"deadline": deadline and seconds(deadline), "budget": budget or None}
    reply = await told(run, partial(send, run.client, run.id, ExtendLimits, **fields))
    ends = datetime.fromisoformat((await run.status()).deadline_at).astimezone(UTC)
    print_out(f"{reply.message}; deadline {ends:%Y-%m-%d %H:%M:%S} UTC")
    return DONE


async def resume(run: RunHandle, by: str) -> Report:
    """Ends a pause, and a run's wait for the provider. Raises CommandFailed if the run has ended."""
    await require_open(run)
    status = await run.status()
    waits = [wait.subject for wait in status.waiting if wait.kind == "resume"]
    await told(run, partial(send, run.client, run.id, Resume, by=by))
    if not waits and not status.flags.paused:
        return _said(run, f"run '{run.id}' did not wait for the provider, and was not paused")
    return _said(run, f"run '{run.id}' continues" + (f": {', '.join(waits)}" if waits else ""))


async def tell(run: RunHandle, kind: type[Update], subtask: str = "*", **fields: object) -> Report:
    """Sends an update about a run, or about a `subtask` by its path, and returns what the run says to it."""
    if subtask != "*":
        run, fields["to" if kind is Steer else "subtask_id"] = await _level(run, subtask)
    reply = await told(run, partial(send, run.client, run.id, kind, **fields))
    return _said(run, f"run '{run.id}': {reply.message}")


def _said(run: RunHandle, message: str) -> Report:
    return Report({"run_id": run.id, "message": message}, lambda _: [message])


async def _level(run: RunHandle, path: str) -> tuple[RunHandle, str]:
    """Returns the run, or the one nested in it, that has the subtask at `path`, and the subtask's id there."""
    first, _, rest = path.partition("/")
    subtasks = (await run.whole_status()).subtasks
    report = next((report for report in subtasks if report.id == first), None)
    known = [report.id for report in subtasks]
    if report is None:
        there = f"{did_you_mean(first, known)}: {', '.join(known[:_NAMED])}" if known else ", nor any other yet"
        raise CommandFailed(BAD_INPUT, f"run '{run.id}' has no subtask '{first}'{there}")
    if not rest:
        return run, first
    if report.nested is None or report.workflow_id is None:
        raise CommandFailed(BAD_INPUT, f"subtask {first} of run '{run.id}' has no team below it: name it '{first}'")
    return await _level(RunHandle(run.client, report.workflow_id), rest)


async def told(run: RunHandle, update: Callable[[], Awaitable[UpdateReply]]) -> UpdateReply:
    """Sends an update. Raises CommandFailed if the run has ended or refuses it in its own words, and NoAnswer."""
    await require_open(run)
    try:
        return await update()
    except UpdateRefused as refused:
        raise CommandFailed(FAILED, f"run '{run.id}' refuses: {refused}") from refused


async def require_open(run: RunHandle) -> None:
    """Raises CommandFailed if the run has ended."""
    described = await run.require()
    if not is_open(described):
        raise CommandFailed(FAILED, f"run '{run.id}' has ended ({state_word(described)}): nothing to change")
