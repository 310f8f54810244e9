"""The commands `status`, `plan`, `trace` and `result`: reports on one run, with or without a Worker to ask."""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text
from temporalio.client import WorkflowExecutionDescription, WorkflowQueryFailedError

from activities.contracts.run_contracts import Published
from activities.store.artifacts import ArtifactChanged, ArtifactMissing, ArtifactStore
from console.command import BAD_INPUT, DONE, FAILED, UNREACHABLE, Access, CommandFailed, web_address
from console.hints import hint
from console.run.find_run import find_run
from console.run.full_trace import full_trace
from console.run.run_handle import NO_WORKER, NoAnswer, RunHandle, facts, is_open, state_word
from console.run.run_outcome import outcome_so_far, read_result, run_outcome
from console.run.standstill import Standstill, grouped, observed, stated
from console.terminal import Report, indented, print_err, safe, safe_line
from console.view.answer_text import answer_report
from console.view.event_lines import line
from console.view.live_view import ENDED_PHASES, LINE_CHARS, Picture, draw, spend_table, story_rows
from supervision.base import limits
from supervision.base.text import money
from supervision.contract.finding import ArtifactRef, Finding, FindingRecord
from supervision.contract.plan import Plan
from supervision.contract.status import Status
from supervision.grounding.chain import Grounded, Link, answer_chain, field_links

_WIDEST = 120


async def status_report(run: RunHandle, access: Access) -> Report:
    """Returns where the run stands, or only the server's facts if no Worker answers."""
    described = await run.require()
    known = {"run_id": run.id, "state": state_word(described)}
    closed = described.close_time
    times = {"started_at": described.start_time.isoformat(), "closed_at": closed.isoformat() if closed else None}
    try:
        status = await run.whole_status()
    except NoAnswer as error:
        refused = isinstance(error.__cause__, WorkflowQueryFailedError)  # by a Worker, for a run that did not begin
        why = str(error) if refused else "no Worker answers: only the server's facts"
        return await _facts_report(run, described, access, known, times, None if is_open(described) else why)
    causes = grouped([*stated(status, run.id), *await observed(run, described, answered=True)])
    web = web_address(run.client, run.id)
    picture = Picture(run.id, web, described.start_time, closed, known["state"], observed=causes)
    picture.reports = {report.id: report for report in status.subtasks}
    data = {**known, **times, "web": web, **status.model_dump(mode="json"), "standstills": causes}
    ending: object = status.error and f"{status.error.type}: {status.error.message}"
    if closed and status.phase not in ENDED_PHASES:  # terminated: the run could not say so itself
        ending = data["error"] = (await run_outcome(run, await access.store_or_none())).error
        for report in status.subtasks:
            report.state = "cancelled" if report.state in ("running", "waiting") else report.state
    return Report(data, lambda screen: _status_rows(screen, status, picture, ending))


def _status_rows(screen: Console, status: Status, picture: Picture, error: object) -> Iterator[RenderableType]:
    yield safe_line(status.goal, LINE_CHARS)
    yield f"run {picture.run_id}, {picture.state}, team {status.team}"
    yield _limits(status)
    if status.spend:
        yield spend_table(status.spend)
    picture.status = status.model_copy(update={"spend": []})  # shown above, row by row
    yield draw(picture, min(screen.width, _WIDEST), len(picture.tree()) + limits.STATUS_PAGE)
    for warning in status.warnings:
        yield safe_line(f"warning: {warning}", limits.ERROR_BYTES)
    if error:
        yield safe_line(f"{picture.state}: {error}", limits.ERROR_BYTES)


def _limits(status: Status) -> str:
    """Returns one line on review, deadline and budget."""
    allowed, used = status.limits, status.usage
    tokens = "any" if allowed.budget_tokens is None else f"{allowed.budget_tokens:,}"
    dollars = "" if allowed.budget_usd is None else f", {money(used.usd)} of {money(allowed.budget_usd)}"
    ends = f"{datetime.fromisoformat(status.deadline_at).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"review {status.review} · deadline {ends} · budget {used.tokens:,} of {tokens} tokens{dollars}"


async def _facts_report(
    run: RunHandle,
    described: WorkflowExecutionDescription,
    access: Access,
    known: dict[str, str],
    times: dict[str, str | None],
    why: str | None,
) -> Report:
    """Returns what the server knows of a run that does not answer, and why it does not."""
    phase, team, usd = await facts(described)
    causes = await observed(run, described, answered=False)
    error = None if is_open(described) else (await run_outcome(run, await access.store_or_none())).error
    values = {**known, "phase": phase or None, "team": team or None, "usd": usd, **times, "notice": why}
    shown = {**values, "error": error and str(error)}
    rows = [f"{name:<12}{value}" for name, value in shown.items() if value is not None]
    rows += [f"⏸ {cause.line}" for cause in causes]
    return Report({**values, "error": error, "standstills": causes}, lambda _: rows)


