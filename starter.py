"""The command line: start runs, follow them, read them, look after the artifact store.

Exit codes: 0 done (a partial answer, too); 1 the run failed, does not exist or exists already;
2 bad input or usage; 3 no server, no worker or no artifact store; 4 the run was cancelled; 5 its
plan waits for approval; 130 detached by Ctrl-C (the run continues).
"""

from importlib import metadata
from pathlib import Path
from typing import Annotated

try:
    import typer
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"{missing}: run `make setup` once, then .venv/bin/temporal-supervisor"
    ) from None

from temporal_supervisor.console.base.command import Access, access
from temporal_supervisor.console.base.terminal import Report, print_out
from temporal_supervisor.console.commands import list_commands as lists
from temporal_supervisor.console.commands import people_commands as people
from temporal_supervisor.console.commands import report_commands as reports
from temporal_supervisor.console.commands import store_commands as stores
from temporal_supervisor.console.commands.again.again_commands import fork, rerun
from temporal_supervisor.console.commands.doctor import examine
from temporal_supervisor.console.commands.evidence_commands import (
    artifacts_report,
    print_artifact,
    verify_run,
)
from temporal_supervisor.console.commands.inspect_command import inspect_files
from temporal_supervisor.console.commands.reading.docs_command import docs_report
from temporal_supervisor.console.commands.reading.examples_command import examples_report
from temporal_supervisor.console.commands.repair_command import repair
from temporal_supervisor.console.commands.run_commands import follow_run, run_goal
from temporal_supervisor.console.commands.serve_command import serve
from temporal_supervisor.console.evals.eval_command import evaluate
from temporal_supervisor.console.run.command_line import Commands, command
from temporal_supervisor.runtime.process import exit_now, keep_files_private, run_worker
from temporal_supervisor.runtime.server.embedded_server import read_record

_PEOPLE = "People decide"
EXIT_CODES = " ".join((__doc__ or "").partition("\n\n")[2].split())
app = typer.Typer(
    cls=Commands,
    help="Start runs, follow them, read them, look after the artifact store.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def settings(
    address: Annotated[str | None, typer.Option(help="the Temporal server, host:port")] = None,
    namespace: Annotated[str | None, typer.Option(help="the Temporal namespace")] = None,
    env_file: Annotated[
        Path | None, typer.Option(help="settings, instead of .env beside this program")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="show where an error came from")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="print the version", is_eager=True)
    ] = False,
) -> None:
    """Connection and debugging."""
    if version:
        print_out(f"temporal-supervisor {metadata.version('temporal-supervisor')}")
        raise typer.Exit
    access.address = address
    access.namespace = namespace
    access.env_file = env_file
    access.debug = debug


app.command("run", epilog=EXIT_CODES)(command(run_goal))
app.command("rerun", epilog=EXIT_CODES)(command(rerun))
app.command("fork", epilog=EXIT_CODES)(command(fork))
app.command("follow")(command(follow_run))
app.command("status")(command(reports.status_report))
app.command("plan")(command(reports.plan_report))
app.command("trace")(command(reports.trace_report))
app.command("result")(command(reports.result_report))
app.command("report")(command(reports.page_report))
app.command("artifacts")(command(artifacts_report))
app.command("artifact")(command(print_artifact))
app.command("inspect")(command(inspect_files))
app.command("verify")(command(verify_run))
app.command("list")(command(lists.list_report))
app.command("spend")(command(lists.spend_report))
app.command("cancel")(command(people.cancel))
app.command("extend")(command(people.extend))
app.command("repair")(command(repair))


@app.command("teams")
@command
async def _teams(
    access: Access,
    team: Annotated[
        str | None, typer.Argument(metavar="TEAM", help="only this one, with all its data")
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(help="`new NAME --data FOLDER`, `copy NAME`, `goals NAME`, `pin NAME`"),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="a folder or file for a new team; may be repeated"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="ask MCP servers what they offer, too")
    ] = False,
    ask: Annotated[
        str | None, typer.Option(metavar="GOAL", help="say which role of TEAM would take it")
    ] = None,
) -> Report | int:
    """List teams with their roles, tools and data; exit code 1 if one, or a file, can't be used."""
    # loads the tools' libraries: 0.3 s
    from temporal_supervisor.console.commands import team_commands as teams

    if team == "goals" and not (data or check or ask):
        from temporal_supervisor.console.commands.teams.goal_commands import goals_report

        return await goals_report(access, name)
    if team and ask and ask.strip():
        from worker_main import model_endpoint  # loads what a Worker needs: for this option only

        endpoint = model_endpoint(access.settings)
        return await teams.chosen_role_report(access.settings, team, ask, endpoint)
    return await teams.teams_command(access.settings, team, name, data, check=check, ask=ask)


