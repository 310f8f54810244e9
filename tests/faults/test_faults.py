"""Planted faults on the real server: nearly all are noticed, none reads as sure, and honest runs raise no alarm.

The runs all take place at once, before the first test: the tests look at how each of them ended. Of the many claims
that code alone finds without support, as the tests of the look-up do, each sixth is played; `make test-long` plays all.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.results.confidence import SURE
from tests.faults import plays
from tests.faults.planted import FAULTS, Fault
from tests.faults.plays import Play
from tests.scripted_model import ScriptedModel
from tests.serving import store_of
from tests.workflow import runs

AT_ONCE = 16
pytestmark = pytest.mark.timeout(180)  # of the first test, which all runs come before
PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
ALIKE = [fault for fault in FAULTS if (fault.sign, fault.by) == ("unsupported", "code")]
OTHERS = [fault for fault in ALIKE if ALIKE.index(fault) % 6]
PLAYED = [fault for fault in FAULTS if fault not in OTHERS]
HONEST = {id(fault.honest): (fault.name, fault.honest) for fault in FAULTS}


@dataclass(frozen=True)
class Ending:
    """How a run ended: its result, or the partial one of a failed run, and how often the model was called."""

    result: RunResult
    failed: bool
    calls: list[str]

    @property
    def signs(self) -> set[str]:
        """By what a reader sees that something is wrong."""
        result = self.result
        states = {report.id: report.state for report in result.subtasks}
        open_points = [gap for gap in result.gaps if states.get(gap.subtask_id) == "completed"]
        confidence = result.confidence
        seen = {
            "failed run": self.failed,
            "unsupported": bool(result.unsupported),
            "gap": len(result.gaps) > len(open_points),
            "open point": bool(open_points),
            "contradiction": bool(result.contradictions),
            "lower confidence": confidence is not None and confidence < SURE,
        }
        return {sign for sign, is_seen in seen.items() if is_seen}


Endings = dict[int, Ending]
Player = Callable[[Iterable[Play]], Awaitable[Endings]]


@pytest.fixture(scope="module")
async def player(client: Client, model: ScriptedModel, settings: Settings, worker: None) -> AsyncIterator[Player]:
    """Plays runs, some at a time; how they ended is told by the identity of their play."""
    turn = asyncio.Semaphore(AT_ONCE)
    folder = Path((await store_of(client, settings.artifacts_url)).url)

    async def ended(play: Play) -> Ending:
        async with turn:
            run_id = f"fault-{uuid4().hex[:12]}"
            model.play(run_id, play.script(folder))
            fields = {"max_reviews": len(play.reviews), "max_replans": 0, "deadline": "PT10M", **play.fields}
            handle = await runs.start(client, run_id, "orchard", goal=plays.GOAL, **fields)
            try:
                result = await asyncio.wait_for(handle.result(), 110)
            except WorkflowFailureError as error:
                foreseen = cast(ApplicationError, error.cause)
                return Ending(runs.partial_result(foreseen), True, model.steps(run_id))
            return Ending(result, False, model.steps(run_id))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "ATTEMPT_PAUSE", timedelta())
        patch.setattr(limits, "ROLE_BREAKER_COOLDOWN", timedelta(milliseconds=50))

        async def played(given: Iterable[Play]) -> Endings:
            every = {id(play): play for play in given}
            return dict(zip(every, await asyncio.gather(*map(ended, every.values())), strict=True))

        yield played


@pytest.fixture(scope="module")
async def endings(player: Player) -> Endings:
    """How the played runs and the honest ones ended."""
    return await player([*(fault.faulty for fault in PLAYED), *(play for _, play in HONEST.values())])


def complaint(fault: Fault, ending: Ending) -> str:
    """Returns why a planted fault counts as missed; nothing if it is noticed and the answer does not read as sure."""
    result = ending.result
    reads_as_sure = result.status == "completed" and result.confidence is not None and result.confidence >= SURE
    if fault.sign in ending.signs and not reads_as_sure:
        return ""
    return f"{fault.name}: {ending.signs}, {result.confidence}, {result.answer}, {ending.calls}"


@pytest.mark.parametrize("fault", PLAYED, ids=lambda fault: fault.name.replace(" ", "_"))
async def test_a_planted_fault_is_noticed_and_no_answer_with_it_reads_as_sure(fault: Fault, endings: Endings) -> None:
    assert complaint(fault, endings[id(fault.faulty)]) == ""


@pytest.mark.long
async def test_all_other_planted_faults_are_noticed(player: Player) -> None:
    ended = await player(fault.faulty for fault in OTHERS)
    assert len(OTHERS) >= 20
    assert [missed for fault in OTHERS if (missed := complaint(fault, ended[id(fault.faulty)]))] == []


@pytest.mark.parametrize("honest", HONEST.values(), ids=lambda case: case[0].replace(" ", "_"))
async def test_the_same_run_without_the_fault_raises_no_alarm(honest: tuple[str, Play], endings: Endings) -> None:
    play = honest[1]
    ending = endings[id(play)]
    result = ending.result
    assert (result.status, result.unsupported, result.gaps, result.contradictions) == ("completed", [], [], [])
    assert len(ending.calls) == play.calls, ending.calls
    assert result.confidence == (plays.SURE if play.answers else 1.0)


def test_the_page_lists_every_fault_and_its_sign() -> None:
    assert len(FAULTS) >= 40
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (code|reviewer) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(fault.name, fault.sign, fault.by) for fault in FAULTS]
