"""The commands that change a run while it goes on: `cancel`, `extend` and `resume`."""

import asyncio
import secrets
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from temporalio.client import WorkflowFailureError

from console import console_limits
from console.command import BAD_INPUT, DONE, FAILED, UNREACHABLE, CommandFailed
from console.hints import hint
from console.run.run_handle import NoAnswer, RunHandle, is_open, state_word, stuck
from console.terminal import print_err, print_out
from supervision.contract.request import describe_errors
from supervision.contract.updates import ExtendLimits, Resume


async def cancel(run: RunHandle) -> int:
    """Cancels a run and waits a moment for its end. Returns the exit code."""
    before = await run.require()
    reading = hint("result", run.id)
    if not is_open(before):
        print_err(f"run '{run.id}' has ended already ({state_word(before)}): read it with {reading}")
        return DONE if state_word(before) == "cancelled" else FAILED
    await run.handle.cancel()
    try:
        async with asyncio.timeout(console_limits.CANCEL_WAIT.total_seconds()):
            await run.handle.result()
    except TimeoutError:
        print_err(f"run '{run.id}' will be cancelled as soon as a worker takes it up")
        return DONE
    except WorkflowFailureError:
        pass
    after = state_word(await run.describe())
    print_err(f"run '{run.id}' is {after}; its partial result: {reading}")
    return DONE if after == "cancelled" else FAILED


async def extend(run: RunHandle, deadline: str | None, tokens: int | None, usd: float | None) -> int:
    """Sets new totals; a limit that is None stays. Raises CommandFailed if the run refuses them or has ended."""
    if deadline is None and tokens is None and usd is None:
        raise CommandFailed(BAD_INPUT, "nothing to change: give --deadline, --budget-tokens or --budget-usd")
    await _require_open(run)
    try:
        now = (await run.status()).limits
        fields: dict[str, Any] = {} if deadline is None else {"deadline": deadline}
        if tokens is not None or usd is not None:
            fields["budget"] = {
                "tokens": now.budget_tokens if tokens is None else tokens,
                "usd": now.budget_usd if usd is None else usd,
            }
        reply = await run.update("extend_limits", ExtendLimits.model_validate(fields))
        ends = datetime.fromisoformat((await run.status()).deadline_at).astimezone(UTC)
    except ValidationError as error:
        raise CommandFailed(BAD_INPUT, describe_errors(error, root="limits")) from error
    except NoAnswer as error:
        raise await _unanswered(run) from error
    print_out(f"{reply.message}; deadline {ends:%Y-%m-%d %H:%M:%S} UTC")
    return DONE


async def resume(run: RunHandle) -> int:
    """Ends a run's wait for the provider. Raises CommandFailed if the run has ended."""
    await _require_open(run)
    try:
        waits = [wait.id for wait in (await run.status()).waiting if wait.kind == "resume"]
        await run.update("resume", Resume(request_id=secrets.token_hex(8)))
    except NoAnswer as error:
        raise await _unanswered(run) from error
    print_out(
        f"run '{run.id}' goes on: {', '.join(waits)}" if waits else f"run '{run.id}' did not wait for the provider"
    )
    return DONE


async def _require_open(run: RunHandle) -> None:
    described = await run.require()
    if not is_open(described):
        raise CommandFailed(FAILED, f"run '{run.id}' has ended ({state_word(described)}): nothing to change")


async def _unanswered(run: RunHandle) -> CommandFailed:
    why = stuck(await run.describe()) or "no worker answers: start one and try again"
    return CommandFailed(UNREACHABLE, f"run '{run.id}' can't be changed now: {why}")