@app.command("tool")
@command
async def _tool(
    access: Access,
    name: Annotated[str, typer.Argument(metavar="TEAM/TOOL", help="a tool as `teams` lists it")],
    arguments: Annotated[
        str | None, typer.Argument(help='a JSON object such as {"title": "emma"}')
    ] = None,
) -> int:
    """Try a tool without a run: print its schema, or its output for these arguments."""
    from temporal_supervisor.console.commands.team_commands import try_tool

    return await try_tool(access.settings, name, arguments)


app.command("eval", epilog=EXIT_CODES)(command(evaluate))
app.command("put")(command(stores.put_path))
app.command("prune")(command(stores.prune))
app.command("delete")(command(stores.delete_run))
app.command("doctor")(command(examine))
app.command("docs")(command(docs_report))
app.command("examples")(command(examples_report))


@app.command("mcp")
@command
async def _mcp(
    access: Access,
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="over HTTP, with a token")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="a name of this host, beyond loopback")
    ] = None,
    no_decide: Annotated[
        bool,
        typer.Option(
            "--no-decide",
            help="people decide in the forms of `wait` alone, no model for them",
        ),
    ] = False,
) -> int:
    """Serve runs as MCP tools, on stdio or over HTTP, until the client or Ctrl-C ends it."""
    from temporal_supervisor.console.mcp_server.mcp_serving import serve_mcp

    return await serve_mcp(access, http, allow_host or [], decides=not no_decide)


@app.command("ui")
@command
async def _ui(
    access: Access,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="default 8240, or a free one"),
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="another one needs a token and TLS in front"),
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="a name of this host, beyond loopback"),
    ] = None,
    data_root: Annotated[
        Path | None,
        typer.Option(help="the folder below which readers may name folders to answer from"),
    ] = None,
) -> int:
    """Serve the page to ask, watch, decide and read in a browser, until Ctrl-C."""
    from temporal_supervisor.console.page.page_serving import serve_page

    return await serve_page(access, host, port, allow_host or [], data_root)


app.command("serve")(serve)


@app.command("codec")
@command
async def _codec(
    access: Access,
    port: Annotated[int, typer.Option(min=1, max=65535, help="on 127.0.0.1")] = 8081,
    ui: Annotated[
        str | None, typer.Option(help="the Web UI whose pages may ask; default: that of `serve`")
    ] = None,
) -> int:
    """Decrypt histories for Web UI and `temporal` CLI until Ctrl-C, by SUPERVISOR_KEYS_FILE."""
    from temporal_supervisor.console.commands.codec_command import serve_codec

    running = read_record()
    page = ui or (running and running.ui) or "http://localhost:8233"
    return await serve_codec(
        access.settings.keys, port, page, access.settings.secret("codec_token")
    )


_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command(context_settings=_PASSED_ON)
def demo(context: typer.Context) -> None:
    """See it at work without a key: server, Worker, a run on bundled data; options: `demo -h`."""
    from temporal_supervisor.console.demo import main as run_demo

    run_demo(context.args)


@app.command(context_settings=_PASSED_ON)
def worker(context: typer.Context) -> None:
    """Run a Worker until Ctrl-C; `worker -h` lists its options."""
    words = [*context.args]
    if access.env_file:
        words = ["--env-file", str(access.env_file), *words]
    if access.debug:
        words = ["--debug", *words]
    named = {"TEMPORAL_ADDRESS": access.address, "TEMPORAL_NAMESPACE": access.namespace}
    run_worker(words, {name: value for name, value in named.items() if value})


@app.command(context_settings=_PASSED_ON)
def standin(context: typer.Context) -> None:
    """Run the stand-in model until Ctrl-C; `standin -h` lists its options."""
    from temporal_supervisor.standin.__main__ import main as serve_standin

    raise typer.Exit(serve_standin(context.args))


app.command("inbox", rich_help_panel=_PEOPLE)(command(people.inbox_report))
app.command("show", rich_help_panel=_PEOPLE)(command(people.show_report))
app.command("approve", rich_help_panel=_PEOPLE)(command(people.approve))
app.command("deny", rich_help_panel=_PEOPLE)(command(people.deny))
app.command("reply", rich_help_panel=_PEOPLE)(command(people.reply_report))
app.command("pause", rich_help_panel=_PEOPLE)(command(people.pause))
app.command("resume", rich_help_panel=_PEOPLE)(command(people.resume))
app.command("steer", rich_help_panel=_PEOPLE)(command(people.steer))
app.command("retry", rich_help_panel=_PEOPLE)(command(people.retry))
app.command("skip", rich_help_panel=_PEOPLE)(command(people.skip))


def main() -> None:
    """The command `temporal-supervisor`."""
    keep_files_private()
    try:
        app()
    except SystemExit as done:
        exit_now(done.code if isinstance(done.code, int) else 1)


if __name__ == "__main__":
    main()
