"""The command line: start runs, follow them, read them, look after the artifact store.

Exit codes: 0 done (a partial answer, too); 1 the run failed, does not exist or exists already; 2 bad input or usage;
3 no server, no worker or no artifact store; 4 the run was cancelled; 5 its plan waits for approval; 130 detached by
Ctrl-C (the run continues).
"""

from importlib import metadata
from pathlib import Path
from typing import Annotated

try:
    import typer
except ModuleNotFoundError as missing:
    raise SystemExit(f"{missing}: run `make setup` once, then .venv/bin/temporal-supervisor") from None

from console.base.command import keep_connection
from console.base.terminal import console, print_out
from console.commands.doctor import examine
from console.commands.evidence_commands import artifacts_report, calls_report, print_artifact, verify_run
from console.commands.list_commands import SpendBy, list_report, spend_report
from console.commands.people_commands import cancel, extend
from console.commands.repair_command import repair
from console.commands.report_commands import page_report, plan_report, result_report, status_report, trace_report
from console.commands.run_commands import follow_run, run_goal
from console.commands.store_commands import delete_run, inspect_files, prune, put_path
from console.commands.team_commands import new_team, pin_team, taker_report, teams_report, try_tool
from console.options import AnyRun, AsJson, RunId, access, do, people, with_run
from runtime.process import exit_now, keep_files_private, run_worker

EXIT_CODES = (__doc__ or "").partition("\n\n")[2].strip()
app = typer.Typer(
    help="Start runs, follow them, read them, look after the artifact store.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(people)


@app.callback(invoke_without_command=True)
def settings(
    address: Annotated[str | None, typer.Option(help="the Temporal server, host:port")] = None,
    namespace: Annotated[str | None, typer.Option(help="the Temporal namespace")] = None,
    env_file: Annotated[Path | None, typer.Option(help="settings, instead of .env beside this program")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="show where an error came from")] = False,
    version: Annotated[bool, typer.Option("--version", help="print the version", is_eager=True)] = False,
) -> None:
    """Connection and debugging."""
    if version:
        print_out(f"temporal-supervisor {metadata.version('temporal-supervisor')}")
        raise typer.Exit
    keep_connection(address, namespace, env_file)
    access.address, access.namespace, access.env_file, access.debug = address, namespace, env_file, debug


@app.command(epilog=EXIT_CODES)
def run(
    goal: Annotated[str | None, typer.Argument(help="the question or task; - reads standard input")] = None,
    goal_file: Annotated[Path | None, typer.Option(help="read the goal from a file")] = None,
    request: Annotated[Path | None, typer.Option(help="a JSON file with a whole request; options override it")] = None,
    team: Annotated[str | None, typer.Option(help="see `teams`")] = None,
    strategy: Annotated[str | None, typer.Option(help="auto, plan, route or step")] = None,
    success: Annotated[str | None, typer.Option(help="any, all or a fraction such as 2/3; default any")] = None,
    max_subtasks: Annotated[int | None, typer.Option(help="default 12")] = None,
    max_parallel: Annotated[int | None, typer.Option(help="subtasks at a time, default 8")] = None,
    max_turns: Annotated[int | None, typer.Option(help="model calls per subtask, default 10")] = None,
    max_reviews: Annotated[int | None, typer.Option(help="rounds of review, default 3, 0 for none")] = None,
    max_replans: Annotated[int | None, typer.Option(help="new revisions of the plan, default 2, 0 for none")] = None,
    max_depth: Annotated[int | None, typer.Option(help="levels of teams within teams, default 2")] = None,
    incremental_synthesis: Annotated[int | None, typer.Option(help="drafts from so many findings on, 0 never")] = None,
    effort: Annotated[str | None, typer.Option(help="low, medium or high; else the model's own")] = None,
    subtask_timeout: Annotated[str | None, typer.Option(help="work of one attempt of a subtask, such as 5m")] = None,
    deadline: Annotated[str | None, typer.Option(help="such as 30m or PT30M, default 30m")] = None,
    budget_tokens: Annotated[int | None, typer.Option(help="default 1,000,000")] = None,
    budget_usd: Annotated[float | None, typer.Option(help="default 5")] = None,
    answer_schema: Annotated[Path | None, typer.Option(help="a JSON schema: the answer comes as JSON, too")] = None,
    plan: Annotated[Path | None, typer.Option(help="a JSON file with your own plan, as of `plan --json`")] = None,
    approve_plan: Annotated[
        bool | None, typer.Option("--approve-plan", help="show the plan and ask before anything of it begins")
    ] = None,
    approval_timeout: Annotated[str | None, typer.Option(help="such as 2d, default 7d")] = None,
    on_approval_timeout: Annotated[str | None, typer.Option(help="reject or approve; default reject")] = None,
    supervisor_model: Annotated[
        list[str] | None, typer.Option(help="plans and writes the answer; repeated: one stands in for another")
    ] = None,
    worker_model: Annotated[list[str] | None, typer.Option(help="works on subtasks; may be repeated, too")] = None,
    data: Annotated[list[Path] | None, typer.Option(help="a folder or file to answer from; may be repeated")] = None,
    attach: Annotated[list[Path] | None, typer.Option(help="a text or table to read; may be repeated")] = None,
    run_id: Annotated[str | None, typer.Option("--id", help="the run's id, else one is made of the goal")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="print the run's id and return at once")] = False,
    as_json: AsJson = False,
    queue_anyway: Annotated[bool, typer.Option("--queue-anyway", help="start even if no worker is there yet")] = False,
) -> None:
    """Start a run and follow it to its answer. Ctrl-C stops following, never the run."""
    options = locals()
    do(lambda access: run_goal(access, options), as_json)


