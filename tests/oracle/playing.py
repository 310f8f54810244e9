"""Playing plays: each is a run of an eval, over the whole path, with a scripted model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temporalio.client import Client

from activities.contracts.eval_contracts import EVAL_TYPE, TABLE, EvalInput, EvalResult, OwnLimits
from activities.files.manifest import MANIFEST_TYPE, found_files, put_files
from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base.store_keys import named_key
from temporal_supervisor.supervision.scores.eval_plan import EvalSet, EvalVariant
from temporal_supervisor.supervision.scores.score_table import EvalTable
from tests.oracle.plays import Part, Play
from tests.scripted_model import OTHERS, Reply, Script, Step, answer, plan, tools

_SURE = 0.9  # what the scripted model says of all it writes, faulty or not
_SECONDS = 600  # of one run, on a machine with other work


def script_of(plays: Sequence[Play]) -> Script:
    """Returns the replies to all runs, each by the last part of its id."""
    by_name = {play.name: play for play in plays}

    def reply(step: Step) -> Reply:
        play = by_name[step.run_id.rpartition("/")[2]]
        if step.kind == "plan":
            return plan(*_subtasks(play))
        if step.kind == "turn":
            part = play.parts[int((step.subtask_id or "t1").removeprefix("t")) - 1]
            return tools(*part.calls) if step.number == 1 else _finish(part)
        if step.kind == "synthesis":
            return answer(play.answer, answer_json=play.fields)
        return OTHERS[step.kind](step)

    return reply


def _subtasks(play: Play) -> list[dict[str, Any]]:
    numbered = enumerate(play.parts, 1)
    return [{"id": f"t{at}", "role": part.role, "description": part.description} for at, part in numbered]


def _finish(part: Part) -> Reply:
    told = {"finding": part.finding, "limitations": [], "confidence": _SURE, "outcome": "done"}
    return tools(("finish", {**told, "summary": part.finding.splitlines()[0][:200]}))


async def played(
    client: Client,
    store: ArtifactStore,
    eval_id: str,
    folder: Path,
    plays: Sequence[Play],
    parallel: int = 4,
) -> EvalTable:
    """Returns the table of the eval of these plays, whose data are in a folder; an empty one without plays."""
    if not plays:
        return EvalTable(eval_id=eval_id, name="oracle")
    data = dict[str, dict[str, Any]]()
    for name in {play.question.data for play in plays}:
        files = found_files([folder / str(name)])
        ref = await put_files(store, files)
        data[str(name)] = {"name": "files", "ref": ref, "media_type": MANIFEST_TYPE}
    questions = [play.question.model_copy(update={"id": play.name}) for play in plays]
    variants = [EvalVariant(label="oracle", request={"team": "files"})]
    whole = EvalSet(name="oracle", questions=questions, variants=variants, data=data)
    ref = await store.put_upload(whole.model_dump_json().encode())
    own = OwnLimits(tokens=1_000_000, usd=None, seconds=_SECONDS)
    given = EvalInput(set_ref=ref, name="oracle", total=whole.total, own=own, parallel=parallel)
    await client.execute_workflow(
        EVAL_TYPE,
        given,
        id=eval_id,
        task_queue="supervisor",
        result_type=EvalResult,
    )
    return EvalTable.model_validate_json(await store.get(named_key("scores", eval_id, TABLE)))
