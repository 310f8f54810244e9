"""The commands that change a run while it goes on: new limits, an end to its wait for the provider."""

import secrets
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from console.command_errors import BAD_INPUT, DONE, FAILED, UNREACHABLE, CommandFailed
from console.run.run_handle import NoAnswer, Run, is_open, state_word, stuck
from console.terminal import tell
from supervision.contract.request import describe_errors
from supervision.contract.updates import ExtendLimits, Resume


async def extend(run: Run, deadline: str | None, tokens: int | None, usd: float | None) -> int:
    """Sets new totals; a limit that is None stays. CommandFailed when they can't be, or the run has ended."""
    if deadline is None and tokens is None and usd is None:
        raise CommandFailed(BAD_INPUT, "nothing to change: give --deadline, --tokens or --usd")
    await _require_open(run)
    try:
        now = (await run.status()).limits
        asked: dict[str, Any] = {} if deadline is None else {"deadline": deadline}
        if tokens is not None or usd is not None:
            asked["budget"] = {
                "tokens": now.budget_tokens if tokens is None else tokens,
                "usd": now.budget_usd if usd is None else usd,
            }
        reply = await run.update("extend_limits", ExtendLimits.model_validate(asked))
        ends = datetime.fromisoformat((await run.status()).deadline_at).astimezone(UTC)
    except ValidationError as error:
        raise CommandFailed(BAD_INPUT, describe_errors(error, root="limits")) from error
    except NoAnswer as error:
        raise await _unanswered(run) from error
    tell(f"{reply.message}; deadline {ends:%Y-%m-%d %H:%M:%S} UTC")
    return DONE


async def resume(run: Run) -> int:
    """Ends a run's wait for the provider; CommandFailed when the run has ended."""
    await _require_open(run)
    try:
        waits = [wait.id for wait in (await run.status()).waiting if wait.kind == "resume"]
        await run.update("resume", Resume(request_id=secrets.token_hex(8)))
    except NoAnswer as error:
        raise await _unanswered(run) from error
    tell(f"run '{run.id}' goes on: {', '.join(waits)}" if waits else f"run '{run.id}' did not wait for the provider")
    return DONE


async def _require_open(run: Run) -> None:
    described = await run.require()
    if not is_open(described):
        raise CommandFailed(FAILED, f"run '{run.id}' has ended ({state_word(described)}): nothing to change")


async def _unanswered(run: Run) -> CommandFailed:
    why = stuck(await run.describe()) or "no worker answers: start one and say it again"
    return CommandFailed(UNREACHABLE, f"run '{run.id}' can't be changed now: {why}")