@app.command()
def follow(run_id: AnyRun = None, as_json: AsJson = False) -> None:
    """Follow a run to its end and print its answer."""
    with_run(run_id, lambda run, access: follow_run(run, access, as_json=as_json), as_json)


@app.command()
def status(run_id: AnyRun = None, as_json: AsJson = False) -> None:
    """Show where a run stands."""
    with_run(run_id, lambda run, access: status_report(run, access), as_json)


@app.command()
def plan(run_id: AnyRun = None, as_json: AsJson = False) -> None:
    """Show the plan of a run."""
    with_run(run_id, lambda run, _: plan_report(run), as_json)


@app.command()
def trace(
    run_id: AnyRun = None,
    full: Annotated[
        str | None, typer.Option(metavar="SUBTASK", help="prompts and whole replies of t1, t1/t2, plan, ... or all")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show all that happened in a run: plans, turns, tool calls, retries, reviews, and why."""
    with_run(
        run_id, lambda run, access: calls_report(run, access, full) if full else trace_report(run, access), as_json
    )


@app.command()
def result(
    run_id: AnyRun = None,
    as_json: AsJson = False,
    full: Annotated[bool, typer.Option("--full", help="whole texts, from the artifact store")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="wait for the run's end")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="write it: answer.md, table.csv or answer.json")
    ] = None,
) -> None:
    """Show the answer of a run, or its result so far."""
    with_run(run_id, lambda run, access: result_report(run, access, full=full, wait=wait, output=output), as_json)


@app.command()
def report(
    run_id: AnyRun = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="the file to write")] = Path("report.html"),
    prompts: Annotated[bool, typer.Option("--prompts", help="with prompts and whole replies")] = False,
) -> None:
    """Write the report of a run, to be handed on: one HTML page with the answer and all that it rests on."""
    do(lambda access: page_report(access, run_id, output, prompts=prompts))


@app.command()
def artifacts(
    run_id: AnyRun = None,
    save: Annotated[Path | None, typer.Option(help="write the files into this folder")] = None,
    as_json: AsJson = False,
) -> None:
    """List the files that a run made for you, or save them."""
    with_run(run_id, lambda run, access: artifacts_report(run, access, save), as_json)


@app.command()
def artifact(
    ref: Annotated[str, typer.Argument(help="as `artifacts` and `put` print it, or a hash's beginning (`verify`)")],
    run_id: Annotated[str | None, typer.Option("--run", help="of this run, else the newest: for a beginning")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write it into this file")] = None,
) -> None:
    """Print a stored text, or write it into a file."""
    do(lambda access: print_artifact(access, ref, output, run_id))


@app.command()
def inspect(paths: Annotated[list[Path], typer.Argument(help="files and folders")], as_json: AsJson = False) -> None:
    """Show what a run would see of files: tables with their columns, documents, and what can't be read, with why."""
    do(lambda access: inspect_files(paths), as_json)


@app.command()
def verify(run_id: AnyRun = None, as_json: AsJson = False) -> None:
    """Recompute the evidence of each claim of an answer; exit code 1 if something has no support or was changed."""
    do(lambda access: verify_run(access, run_id), as_json)


@app.command("list")
def list_runs(
    limit: Annotated[int, typer.Option(min=1, help="newest first")] = 50,
    state: Annotated[str | None, typer.Option(help="only running, completed, failed, cancelled, ... ones")] = None,
    team: Annotated[str | None, typer.Option(help="only those of this team")] = None,
    owner: Annotated[str | None, typer.Option(help="only those of this owner, of the request's metadata")] = None,
    waiting: Annotated[bool, typer.Option("--waiting", help="only those that wait for a person")] = False,
    as_json: AsJson = False,
) -> None:
    """List the runs that the server knows."""
    do(lambda access: list_report(access, limit, state, team, owner, waiting), as_json)


@app.command()
def spend(
    days: Annotated[int, typer.Option(min=1, max=3650)] = 30, by: SpendBy = "day", as_json: AsJson = False
) -> None:
    """Show what ended runs have cost: dollars, tokens, runs."""
    do(lambda access: spend_report(access, days, by), as_json)


@app.command("cancel")
def cancel_run(run_id: RunId) -> None:
    """Cancel a run; its partial result is kept."""
    with_run(run_id, lambda run, _: cancel(run))


@app.command("extend")
def extend_limits(
    run_id: RunId,
    deadline: Annotated[str | None, typer.Option(help="such as 2h, counted from the run's start")] = None,
    budget_tokens: Annotated[int | None, typer.Option(help="the new total")] = None,
    budget_usd: Annotated[float | None, typer.Option(help="the new total")] = None,
    unlimited: Annotated[
        list[str] | None, typer.Option(help="tokens or usd: no limit but the operator's; may be repeated")
    ] = None,
) -> None:
    """Give a run new limits: totals, not additions. A limit that is not given stays as it is."""
    with_run(run_id, lambda run, _: extend(run, deadline, budget_tokens, budget_usd, unlimited or []))


@app.command("repair")
def repair_run(run_id: AnyRun = None) -> None:
    """Mend a run whose history does not replay: reset it to the last task up to which it does."""
    with_run(run_id, lambda run, _: repair(run))


@app.command()
def teams(
    team: Annotated[str | None, typer.Argument(metavar="TEAM", help="only this one, checked as with --check")] = None,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="`new NAME --data FOLDER` writes a team, `pin NAME` its team.lock"),
    ] = None,
    data: Annotated[list[Path] | None, typer.Option(help="a folder or file for a new team; may be repeated")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="run each tools.py as a Worker does; with TEAM ask its MCP servers, too")
    ] = False,
    ask: Annotated[str | None, typer.Option(metavar="GOAL", help="say which role of TEAM would take it")] = None,
    as_json: AsJson = False,
) -> None:
    """List the teams that runs may name, with roles, tools and data; exit code 1 if one, or a file, can't be used."""
    if team == "pin" and name and not data:
        do(lambda access: pin_team(access.settings, name), as_json)
    if (name or team == "new") and not (team == "new" and name and data):
        raise typer.BadParameter("write `teams new NAME --data FOLDER`, or `teams pin NAME`")
    if ask is not None:
        if not team or name or not ask.strip():
            raise typer.BadParameter('write `teams TEAM --ask "GOAL"`')
        from worker_main import model_endpoint  # loads what a Worker needs: for this option only

        do(lambda access: taker_report(access.settings, team, ask, model_endpoint(access.settings)), as_json)
    if name and data:
        folders, paths = access.settings.teams_folders, data
        do(lambda _: new_team(folders, name, paths))
    do(lambda access: teams_report(access.settings, name=team, check=check), as_json)


