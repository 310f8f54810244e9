"""kill -9 of the only Worker amid an eval: each question is judged once, and nothing is paid twice."""

import asyncio
from collections import Counter

from tests.replay.replaying import replayer
from tests.scripted_model import Reply, Step, when
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
