"""The adapter from a command's function to typer, with access and an exit code."""

import inspect
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, NoReturn, get_args

import typer
from typer.core import TyperGroup

from temporal_supervisor.console.base.command import access, perform
from temporal_supervisor.console.base.terminal import Report
from temporal_supervisor.console.run.found_runs import find_run
from temporal_supervisor.console.run.standstill import explain_silence
from temporal_supervisor.messages import NoAnswer
from temporal_supervisor.runs import Run

_WORDS = "its id as `run` and `list` print it, or the beginning of one"
_ONE = typer.Argument(metavar="RUN_ID", help=_WORDS)
_ANY = typer.Argument(metavar="RUN_ID", help=f"{_WORDS}; the newest run without")
RunId = Annotated[Run, _ONE]
AnyRun = Annotated[Run, _ANY]
AnyId = Annotated[str | None, _ANY]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on standard output, nothing else there")]
_PREFIX = "Value error, "  # of the library that typer checks values with


class Commands(TyperGroup):
    """All commands; errors in values are reported by their own message alone."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the named command."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as wrong:
            wrong.message = wrong.message.removeprefix(_PREFIX)
            raise


def command(work: Callable[..., Coroutine[Any, Any, Report | int]]) -> Callable[..., NoReturn]:
    """Returns a function for typer that does the work, prints its report and exits.

    Its parameter `run` is given as an id, and `access` comes from the global options. Work with a
    report has the option `--json`.
    """
    signature = inspect.signature(work)
    takes = signature.parameters

    def done(**given: Any) -> NoReturn:
        as_json = given.get("as_json", False)
        if "as_json" not in takes:
            given.pop("as_json", None)
        if "access" in takes:
            given["access"] = access

        async def answered() -> Report | int:
            try:
                if "run" in takes:
                    client = await access.client()
                    given["run"] = Run(client, await find_run(client, given.pop("run_id")))
                return await work(**given)
            except NoAnswer as error:
                raise await explain_silence(await access.client(), error) from error

        raise typer.Exit(perform(access, answered, as_json=as_json))

    done.__doc__ = work.__doc__
    done.__signature__ = _shown_signature(signature)  # type: ignore[attr-defined]
    return done


def _shown_signature(signature: inspect.Signature) -> inspect.Signature:
    """Returns the parameters that typer makes arguments and options of."""
    shown = dict(signature.parameters)
    shown.pop("access", None)
    run = shown.get("run")
    if run is not None and run.annotation == AnyRun:
        shown["run"] = run.replace(name="run_id", annotation=AnyId, default=None)
    elif run is not None:
        shown["run"] = run.replace(name="run_id", annotation=Annotated[str, _ONE])

    returned = signature.return_annotation
    if Report in (returned, *get_args(returned)):
        as_json = inspect.Parameter(
            "as_json",
            inspect.Parameter.KEYWORD_ONLY,
            default=False,
            annotation=AsJson,
        )
        shown.setdefault("as_json", as_json)
    return signature.replace(parameters=[*shown.values()])