@app.command()
def tool(
    name: Annotated[str, typer.Argument(metavar="TEAM/TOOL", help="a tool as `teams` lists it")],
    arguments: Annotated[str | None, typer.Argument(help='a JSON object such as {"title": "emma"}')] = None,
    attach: Annotated[list[Path] | None, typer.Option(help="a text file that the tool may read")] = None,
) -> None:
    """Try a tool without a run: print its schema, or its output for these arguments."""
    do(lambda access: try_tool(access.settings, name, arguments, attach or []))


@app.command()
def put(path: Annotated[Path, typer.Argument(help="a text file, or a folder or file of data")]) -> None:
    """Store a file or a folder and print the reference that an attachment may name."""
    do(lambda access: put_path(access, path))


@app.command("prune")
def prune_store(
    older_than: Annotated[str, typer.Option(help="such as 30d, 12h or 2w")],
    yes: Annotated[bool, typer.Option("--yes", help="delete without asking")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only list what would be deleted")] = False,
) -> None:
    """Delete the objects of old runs and old uploads from the artifact store; never what may still be in use."""
    do(lambda access: prune(access, older_than, lambda question: not dry_run and _confirmed(question, yes)))


@app.command("delete")
def delete_one(
    run_id: RunId, yes: Annotated[bool, typer.Option("--yes", help="delete without asking")] = False
) -> None:
    """Delete an ended run: its objects in the store, and its workflows from the server."""
    with_run(run_id, lambda run, access: delete_run(run, access, lambda question: _confirmed(question, yes)))


def _confirmed(question: str, yes: bool) -> bool:
    return yes or (console().is_terminal and typer.confirm(question))


@app.command()
def doctor(
    quiet: Annotated[bool, typer.Option("--quiet", help="only warnings and problems")] = False,
    as_json: AsJson = False,
) -> None:
    """Check everything that a run needs; exit code 1 if there is a problem."""
    do(lambda access: examine(access, quiet=quiet, as_json=as_json), as_json)


@app.command()
def mcp(
    http: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="over HTTP, with a token")] = None,
    allow_host: Annotated[list[str] | None, typer.Option(help="a name of this host, beyond loopback")] = None,
) -> None:
    """Serve runs as MCP tools, on standard input and output or over HTTP, until the client or Ctrl-C ends it."""
    from console.mcp_server.mcp_serving import serve_mcp

    do(lambda access: serve_mcp(access, http, allow_host or []))


