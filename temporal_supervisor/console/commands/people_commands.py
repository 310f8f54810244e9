"""The commands by which people decide about a run or change it."""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text
from temporalio.client import WorkflowFailureError

from activities.contracts.eval_contracts import EVAL_TYPE
from temporal_supervisor.client import Item, inbox
from temporal_supervisor.console.base.command import (
    BAD_INPUT,
    DONE,
    FAILED,
    Access,
    CommandFailed,
    hint,
    user_name,
)
from temporal_supervisor.console.base.terminal import (
    Report,
    ScreenRow,
    TextTable,
    counted,
    duration,
    print_err,
    safe_line,
)
from temporal_supervisor.console.run.command_line import RunId
from temporal_supervisor.console.run.found_runs import find_run, short_id
from temporal_supervisor.console.run.request_options import parsed_plan, read_text_file, seconds
from temporal_supervisor.console.run.standstill import ways_to_decide
from temporal_supervisor.console.view.whole_item import WholeItem, whole_item
from temporal_supervisor.messages import NO_WORKER
from temporal_supervisor.outcomes import is_open, state_word
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.status import Wait
from temporal_supervisor.supervision.contract.updates import (
    ExtendLimits,
    Pause,
    Resume,
    RetrySubtask,
    SkipSubtask,
    Steer,
    Update,
)
from temporal_supervisor.supervision.run.waits import AWAITED

Words = Annotated[
    list[str], typer.Argument(metavar="[RUN_ID] ID", help="an id as `inbox` lists it")
]
Many = Annotated[
    list[str], typer.Argument(metavar="[RUN_ID] ID...", help="ids as `inbox` lists them")
]
Seen = Annotated[
    str | None, typer.Option("--sha256", help="what `show` printed: nothing else is decided about")
]
By = Annotated[
    str, typer.Option(help="who says so", default_factory=user_name, show_default="the user")
]
Why = Annotated[str | None, typer.Option(help="a comment")]
SubtaskPath = Annotated[
    str, typer.Argument(metavar="SUBTASK", help="such as t3, or t3/t2 below a team")
]
# A cancelled run closes in under a second, after a Worker restart in some.
_CANCEL_WAIT = timedelta(seconds=20)


async def cancel(run: RunId) -> int:
    """Cancel a run, or an eval with its runs; the partial result is kept."""
    said, code = await cancel_run(run)
    print_err(said)
    return code


async def cancel_run(run: Run) -> tuple[str, int]:
    """Cancels a run or an eval, and returns a message and the exit code."""
    described = await run.describe()
    is_eval = described.workflow_type == EVAL_TYPE
    if not is_eval:
        described = await run.require()
    if is_open(described):
        await run.cancel()
        with contextlib.suppress(TimeoutError, WorkflowFailureError):
            async with asyncio.timeout(_CANCEL_WAIT.total_seconds()):
                await run.handle.result()

    after = await run.describe()
    if is_open(after):
        return f"run '{run.id}' will be cancelled as soon as a worker takes it up", DONE
    state = state_word(after)
    code = DONE if state == "cancelled" else FAILED
    if is_eval:
        return f"eval '{run.id}' is {state}; its result: {hint('eval', run.id)}", code
    return f"run '{run.id}' is {state}; its result: {hint('result', short_id(run.id))}", code


async def extend(
    run: RunId,
    deadline: Annotated[
        str | None, typer.Option(help="such as 2h, counted from the run's start")
    ] = None,
    budget_tokens: Annotated[int | None, typer.Option(help="the new total")] = None,
    budget_usd: Annotated[float | None, typer.Option(help="the new total")] = None,
) -> Report:
    """Give a run new limits: totals, not additions. A limit that is not given stays as it is."""
    totals = {"tokens": budget_tokens, "usd": budget_usd}
    budget = {unit: total for unit, total in totals.items() if total is not None}
    if not budget and not deadline:
        options = "--deadline, --budget-tokens or --budget-usd"
        raise CommandFailed(BAD_INPUT, f"nothing to extend: give {options}")
    until = deadline and seconds(deadline)
    return await send_update(run, ExtendLimits, deadline=until, budget=budget or None)


