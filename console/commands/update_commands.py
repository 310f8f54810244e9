"""The commands that change a run while it runs: `cancel`, `extend` and `resume`."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue, ValidationError
from temporalio.client import WorkflowFailureError

from console.command import BAD_INPUT, DONE, FAILED, UNREACHABLE, CommandFailed
from console.hints import hint
from console.run.request_options import seconds
from console.run.run_handle import NoAnswer, RunHandle, is_open, state_word
from console.run.standstill import observed
from console.terminal import print_err, print_out
from supervision.base.text import did_you_mean
from supervision.contract.request import describe_errors
from supervision.contract.updates import ExtendLimits, Resume

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
    """Sets new totals; a limit that is None stays. Raises CommandFailed if the run refuses them or has ended."""
    fields = new_limits(deadline, {"tokens": tokens, "usd": usd}, unlimited)
    await _require_open(run)
    try:
        reply = await run.update("extend_limits", ExtendLimits.model_validate(fields))
        ends = datetime.fromisoformat((await run.status()).deadline_at).astimezone(UTC)
    except ValidationError as error:
        raise CommandFailed(BAD_INPUT, describe_errors(error, root="limits")) from error
    except NoAnswer as error:
        raise await _unanswered(run) from error
    print_out(f"{reply.message}; deadline {ends:%Y-%m-%d %H:%M:%S} UTC")
    return DONE


def new_limits(
    deadline: str | None, totals: Mapping[str, float | None], unlimited: Sequence[str]
) -> dict[str, JsonValue]:
    """Returns the argument of the update for what is given. Raises CommandFailed if that is nothing, or no limits."""
    given: dict[str, JsonValue] = {name: total for name, total in totals.items() if total is not None}
    for name in unlimited:
        if name not in totals:
            guess = did_you_mean(name, list(totals))
            raise CommandFailed(BAD_INPUT, f"--unlimited: there is no budget '{name}'{guess}: {', '.join(totals)}")
        if name in given:
            raise CommandFailed(BAD_INPUT, f"give --budget-{name} or --unlimited {name}, not both")
    if deadline is None and not given and not unlimited:
        options = ", ".join(f"--budget-{name}" for name in totals)
        raise CommandFailed(BAD_INPUT, f"nothing to change: give --deadline, {options} or --unlimited")
    budget: dict[str, JsonValue] = given | ({"unlimited": [*dict.fromkeys(unlimited)]} if unlimited else {})
    return ({} if deadline is None else {"deadline": seconds(deadline)}) | ({"budget": budget} if budget else {})


async def resume(run: RunHandle) -> int:
    """Ends a run's wait for the provider. Raises CommandFailed if the run has ended."""
    await _require_open(run)
    try:
        waits = [wait.subject for wait in (await run.status()).waiting if wait.kind == "resume"]
        await run.update("resume", Resume(request_id=secrets.token_hex(8)))
    except NoAnswer as error:
        raise await _unanswered(run) from error
    print_out(
        f"run '{run.id}' continues: {', '.join(waits)}" if waits else f"run '{run.id}' did not wait for the provider"
    )
    return DONE


async def _require_open(run: RunHandle) -> None:
    described = await run.require()
    if not is_open(described):
        raise CommandFailed(FAILED, f"run '{run.id}' has ended ({state_word(described)}): nothing to change")


async def _unanswered(run: RunHandle) -> CommandFailed:
    causes = await observed(run, await run.describe(), answered=False)
    unserved = [cause.line for cause in causes if cause.waits_for in ("code", "worker")]
    why = unserved[0] if unserved else "no worker answers: start one and try again"
    return CommandFailed(UNREACHABLE, f"run '{run.id}' can't be changed now: {why}")
