"""kill -9 of the only Worker amid an eval: each question is judged once, and nothing is paid twice."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

import pytest

from temporal_supervisor.supervision.scores.question_sets import EvalQuestion
from tests.replay.replaying import replayer
from tests.scripted_model import Call, Reply, Step, when
from tests.serving import WorkerProcesses, store_of
from tests.waiting import until
from tests.workflow.evals import Says, asked, begun, number, saying, table_in
from tests.workflow.runs import Lab
from workflows.eval_workflow import EvalWorkflow

QUESTIONS = [
    number("right", 44),
    number("silent", 45),
    asked("flagged", "text", "Rome"),
    asked("open", "none"),
    number("unknown", 7),
    number("refused", 3),
]
REPLIES = {
    "right": Says(44),
    "silent": Says(44),
    "flagged": Says(44, {"value": "Paris"}, "The 44 pears are from Paris"),
    "open": Says(44, {"value": None}, "The catalogue does not say it"),
    "unknown": Says(44, {"value": None, "scale": ""}, "The catalogue does not say it"),
    "refused": None,
}
VERDICTS = {
    "right": "right",
    "silent": "wrong_unflagged",
    "flagged": "wrong_flagged",
    "open": "refused_rightly",
    "unknown": "refused_wrongly",
    "refused": "failed",
}

PARALLEL = 2


@pytest.mark.long
async def test_a_kill_amid_an_eval_judges_each_question_once_and_pays_nothing_twice(
    lone: Lab, workers: WorkerProcesses
) -> None:
    eval_id, released = f"eval-{lone.run_id}", asyncio.Event()
    held, usual = f"{eval_id}/flagged/t1/1/turn.2", saying(REPLIES)

    def reply(step: Step) -> Reply:
        return when(released, usual(step)) if step.call == held else usual(step)

    for question in QUESTIONS:
        lone.model.play(f"{eval_id}/{question.id}", reply)
    worker = await workers.start()
    store = await store_of(lone.client, workers.artifacts)
    handle = await begun(lone.client, store, eval_id, QUESTIONS, parallel=PARALLEL)
    await until(lambda: any(call.step.call == held for call in lone.model.calls), 60)
    worker.kill()
    released.set()
    await workers.start()
    result = await asyncio.wait_for(handle.result(), 120)
    assert (result.status, result.n) == ("completed", len(QUESTIONS))
    table = await table_in(store, eval_id)
    assert {score.case: score.verdict for score in table.scores} == VERDICTS
    assert [score.flags for score in table.scores if score.case in ("right", "silent")] == [[], []]
    sent = Counter(call.step.call for call in lone.model.calls if call.step.run_id.startswith(f"{eval_id}/"))
    twice = [call for call, times in sent.items() if times > 1]
    # Of each of the two runs at work the call that was under way at the kill.
    assert held in twice
    assert len({call.split("/")[1] for call in twice}) == len(twice) <= PARALLEL
    assert result.usage.model_calls == sum(score.usage.model_calls for score in table.scores)
    replayed = await replayer(EvalWorkflow).replay_workflow(await handle.fetch_history())
    assert replayed.replay_failure is None


MANY, FEW = 500, 60
KILLS = 5


def repeated_though_done(calls: Sequence[Call], kills: Sequence[float]) -> list[str]:
    """Returns the calls that were sent again although none of the kills can have lost their answers.

    A kill loses the answers under way: of each workflow those to the last call before it.
    """
    sent = dict[str, list[Call]]()
    last_before = dict[tuple[str, float], str]()
    for call in calls:
        sent.setdefault(call.step.call, []).append(call)
        for kill in kills:
            if call.at < kill:
                last_before[call.step.call.rpartition("/")[0], kill] = call.step.call
    lost = Counter(last_before.values())
    return [name for name, each in sent.items() if len(each) - 1 > lost[name]]


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_five_kills_amid_two_evals_judge_each_question_once_and_pay_nothing_twice(
    lone: Lab, workers: WorkerProcesses
) -> None:
    evals = dict[str, list[EvalQuestion]]()
    for name, size in (("many", MANY), ("few", FEW)):
        evals[f"eval-{lone.run_id}-{name}"] = [number(f"q{at}", 44 + at % 2) for at in range(size)]
    usual = saying({f"q{at}": Says(44) for at in range(MANY)})
    for eval_id, questions in evals.items():
        for question in questions:
            lone.model.play(f"{eval_id}/{question.id}", usual)
    worker = await workers.start()
    store = await store_of(lone.client, workers.artifacts)
    begun_ones = [await begun(lone.client, store, name, asked_ones, parallel=8) for name, asked_ones in evals.items()]
    kills, first = list[float](), len(lone.model.calls)
    for at in range(1, KILLS + 1):
        reached = first + at * 4 * MANY // (KILLS + 1)
        await until(lambda reached=reached: len(lone.model.calls) >= reached, 1200)
        worker.kill()
        kills.append(time.time())
        worker = await workers.start()
    results = [await asyncio.wait_for(handle.result(), 1800) for handle in begun_ones]
    for (eval_id, questions), result in zip(evals.items(), results, strict=True):
        assert (result.status, result.n) == ("completed", len(questions))
        table = await table_in(store, eval_id)
        assert [score.case for score in table.scores] == [question.id for question in questions]
        assert result.counts == {"right": len(questions) // 2, "wrong_unflagged": len(questions) // 2}
        assert result.usage.model_calls == sum(score.usage.model_calls for score in table.scores)
    calls = lone.model.calls[first:]
    assert len({call.step.call for call in calls}) == 4 * (MANY + FEW)
    assert repeated_though_done(calls, kills) == []
    assert len(calls) - 4 * (MANY + FEW) <= KILLS * 2 * 8  # at most those under way at each kill
