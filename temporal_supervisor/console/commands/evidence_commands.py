"""The commands `verify`, `artifacts`, `artifact` and `trace --full`: evidence in the store."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from activities.model.conversation import ConversationStore
from activities.store.artifacts import ArtifactStore
from temporal_supervisor.console.base.command import (
    BAD_INPUT,
    DONE,
    FAILED,
    Access,
    CommandFailed,
    hint,
)
from temporal_supervisor.console.base.output_file import write_file
from temporal_supervisor.console.base.terminal import Report, safe, safe_line
from temporal_supervisor.console.run.command_line import AnyRun
from temporal_supervisor.console.run.found_runs import find_run, short_id
from temporal_supervisor.console.run.run_outcome import outcome_so_far, published_end, read_result
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.store_keys import run_prefix
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.finding import ArtifactRef

if TYPE_CHECKING:  # what compares claims is loaded where it is used: 0.3 s
    from temporal_supervisor.supervision.grounding.answer_chain import Link

_CALL_CHARS = 62  # a line has room for the beginning of the output's hash on 80 columns
_HASH_CHARS = 8  # `--json` has whole references
_SECOND_CHARS = 19  # of a time, to the second
_HASH_BEGINNING = re.compile(r"[0-9a-f]{6,64}")


async def verify_run(run: AnyRun, access: Access) -> Report:
    """Recompute the evidence of each claim; exit code 1 if any has no support or was changed."""
    store = await access.store()
    if await published_end(run.id, store) is None:
        await run.require()
    return await chain_report(run.id, store)


async def chain_report(run_id: str, store: ArtifactStore) -> Report:
    """Returns the evidence of each claim and citation.

    The exit code is FAILED if one has no evidence, or if an object was changed.
    """
    from temporal_supervisor.console.report.report_data import evidence_of

    ended = await published_end(run_id, store)
    if ended is None:
        why = "it is still running, was terminated, or was pruned"
        raise CommandFailed(FAILED, f"the store has no result of '{run_id}': {why}")

    result = await read_result(store, ended.result_ref)
    found = await evidence_of(store, result)
    missing = [f"'{item.text}' ({item.where}) has no support" for item in result.unsupported]
    doubts = [f"{doubt.text} ({doubt.where})" for doubt in result.doubts]
    problems = list(dict.fromkeys([*found.changed, *missing, *doubts]))

    doubted = sum(bool(link.problem) for link in found.links)
    recalled = sum(link.recalled for link in found.links)
    counts = f"{len(found.links)} claims, {doubted} in doubt"
    if recalled:
        counts += f", {recalled} from the model's own knowledge"
    confidence = "none" if result.confidence is None else f"{result.confidence:.0%}"

    rows = [*_link_rows(found.links, found.answer)]
    rows += [f"✘ {safe_line(problem, limits.ERROR_BYTES)}" for problem in problems]
    rows.append(f"{counts} · confidence {confidence}")
    code = FAILED if problems or doubted else DONE
    return Report({"claims": found.links, "problems": problems}, rows, code=code)


def _link_rows(links: "list[Link]", answer: str) -> Iterator[str]:
    """Yields the claims, each below the first sentence of the answer that contains it."""
    shown = ""
    for link in links:
        sentence = "" if link.kind == "citation" else _sentence(answer, link.text)
        if sentence and sentence != shown:
            yield f"“{safe_line(sentence, limits.SENTENCE_BYTES)}”"
            shown = sentence

        mark = "○" if link.recalled else "✔"
        if link.problem:
            mark = "✘"
        yield f"{mark} {link.kind}: {safe_line(link.text, limits.SENTENCE_BYTES)}"
        if link.findings:
            yield f"    findings: {', '.join(link.findings)}"
        for item in link.outputs:
            call = safe_line(f"{item.tool}({item.arguments})", _CALL_CHARS)
            yield f"    {call} → {_hash_of(item.output_ref)[:_HASH_CHARS]}"
            for reading in item.readings:
                yield f"      read {safe_line(reading, limits.SENTENCE_BYTES)}"

        if link.elsewhere:
            yield f"    from {link.elsewhere}"
        elif link.recalled:
            yield "    a finding from the model's own knowledge, which is not checked"
        if link.problem:
            yield f"    {safe_line(link.problem, limits.ERROR_BYTES)}"


def _sentence(answer: str, words: str) -> str:
    """Returns the sentence, row or item of the answer that contains the words.

    Empty if none does, or if it contains nothing else.
    """
    from temporal_supervisor.supervision.base.sentences import SENTENCE_END

    found = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", answer)
    if found is None:
        return ""
    before = SENTENCE_END.split(answer[: found.start()])[-1]
    after = SENTENCE_END.split(answer[found.end() :], maxsplit=1)[0]
    return f"{before}{found[0]}{after}".strip(" -*|>#.!?")


async def artifacts_report(
    run: AnyRun,
    access: Access,
    save: Annotated[Path | None, typer.Option(help="write the files into this folder")] = None,
) -> Report:
    """List the files that a run made for you, or save them."""
    store = await access.store()
    outcome = await outcome_so_far(run, store)
    artifacts = outcome.result.artifacts if outcome.result else []
    if save is not None:
        _make_folder(save)
        for artifact, name in zip(artifacts, _file_names(artifacts), strict=True):
            write_file(save / name, await store.get(artifact.ref))

    if not artifacts:
        return Report(artifacts, notes=[f"run '{run.id}' made no artifacts"])
    if save is not None:
        return Report(artifacts)
    note = f"save them: {hint('artifacts', short_id(run.id), '--save', 'DIR')}"
    return Report(artifacts, list(_artifact_rows(artifacts)), notes=[note])


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is a file" if folder.is_file() else error.strerror
        problem = f"the folder {folder} can't be made ({why})"
        raise CommandFailed(BAD_INPUT, f"{problem}: name another one") from None


def _artifact_rows(listed: list[ArtifactRef]) -> Iterator[RenderableType]:
    for artifact in listed:
        name = safe_line(artifact.name, limits.LINE_BYTES)
        yield f"{name}  {artifact.media_type}, {artifact.bytes:,} bytes"
        yield Text(f"    {artifact.ref}")  # one piece, to be copied


async def print_artifact(
    access: Access,
    ref: Annotated[
        str,
        typer.Argument(help="as `artifacts` and `put` print it, or a hash's beginning (`verify`)"),
    ],
    run_id: Annotated[
        str | None,
        typer.Option("--run", help="look up a shortened hash in this run; the newest without"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="write it into this file"),
    ] = None,
) -> int:
    """Print a stored text, or write it into a file."""
    store = await access.store()
    if _HASH_BEGINNING.fullmatch(ref):
        found = await find_run(await access.client(), run_id)
        ref = await _object_of(store, found, ref)
    data = await store.get(ref)
    if output is not None:
        write_file(output, data)
        return DONE

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        words = f"{len(data):,} bytes that are no text: name a file with -o FILE"
        raise CommandFailed(BAD_INPUT, words) from None
    sys.stdout.write(safe(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()
    return DONE


async def _object_of(store: ArtifactStore, run_id: str, beginning: str) -> str:
    """Returns the key of the one object of a run whose hash has that beginning.

    Raises CommandFailed.
    """
    stored = await store.list_keys(run_prefix(run_id))
    keys = [key for key in stored if _hash_of(key).startswith(beginning)]
    if len(keys) == 1:
        return keys[0]
    found = "nothing with such a hash"
    if keys:
        found = f"several hashes that begin with '{beginning}': {', '.join(keys)}"
    another = hint("artifact", beginning, "--run", "RUN_ID")
    raise CommandFailed(FAILED, f"run '{run_id}' stored {found}; of another run: {another}")


def _hash_of(key: str) -> str:
    return key.rpartition("/")[2]


def _file_names(listed: list[ArtifactRef]) -> list[str]:
    """Returns a file name without folders for each artifact; repeated names get a number."""
    names: list[str] = []
    for artifact in listed:
        path = one_line(artifact.name, limits.LINE_BYTES).replace("\\", "/")
        name = Path(path).name.lstrip(".") or "artifact"
        names.append(f"{len(names) + 1}-{name}" if name in names else name)
    return names


async def calls_report(run: Run, access: Access, which: str) -> Report:
    """Returns the stored model calls with prompts and whole replies.

    `which` is a subtask, a step of the supervisor such as `plan`, or `all`.
    """
    from temporal_supervisor.console.report.report_data import added_by, entries_of, stored_calls

    store = await access.store()
    conversations = ConversationStore(store)
    known = await stored_calls(store, run.id)
    wanted = [call for call in known if which in ("all", call.work)]
    if not wanted:
        places = ", ".join(sorted({call.work for call in known}))
        stored = f"it has {places}" if places else "it stored none yet"
        none = f"run '{run.id}' stored no model call of '{which}'"
        raise CommandFailed(BAD_INPUT, f"{none}: {stored}")

    calls: list[dict[str, Any]] = []
    rows: list[RenderableType] = []
    problems: list[str] = []
    for call, entry in await entries_of(conversations, wanted, problems):
        opening, model = entry.opening, entry.reply.model
        calls.append(
            {
                "workflow_id": call.workflow_id,
                "step": call.step,
                "at": entry.at,
                "model": model,
                "system": opening and opening.system,
                "tools": [tool.get("name") for tool in opening.tools] if opening else [],
                "input": await conversations.resolve(entry.input),
                "reply": entry.reply.content,
            }
        )
        at = (entry.at or "")[:_SECOND_CHARS]
        head = f"━━ {call.workflow_id} {call.step} · {model} · {at} UTC"
        rows.append(Text(safe_line(head, 400), "bold"))
        for title, text in await added_by(conversations, entry):
            rows += [Text(safe_line(f"── {title}", 100), "cyan"), text]
    return Report(calls, rows, notes=problems)
