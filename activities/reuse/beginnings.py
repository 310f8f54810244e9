"""The start of a run that builds on earlier ones: their data, and the words for its planner."""

from activities.contracts.run_contracts import RunRef, SetupInput
from activities.files.manifest import Manifest
from activities.reuse.begun_runs import BegunRun
from activities.reuse.earlier_runs import WORKS, EarlierRuns
from activities.store.artifacts import ArtifactMissing, ArtifactStore
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Finding, Labels
from temporal_supervisor.supervision.contract.request import RunRequest, invalid_request
from temporal_supervisor.supervision.reuse.earlier import EarlierWork


async def find_beginnings(runs: EarlierRuns | None, setup: SetupInput) -> list[BegunRun]:
    """Returns the beginnings of the runs that a run builds on; none for a nested run.

    Raises SupervisionError `InvalidRequest` for a run that the request may not name.
    """
    request = setup.request
    if setup.brief is not None or not request.reuse_from:
        return []
    if runs is None:
        raise invalid_request("reuse_from: this Worker reads no earlier runs")
    return await runs.require(request.reuse_from, setup.run.run_id, request.owner)


def begun_run(
    run: RunRef,
    request: RunRequest,
    goal_ref: str,
    team_ref: str,
    attachments: list[ArtifactRef],
) -> BegunRun:
    """Returns the record of a starting run, for later runs that build on it."""
    return BegunRun(
        run_id=run.run_id,
        first_run_id=run.first_run_id,
        owner=request.owner,
        goal_ref=goal_ref,
        team_ref=team_ref,
        attachments=attachments,
        files_ref=run.files_ref,
        effort=request.effort,
        day=run.date,
        reuse_from=request.reuse_from,
    )


async def with_earlier_data(
    store: ArtifactStore,
    run_id: str,
    earlier: list[BegunRun],
    own: tuple[list[ArtifactRef], str],
) -> tuple[list[ArtifactRef], str]:
    """Returns the texts and files of a run, with those of the first run that it builds on.

    The run's own come first: an earlier text of the same name is left out, and so are all earlier
    files if it has files.
    """
    attachments, files_ref = own
    if not earlier:
        return own
    texts, files = await _copy_data(store, run_id, earlier[0], with_files=not files_ref)
    names = {item.name for item in attachments}
    more = [item for item in texts if item.name not in names]
    return [*attachments, *more], files_ref or files


async def _copy_data(
    store: ArtifactStore,
    run_id: str,
    earlier: BegunRun,
    *,
    with_files: bool,
) -> tuple[list[ArtifactRef], str]:
    """Copies the attached texts of an earlier run into a run, and with `with_files` its files.

    Returns the texts, and the manifest of the files. Raises SupervisionError `InvalidRequest` if
    they are no longer stored.
    """
    try:
        texts = []
        for item in earlier.attachments:
            ref = await store.copy_output(run_id, item.ref)
            texts.append(item.model_copy(update={"ref": ref}))
        files_ref = ""
        if earlier.files_ref and with_files:
            files_ref = await _copy_files(store, run_id, earlier.files_ref)
    except ArtifactMissing:
        words = f"reuse_from: the files of run '{earlier.run_id}' are no longer stored"
        raise invalid_request(f"{words}: attach them again") from None
    return texts, files_ref


async def _copy_files(store: ArtifactStore, run_id: str, files_ref: str) -> str:
    """Copies the files of an earlier run into a run. Returns their new manifest."""
    manifest = Manifest.model_validate_json(await store.get(files_ref))
    entries = []
    for file in manifest.files:
        parts = [await store.copy_output(run_id, part) for part in file.parts]
        entries.append(file.model_copy(update={"parts": parts}))
    return await store.put_output(run_id, Manifest(files=entries).model_dump_json())


async def store_planner_words(
    store: ArtifactStore,
    runs: EarlierRuns | None,
    request: RunRequest,
    earlier: list[BegunRun],
    run_id: str,
) -> tuple[str, Labels]:
    """Stores the planner's words on earlier runs. Returns their reference, and their labels.

    The reference is empty for a caller's plan that names none of their findings.
    """
    subtasks = request.plan.subtasks if request.plan else []
    depends_on = [other for subtask in subtasks for other in subtask.depends_on]
    needs_words = request.plan is None or any("/" in other for other in depends_on)
    if not needs_words or runs is None or not earlier:
        return "", Labels()

    works: list[EarlierWork] = []
    findings: list[Finding | None] = []
    for number, begun in enumerate(earlier, 1):
        run = await runs.load(begun.run_id, request.owner)
        if run is not None:
            works.append(await runs.work(run, f"r{number}"))
            findings += [report.finding for report in run.reports]
    ref = await store.put_output(run_id, WORKS.dump_json(works))
    return ref, Labels.of(findings)
