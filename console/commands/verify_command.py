"""The command `verify`: what each claim of an answer rests on, recomputed from the store."""

from collections.abc import Iterator

from activities.contracts.run_contracts import Published
from activities.store.artifacts import ArtifactChanged, ArtifactMissing, ArtifactStore
from console.command import DONE, FAILED, Access, CommandFailed
from console.run.find_run import find_run
from console.run.run_outcome import read_result
from console.terminal import Report, safe_line
from supervision.base import limits
from supervision.contract.finding import Finding, FindingRecord
from supervision.grounding.chain import Grounded, Link, answer_chain, field_links

_CALL_CHARS = 62  # a line has room for the beginning of the output's hash on 80 columns
_HASH_CHARS = 8  # `--json` has whole references


async def verify_run(access: Access, given: str | None) -> Report:
    """Returns what the answer of a run rests on; the server is asked only about a run not named by its whole id."""
    if given and await access.store.latest_ended(given) is not None:
        return await chain_report(given, access.store)
    return await chain_report(await find_run(await access.client(), given), access.store)


async def chain_report(run_id: str, store: ArtifactStore) -> Report:
    """Returns each figure, quotation, address and citation of an answer with what it rests on.

    The exit code is FAILED if something is unsupported, or if an object in the store is not what was stored.
    """
    ended = await store.latest_ended(run_id)
    if ended is None:
        raise CommandFailed(FAILED, f"the store has no result of '{run_id}': it runs, or it was pruned")
    published = Published.model_validate_json(ended)
    result = await read_result(store, published.result_ref)
    problems: list[str] = []
    answer = result.answer
    if published.answer_ref:
        answer = await _text(store, published.answer_ref, problems) or answer
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
    rows = [row for link in links for row in _rows(link)]
    rows += [f"✘ {safe_line(problem, limits.ERROR_BYTES)}" for problem in problems]
    rows += [f"{len(links)} claims, {doubted} in doubt · confidence {confidence}"]
    code = FAILED if problems or doubted else DONE
    return Report({"claims": links, "problems": problems}, lambda _: rows, code=code)


def _rows(link: Link) -> Iterator[str]:
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
    """Reads a finding, its record and the outputs behind it; each is held against its hash by the store."""
    problems: list[str] = []
    text = await _text(store, finding.text_ref, problems)
    stored = await _text(store, finding.record_ref, problems) if finding.record_ref else ""
    record = FindingRecord.model_validate_json(stored) if stored else FindingRecord()
    refs = {item.output_ref for item in record.evidence if item.output_ref}
    outputs = {ref: await _text(store, ref, problems) for ref in sorted(refs)}
    return Grounded(
        text=text,
        evidence=record.evidence,
        outputs=outputs,
        problems=problems,
        unsupported=record.unsupported,
        grounding=record.grounding,
    )


async def _text(store: ArtifactStore, ref: str, problems: list[str]) -> str:
    """Returns the text at a reference; empty, with a problem, if it is not what was stored there."""
    try:
        return (await store.get(ref)).decode("utf-8", "replace")
    except (ArtifactChanged, ArtifactMissing) as error:
        problems.append(str(error))
        return ""
