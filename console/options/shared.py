"""What all commands of the command line share: the access that global options give, their exit, their parameters."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, NoReturn

import typer

from console.command import Access, perform
from console.run.find_run import find_run
from console.run.run_handle import NoAnswer, RunHandle
from console.run.standstill import silence
from console.terminal import Report

access = Access()
Work = Coroutine[Any, Any, Report | int]


def do(work: Callable[[Access], Work], as_json: bool = False) -> NoReturn:
    """Does the work, shows its report and ends the command with its exit code."""

    async def answered() -> Report | int:
        try:
            return await work(access)
        except NoAnswer as error:
            raise await silence(RunHandle(await access.client(), error.run_id)) from error

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