async def pause(
    run: RunId,
    by: By,
    now: Annotated[
        bool, typer.Option("--now", help="in the middle of turns, which may be paid again")
    ] = False,
    why: Why = None,
) -> Report:
    """Pause a run: worker agents stop after their turn, and nothing more begins."""
    return await send_update(run, Pause, now=now, by=by, comment=why)


async def steer(
    run: RunId,
    text: Annotated[str, typer.Argument(help="what worker agents are to know or do")],
    by: By,
    to: Annotated[str, typer.Option(help="one subtask, such as t3 or t3/t2; all without")] = "*",
) -> Report:
    """Say a word to worker agents at work; one to all is in the later prompts of the run, too."""
    return await send_update(run, Steer, to, text=text, by=by)


async def retry(
    run: RunId,
    subtask: SubtaskPath,
    by: By,
    instruction: Annotated[str | None, typer.Option(help="what should be different")] = None,
) -> Report:
    """Have a subtask that has ended worked on again."""
    return await send_update(run, RetrySubtask, subtask, instruction=instruction, by=by)


async def skip(run: RunId, subtask: SubtaskPath, by: By, why: Why = None) -> Report:
    """End a subtask with what it has; the run goes on without the rest."""
    return await send_update(run, SkipSubtask, subtask, by=by, comment=why)


async def resume(run: RunId, by: By) -> Report:
    """Continue a paused run, or one that waits for its provider, once key or account are fixed."""
    return await send_update(run, Resume, by=by)


async def send_update(run: Run, kind: type[Update], subtask: str = "*", **fields: object) -> Report:
    """Sends an update to a run, or to the run with the subtask path, and returns its reply."""
    if subtask != "*":
        run, fields["to" if kind is Steer else "subtask_id"] = await run.level(subtask)
    await require_open(run)
    message = (await run.send(kind, **fields)).message
    return Report({"run_id": run.id, "message": message}, [f"run '{run.id}': {message}"])


async def require_open(run: Run) -> None:
    """Raises CommandFailed if the run has ended."""
    described = await run.require()
    if is_open(described):
        return
    another = f"start another one with {hint('run', 'GOAL')}"
    helps = f"{another}, or go back in this one with `temporal workflow reset`"
    ended = f"run '{run.id}' has ended ({state_word(described)})"
    raise CommandFailed(FAILED, f"{ended}, so it can't be changed: {helps}")


_NAME_WORDS = 2  # at most, to name one wait: RUN_ID ID
_HOW = "show ID · approve ID · deny ID --why TEXT · reply ID TEXT"


async def inbox_report(
    access: Access,
    owner: Annotated[str | None, typer.Option(help="only in runs of this owner")] = None,
) -> Report:
    """List what waits for a person, in all open runs."""
    client = await access.client()
    found = await inbox(client, owner)
    data = []
    for item in found.items:
        wait = item.wait.model_dump(mode="json")
        data.append({"run_id": item.run_id, "goal": item.goal, **wait})
    notes = []
    for run_id in found.unanswered:
        notes.append(f"run '{run_id}' does not say what waits in it: {NO_WORKER}")
    if not found.items:
        whose = f" in runs of '{owner}'" if owner else ""
        notes.append(f"nothing waits for a person{whose}")
    return Report(data, _inbox_rows(found.items), notes)


def _inbox_rows(items: Sequence[Item]) -> list[ScreenRow | Text]:
    """Returns the table of waits, and the commands that decide them."""
    if not items:
        return []
    cells = []
    for item in items:
        wait = item.wait
        asked = f"{wait.kind}: {wait.prompt_preview}"
        since, until = _day(wait.since), _time_left(wait.expires_at)
        cells.append([since, short_id(item.run_id), wait.id, asked, until])
    names = ["since", "run", "id", "what is asked", "until"]
    return [TextTable(names, cells, wide="what is asked"), Text(_HOW, style="dim")]


async def show_report(access: Access, words: Words) -> Report:
    """Show all of what is asked: a plan, a tool call, a question."""
    return await item_report(access, await _find_wait(access, words))


async def item_report(access: Access, item: Item, *, commands: bool = True) -> Report:
    """Returns a wait with its whole content and the commands that decide it."""
    whole = await whole_item(access, item)
    data = {
        "run_id": item.run_id,
        "goal": item.goal,
        **whole.asked.model_dump(mode="json"),
        "content": whole.content,
    }
    if whole.findings:
        data["findings"] = whole.findings
    return Report(data, list(_item_rows(whole, commands=commands)))