_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command(context_settings=_PASSED_ON)
def serve(context: typer.Context) -> None:
    """Run the embedded Temporal server with its Web UI until Ctrl-C; `serve -h` lists its options."""
    from runtime.server.__main__ import main as serve_temporal

    serve_temporal(context.args)


@app.command()
def codec(
    port: Annotated[int, typer.Option(help="on 127.0.0.1")] = 8081,
    ui: Annotated[str, typer.Option(help="the Web UI whose pages may ask")] = "http://localhost:8233",
) -> None:
    """Decrypt histories for the Web UI and the `temporal` CLI until Ctrl-C, with the keys of SUPERVISOR_KEYS_FILE."""
    from console.commands.codec_command import serve_codec

    do(lambda access: serve_codec(access.settings.keys, port, ui))


@app.command(context_settings=_PASSED_ON)
def worker(context: typer.Context) -> None:
    """Run a Worker until Ctrl-C; `worker -h` lists its options."""
    run_worker([*(["--env-file", str(access.env_file)] if access.env_file else []), *context.args], access.environment)


@app.command(context_settings=_PASSED_ON)
def standin(context: typer.Context) -> None:
    """Run the stand-in model until Ctrl-C; `standin -h` lists its options."""
    from standin.__main__ import main as serve_standin

    raise typer.Exit(serve_standin(context.args))


def main() -> None:
    """The command `temporal-supervisor`."""
    keep_files_private()
    try:
        app()
    except SystemExit as done:
        exit_now(done.code if isinstance(done.code, int) else 1)


if __name__ == "__main__":
    main()
