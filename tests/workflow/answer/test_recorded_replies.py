"""Runs of a small model as it was recorded: each ends, and none is wrong without a mark."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from temporal_supervisor.bundled import BUILTIN_TEAMS
from temporal_supervisor.supervision.contract.result import RunResult
from tests.real.questions import QUESTIONS, ROOT, judged
from tests.recorded import RECORDED, script_of
from tests.scripted_model import ScriptedModel, scripted_model
from tests.serving import own_server, settings_for
from tests.workflow.runs import start
from worker_main import serving

WINDOW = 16_384
SHOP = ROOT / "examples" / "shop" / "data"
BY_NAME = {question.name: question for question in QUESTIONS}


@pytest.fixture(scope="module")
async def small(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Client, ScriptedModel]]:
    """A client of a server whose Worker has the bundled teams, and a model with a small window."""
    folder = tmp_path_factory.mktemp("small")
    async with scripted_model() as model:
        settings = settings_for(
            model.url,
            folder,
            teams_dir=BUILTIN_TEAMS,
            model_window={"*": WINDOW},
            model_structured="text",
            supervisor_model="small",
            worker_model="small",
        )
        async with own_server() as client, serving(client, settings):
            yield client, model


def request_of(name: str) -> dict[str, Any]:
    """The team and the data of a question: of the shop the notes and the small table."""
    if not name.startswith("s"):
        return {"team": "almanac"}
    files = {"umsatzziele.csv": "latin-1", "notes/carriers.md": "utf-8", "notes/returns.md": "utf-8"}
    texts = {file: (SHOP / file).read_text(encoding) for file, encoding in files.items()}
    return {"team": "files", "attachments": [{"name": Path(file).name, "text": said} for file, said in texts.items()]}


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
async def test_no_recorded_run_is_wrong_without_a_mark(
    small: tuple[Client, ScriptedModel], case: dict[str, Any]
) -> None:
    client, model = small
    question = BY_NAME[case["question"]]
    run_id = f"recorded-{RECORDED.index(case)}"
    model.play(run_id, script_of(case))
    handle = await start(client, run_id, goal=question.text, max_replans=2, max_reviews=3, **request_of(question.name))
    result: RunResult | None = None
    with contextlib.suppress(WorkflowFailureError):  # it has no answer at all, which is true as well
        result = await handle.result()
    assert not [step for step in model.steps(run_id) if step.startswith("review")]
    shown = None if result is None else result.model_dump(mode="json")
    assert judged(question, shown) != "wrong", shown
    if expected := case.get("verdict"):
        assert judged(question, shown) == expected, shown