def _item_rows(whole: WholeItem, *, commands: bool) -> Iterator[RenderableType]:
    """Yields the head of a wait, its content, and the choices."""
    run_id, wait = whole.item.run_id, whole.asked.wait
    yield f"{AWAITED[wait.kind]}: {short_id(run_id)} {wait.id}"
    yield f"run {run_id}: {whole.item.goal}"
    until = f", until {_time_left(wait.expires_at)}" if wait.expires_at else ""
    yield f"asked by {whole.asker} since {_day(wait.since)}{until}"

    if wait.kind == "tool":
        name = safe_line(wait.prompt_preview.partition(" ")[0], limits.LINE_BYTES)
        yield Text(f"tool: {name}", style="bold")
    if wait.after:
        yield Text(f"! {safe_line(wait.after, limits.PARAGRAPH_BYTES)}", style="yellow")
    if wait.arguments_sha256:
        yield f"SHA-256 of the arguments: {wait.arguments_sha256}"
    if commands:
        yield f"SHA-256 of all that is shown, and of where it came from: {wait.sha256}"

    yield ""
    if whole.plan is not None:
        yield from whole.plan.rows()
    else:
        yield Text(whole.text)
        yield from (Text(f"! {note}", style="yellow") for note in whole.notes)
    yield ""

    if wait.choices and wait.kind == "question":
        yield "choices: " + " | ".join(wait.choices)
    if commands:
        yield from way_rows(run_id, wait)


def way_rows(run_id: str, wait: Wait) -> list[Text]:
    """Returns a row for each command that decides a wait."""
    ways = ways_to_decide(run_id, wait)
    return [Text(f"{choice}: {command}") for choice, command in ways.items()]


async def decision_report(
    access: Access,
    words: Sequence[str],
    word: str,
    text: str | None,
    by: str,
    *,
    plan: Path | None = None,
    seen: str | None = None,
) -> Report:
    """Decides about the wait that `words` name, and returns the run's reply.

    `plan` is the file of another plan. The decision holds for the content that waits now; `seen` is
    the beginning of its hash, if known.
    """
    item = await _find_wait(access, words)
    wait = item.wait
    if seen is not None and not (seen and wait.sha256.startswith(seen)):
        look = hint("show", short_id(item.run_id), wait.id)
        changed = f"'{wait.id}' shows something else now, with the hash {wait.sha256}"
        raise CommandFailed(FAILED, f"{changed}: {look}")

    run = Run(await access.client(), item.run_id)
    edited = parsed_plan(read_text_file(plan), str(plan)) if plan else None
    answer = await run.decide(wait, word, text, plan=edited, by=by)
    data = {"run_id": run.id, "id": wait.id, "message": answer.message}
    return Report(data, [decision_sentence(run.id, wait.id, answer.message)])


_DONE_WORDS = {
    "approve": "approved",
    "deny": "denied",
    "reject": "rejected",
    "reply": "replied to",
    "change": "asked for changes of",
}


def decision_sentence(run_id: str, wait_id: str, message: str) -> str:
    """Returns the outcome of a decision in a sentence; other messages stay as they are."""
    _, _, choice = message.partition(f"{wait_id}: ")
    done = _DONE_WORDS.get(choice)
    if done is None:
        return f"run {short_id(run_id)}: {message}"
    return f"{done} {wait_id} of run {short_id(run_id)}"


async def approve(
    access: Access,
    words: Many,
    by: By,
    plan: Annotated[
        Path | None, typer.Option(help="with this plan in place of the one that waits")
    ] = None,
    sha256: Seen = None,
) -> Report:
    """Approve a plan or a tool call, or many: RUN_ID ID ID..."""
    if len(words) > _NAME_WORDS and plan is None and sha256 is None:
        return await _many_report(access, words, "approve", None, by)
    return await decision_report(access, words, "approve", None, by, plan=plan, seen=sha256)


async def deny(access: Access, words: Many, by: By, why: Why = None, sha256: Seen = None) -> Report:
    """Deny a tool call, with a word to the model, or reject a plan; many calls: RUN_ID ID ID..."""
    if len(words) > _NAME_WORDS and sha256 is None:
        return await _many_report(access, words, "deny", why, by)
    return await decision_report(access, words, "deny", why, by, seen=sha256)