async def plan_report(run: RunHandle) -> Report:
    """Returns the plan, out of the run's history if no Worker answers."""
    described = await run.require()
    try:
        plan = await run.plan()
    except NoAnswer as error:
        recorded = await run.recorded_plan()
        if recorded is None:
            raise CommandFailed(UNREACHABLE, f"the plan of '{run.id}' is not known: {error}") from error
        plan = recorded
    data = {"run_id": run.id, "state": state_word(described), **plan.model_dump(mode="json")}
    return Report(data, lambda _: _plan_rows(plan))


def _plan_rows(plan: Plan) -> Iterator[RenderableType]:
    if plan.direct_answer:
        yield "no subtasks: the planner answered the goal itself"
    elif not plan.subtasks:
        yield "there is no plan yet"
    for subtask in plan.folded().subtasks:
        after = f", after {', '.join(subtask.depends_on)}" if subtask.depends_on else ""
        each = f", for each of {subtask.for_each}" if subtask.for_each else ""
        yield safe_line(f"{subtask.id}  ({subtask.role}, {subtask.importance}{after}{each})", limits.DESCRIPTION_CHARS)
        yield indented(safe_line(subtask.description, limits.DESCRIPTION_CHARS), 4)


async def trace_report(run: RunHandle, access: Access) -> Report:
    """Returns all that happened in a run; of an open run so far, of a forgotten one out of the store."""
    store = await access.store_or_none()
    events = await full_trace(run, store)
    notes = [] if store else ["the turns of worker agents are in the artifact store, which can't be opened from here"]
    with contextlib.suppress(CommandFailed):  # the server may have forgotten it
        if (state := state_word(await run.describe())) in ("terminated", "timed out"):
            notes.append(f"{state}: {(await run_outcome(run, store)).error}")

    def rows(screen: Console) -> Iterator[RenderableType]:
        for event in events:
            yield from story_rows(line(event), screen.width if screen.is_terminal else None)

    return Report(events, rows, notes)


async def result_report(run: RunHandle, access: Access, *, full: bool = False, wait: bool = False) -> Report:
    """Returns the result, or the result so far; out of the store if Temporal has forgotten the run."""
    store = await access.store()
    try:
        outcome = await outcome_so_far(run, store, wait=wait)
    except NoAnswer as error:
        causes: list[Standstill] = await observed(run, await run.describe(), answered=False)
        why = causes[0].line if causes else NO_WORKER
        raise CommandFailed(UNREACHABLE, f"'{run.id}' is running: {why}") from error
    if full and outcome.result and outcome.result.result_ref and not outcome.forgotten:
        try:
            outcome = replace(outcome, result=await read_result(store, outcome.result.result_ref))
        except ArtifactMissing as error:
            if await run.recorded_store() == await store.identity():
                raise
            raise CommandFailed(
                FAILED, f"{error}: the run uses another store, so set SUPERVISOR_ARTIFACTS_URL as its Workers have it"
            ) from error
    return answer_report(run.id, outcome, None if outcome.forgotten else web_address(run.client, run.id))


_CALL_CHARS = 62  # a line has room for the beginning of the output's hash on 80 columns
_HASH_CHARS = 8  # `--json` has whole references


async def verify_run(access: Access, given: str | None) -> Report:
    """Returns the evidence of an answer; the server is asked only for a run that is not named by its whole id."""
    store = await access.store()
    if given and await store.latest_ended(given) is not None:
        return await chain_report(given, store)
    return await chain_report(await find_run(await access.client(), given), store)


async def chain_report(run_id: str, store: ArtifactStore) -> Report:
    """Returns the evidence of each claim and citation; FAILED if one has none, or an object was changed."""
    ended = await store.latest_ended(run_id)
    if ended is None:
        raise CommandFailed(
            FAILED, f"the store has no result of '{run_id}': it still runs, was terminated, or was pruned"
        )
    published = Published.model_validate_json(ended)
    result = await read_result(store, published.result_ref)
    problems: list[str] = []
    answer = result.answer
    if published.answer_ref:
        answer = await _verified_text(store, published.answer_ref, problems) or answer
    findings = {
        report.id: await _grounded(store, report.finding)
        for report in result.subtasks
        if report.finding and report.replaced_by is None
    }
    planned = [subtask.description for subtask in result.subtasks]
    links = answer_chain(answer, result.citations, findings, planned)
    links += field_links(result.answer_json, findings, planned)
    problems += [problem for finding in findings.values() for problem in finding.problems]
    missing = [f"'{item.text}' ({item.where}) has no support" for item in result.unsupported]
    problems = list(dict.fromkeys([*problems, *missing]))
    doubted = sum(bool(link.problem) for link in links)
    confidence = "none" if result.confidence is None else f"{result.confidence:.0%}"
    rows = [row for link in links for row in _claim_rows(link)]
    rows += [f"✘ {safe_line(problem, limits.ERROR_BYTES)}" for problem in problems]
    rows += [f"{len(links)} claims, {doubted} in doubt · confidence {confidence}"]
    code = FAILED if problems or doubted else DONE
    return Report({"claims": links, "problems": problems}, lambda _: rows, code=code)


