"""What all commands share: access by the global options, their exit, their parameters; and the commands of people."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from console.base.command import Access, perform, user
from console.base.terminal import Report
from console.commands.people_commands import decision_report, inbox_report, reply_report, resume, show_report, tell
from console.run.run_handle import NoAnswer, RunHandle, find_run
from console.run.standstill import silence
from supervision.contract.updates import Pause, RetrySubtask, SkipSubtask, Steer

access = Access()
Work = Coroutine[Any, Any, Report | int]


def do(work: Callable[[Access], Work], as_json: bool = False) -> NoReturn:
    """Does the work, shows its report and ends the command with its exit code."""

    async def answered() -> Report | int:
        try:
            return await work(access)
        except NoAnswer as error:
            raise await silence(await access.client(), error) from error

    raise typer.Exit(perform(access, answered, as_json=as_json))


def with_run(run_id: str | None, work: Callable[[RunHandle, Access], Work], as_json: bool = False) -> NoReturn:
    """As `do`, for work on one run."""

    async def connected(access: Access) -> Report | int:
        client = await access.client()
        return await work(RunHandle(client, await find_run(client, run_id)), access)

    do(connected, as_json)


_ID = "its id as `run` and `list` print it, or the beginning of one"
RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help=_ID)]
AnyRun = Annotated[str | None, typer.Argument(metavar="RUN_ID", help=f"{_ID}; the newest run without")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on standard output, nothing else there")]

PEOPLE = "People decide"
people = typer.Typer()

Words = Annotated[list[str], typer.Argument(metavar="[RUN_ID] ID", help="an id as `inbox` lists it")]
By = Annotated[str, typer.Option(help="who says so", default_factory=user, show_default="the user")]
Why = Annotated[str | None, typer.Option(help="a comment")]


@people.command(rich_help_panel=PEOPLE)
def inbox(
    owner: Annotated[str | None, typer.Option(help="only in runs of this owner")] = None, as_json: AsJson = False
) -> None:
    """List what waits for a person, in all open runs."""
    do(lambda access: inbox_report(access, owner), as_json)


@people.command(rich_help_panel=PEOPLE)
def show(words: Words, as_json: AsJson = False) -> None:
    """Show all of what is asked: a plan, a tool call, a question."""
    do(lambda access: show_report(access, words), as_json)


@people.command(rich_help_panel=PEOPLE)
def approve(
    words: Words,
    by: By,
    plan: Annotated[Path | None, typer.Option(help="with this plan in place of the one that waits")] = None,
) -> None:
    """Approve a plan or a tool call."""
    do(lambda access: decision_report(access, words, "approve", None, by, plan=plan))


@people.command(rich_help_panel=PEOPLE)
def deny(words: Words, by: By, why: Why = None) -> None:
    """Deny a tool call, with a word to the model, or reject a plan."""
    do(lambda access: decision_report(access, words, "deny", why, by))


@people.command(rich_help_panel=PEOPLE)
def reply(
    words: Annotated[list[str], typer.Argument(metavar="[RUN_ID] ID TEXT", help="an id as `inbox` lists it, a text")],
    by: By,
    file: Annotated[Path | None, typer.Option(help="the text, in place of TEXT")] = None,
) -> None:
    """Reply to a question, hand in a person's finding, or say what should be different in a plan."""
    do(lambda access: reply_report(access, words, file, by))


@people.command(rich_help_panel=PEOPLE)
def pause(
    run_id: RunId,
    by: By,
    now: Annotated[bool, typer.Option("--now", help="in the middle of turns, which may be paid again")] = False,
    why: Why = None,
) -> None:
    """Pause a run: worker agents stop after their turn, and nothing more begins."""
    with_run(run_id, lambda run, _: tell(run, Pause, now=now, by=by, comment=why))


@people.command("resume", rich_help_panel=PEOPLE)
def resume_run(run_id: RunId, by: By) -> None:
    """Continue a paused run, or one that waits for the model provider, once key or account are fixed."""
    with_run(run_id, lambda run, _: resume(run, by))


@people.command(rich_help_panel=PEOPLE)
def steer(
    run_id: RunId,
    text: Annotated[str, typer.Argument(help="what worker agents are to know or do")],
    by: By,
    to: Annotated[str, typer.Option(help="one subtask, such as t3 or t3/t2; all without")] = "*",
) -> None:
    """Say a word to worker agents at work; with no --to to the later prompts of the run, too."""
    with_run(run_id, lambda run, _: tell(run, Steer, to, text=text, by=by))


SubtaskPath = Annotated[str, typer.Argument(metavar="SUBTASK", help="such as t3, or t3/t2 below a team")]


@people.command(rich_help_panel=PEOPLE)
def retry(
    run_id: RunId,
    subtask: SubtaskPath,
    by: By,
    instruction: Annotated[str | None, typer.Option(help="what should be different")] = None,
) -> None:
    """Have a subtask that has ended worked on again."""
    with_run(run_id, lambda run, _: tell(run, RetrySubtask, subtask, instruction=instruction, by=by))


@people.command(rich_help_panel=PEOPLE)
def skip(run_id: RunId, subtask: SubtaskPath, by: By, why: Why = None) -> None:
    """End a subtask with what it has; the run goes on without the rest."""
    with_run(run_id, lambda run, _: tell(run, SkipSubtask, subtask, by=by, comment=why))