async def _many_report(
    access: Access,
    words: Sequence[str],
    word: str,
    text: str | None,
    by: str,
) -> Report:
    """Makes one decision about many waits of a run, and returns the replies."""
    run_word, *wait_ids = words
    client = await access.client()
    run = Run(client, await find_run(client, run_word))
    await require_open(run)

    here = {item.wait.id: item.wait for item in await run.waiting()}
    unknown = [wait_id for wait_id in wait_ids if wait_id not in here]
    if unknown:
        raise CommandFailed(FAILED, _nothing_waits(unknown[0], here))
    waits = [here[wait_id] for wait_id in dict.fromkeys(wait_ids)]
    replies = await run.decide_all(waits, word, text, by=by)

    data = {"run_id": run.id, "decisions": [reply.model_dump() for reply in replies]}
    lines = [decision_sentence(run.id, reply.id, reply.message) for reply in replies]
    code = DONE if all(reply.accepted for reply in replies) else FAILED
    return Report(data, lines, code=code)


async def reply_report(
    access: Access,
    words: Annotated[
        list[str],
        typer.Argument(metavar="[RUN_ID] ID TEXT", help="an id as `inbox` lists it, a text"),
    ],
    by: By,
    file: Annotated[Path | None, typer.Option(help="the text, in place of TEXT")] = None,
    sha256: Seen = None,
) -> Report:
    """Reply to a question, hand in a person's finding, or say what should change in a plan."""
    if file is None and len(words) < 2:
        helps = f"give the text in quotes, or --file F, as in {hint('reply', 'ID', 'TEXT')}"
        raise CommandFailed(BAD_INPUT, f"no reply: {helps}")
    if file is not None:
        text = read_text_file(file).decode("utf-8-sig")
    else:
        *words, text = words
    return await decision_report(access, words, "reply", text, by, seen=sha256)


async def _find_wait(access: Access, words: Sequence[str]) -> Item:
    """Returns the wait that `ID` or `RUN ID` names.

    Raises CommandFailed with the current waits if there is none.
    """
    client = await access.client()
    if not 1 <= len(words) <= _NAME_WORDS:
        names = "name one thing that waits, as ID or RUN ID"
        raise CommandFailed(BAD_INPUT, f"{names}: {hint('inbox')} lists them")

    *run_words, wait_id = words
    if run_words:
        run = Run(client, await find_run(client, run_words[0]))
        await require_open(run)
        here = await run.waiting()
    else:
        here = (await inbox(client)).items

    items = [item for item in here if item.wait.id == wait_id] or _only_wait_of(wait_id, here)
    if not items:
        ids = dict.fromkeys(item.wait.id for item in here)
        raise CommandFailed(FAILED, _nothing_waits(wait_id, ids))
    if len(items) > 1:
        runs = ", ".join(short_id(item.run_id) for item in items)
        first = hint("show", short_id(items[0].run_id), wait_id)
        several = f"'{wait_id}' waits in several runs ({runs})"
        raise CommandFailed(BAD_INPUT, f"{several}: name the run, too, as in {first}")
    return items[0]


def _only_wait_of(subtask: str, here: Sequence[Item]) -> list[Item]:
    """Returns the wait of a subtask by its path alone, if it has just one."""
    found = [item for item in here if item.wait.subtask_id == subtask]
    return found if len(found) == 1 else []


def _nothing_waits(wait_id: str, ids: Iterable[str]) -> str:
    """Returns the error for an unknown id, with the ids of what waits."""
    known = ", ".join(ids)
    if not known:
        nothing = "nothing waits for a person, as far as Workers say"
        return f"{nothing}: {hint('inbox')} shows what does"
    return f"nothing with the id '{wait_id}' waits for a person; what does: {known}"


def _day(at: str) -> str:
    return f"{datetime.fromisoformat(at).astimezone():%d %b %H:%M}"


def _time_left(at: str | None) -> str:
    """Returns a time, with the days or hours until then."""
    if at is None:
        return ""
    left = datetime.fromisoformat(at) - datetime.now(UTC)
    shown = duration(left.total_seconds())
    if left >= timedelta(days=1):
        shown = counted(round(left / timedelta(days=1)), "day")
    return f"{_day(at)} ({shown} left)"