def _claim_rows(link: Link) -> Iterator[str]:
    yield f"{'✘' if link.problem else '✔'} {link.kind}: {safe_line(link.text, limits.SENTENCE_BYTES)}"
    if link.findings:
        yield f"    findings: {', '.join(link.findings)}"
    for item in link.outputs:
        call = safe_line(f"{item.tool}({item.arguments})", _CALL_CHARS)
        yield f"    {call} → {item.output_ref.rpartition('/')[2][:_HASH_CHARS]}"
    if link.elsewhere:
        yield f"    from {link.elsewhere}"
    if link.problem:
        yield f"    {safe_line(link.problem, limits.ERROR_BYTES)}"


async def _grounded(store: ArtifactStore, finding: Finding) -> Grounded:
    """Reads a finding, its record and the outputs behind it; the store compares each with its hash."""
    problems: list[str] = []
    text = await _verified_text(store, finding.text_ref, problems)
    stored = await _verified_text(store, finding.record_ref, problems) if finding.record_ref else ""
    record = FindingRecord.model_validate_json(stored) if stored else FindingRecord()
    refs = {item.output_ref for item in record.evidence if item.output_ref}
    outputs = {ref: await _verified_text(store, ref, problems) for ref in sorted(refs)}
    return Grounded(
        text=text,
        evidence=record.evidence,
        outputs=outputs,
        problems=problems,
        unsupported=record.unsupported,
        grounding=record.grounding,
    )


async def _verified_text(store: ArtifactStore, ref: str, problems: list[str]) -> str:
    """Returns the text at a reference; empty, with a problem, if it is not what was stored there."""
    try:
        return (await store.get(ref)).decode("utf-8", "replace")
    except (ArtifactChanged, ArtifactMissing) as error:
        problems.append(str(error))
        return ""


_NAME_CHARS = 100


async def artifacts_report(run: RunHandle, access: Access, save: Path | None) -> Report:
    """Returns the artifacts of a run; they are written into the folder `save`. The exit code is 0 also without any."""
    store = await access.store()
    try:
        result = (await outcome_so_far(run, store)).result
    except NoAnswer:
        result = None
    listed = result.artifacts if result else []
    if save is not None:
        save.mkdir(parents=True, exist_ok=True)
        for artifact, name in zip(listed, _file_names(listed), strict=True):
            _write(save / name, await store.get(artifact.ref))
    if not listed:
        return Report([], lambda _: (), notes=[f"run '{run.id}' made no artifacts"])
    if save is not None:
        return Report(listed, lambda _: ())
    return Report(
        listed, lambda _: _artifact_rows(listed), notes=[f"save them: {hint('artifacts', run.id, '--save', 'DIR')}"]
    )


def _artifact_rows(listed: list[ArtifactRef]) -> Iterator[RenderableType]:
    for artifact in listed:
        yield f"{safe_line(artifact.name, _NAME_CHARS)}  {artifact.media_type}, {artifact.bytes:,} bytes"
        yield Text(f"    {artifact.ref}")  # one piece, to be copied


async def print_artifact(access: Access, ref: str, output: Path | None) -> int:
    """Writes stored content into a file, or shows its text. Raises ArtifactMissing for an unknown reference."""
    data = await (await access.store()).get(ref)
    if output is not None:
        _write(output, data)
        return DONE
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise CommandFailed(BAD_INPUT, f"{len(data):,} bytes that are no text: name a file with -o FILE") from None
    sys.stdout.write(safe(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()
    return DONE


def _write(path: Path, data: bytes) -> None:
    """Creates the file; one that exists stays. Raises CommandFailed then."""
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise CommandFailed(FAILED, f"{path} exists already: remove it, or choose another name") from None
    print_err(f"wrote {path}, {len(data):,} bytes")


def _file_names(listed: list[ArtifactRef]) -> list[str]:
    """Returns a file's name for each artifact, without folders; a second one of a name gets a number."""
    names: list[str] = []
    for artifact in listed:
        path = Path(safe_line(artifact.name, _NAME_CHARS).replace("\\", "/"))
        stem, suffix = path.stem.lstrip(".") or "artifact", path.suffix
        number, name = 1, f"{stem}{suffix}"
        while name in names:
            number += 1
            name = f"{stem}-{number}{suffix}"
        names.append(name)
    return names
