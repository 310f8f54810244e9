"""`max_parallel` counts the worker agents of the whole tree: slots are lent to nested runs, and none is stuck there."""

import asyncio

from standin.server.api_reply import ApiReply
from tests.scripted_model import Reply, Script
from tests.workflow.runs import Lab
from tests.workflow.scripts import item, subtasks
from tests.workflow.subtasks.trees import tree

USUAL = {"team": "house"}


class Turns:
    """The turns of a run: the first `held` ones are answered `together` at a time, the others at once."""

    def __init__(self, together: int, held: int) -> None:
        self._batch, self._held = asyncio.Barrier(together), held
        self._open = self.most = 0

    def within(self, script: Script) -> Script:
        """The script with its turns so."""
        return lambda step: self._counted(script(step)) if step.kind == "turn" else script(step)

    def _counted(self, then: Reply) -> Reply:
        async def reply() -> ApiReply:
            self._open += 1
            self.most = max(self.most, self._open)
            self._held -= 1
            if self._held >= 0:
                await self._batch.wait()
            self._open -= 1
            return await then()

        return reply


async def test_a_tree_has_no_more_worker_agents_at_work_than_its_root_may(lab: Lab) -> None:
    """Three nested runs of a worker agent and a nested run of two each, and one beside them: 10 worker agents."""
    storeys = {"": subtasks(*[item(f"t{n}", "storey") for n in range(3)], item("t3"))}
    for n in range(3):
        storeys[f"t{n}/1"] = subtasks(item("f1", "walker"), item("f2", "bench"))
        storeys[f"t{n}/1/f2/1"] = subtasks(item("l1", "finder"), item("l2", "finder"))
    turns = Turns(together=3, held=9)
    lab.play(turns.within(tree(storeys)))
    result = await lab.run(max_depth=3, max_parallel=3)
    assert (result.status, result.gaps) == ("completed", [])
    assert turns.most == 3
    assert sum(call.step.kind == "turn" for call in lab.calls) == 10


async def test_a_nested_run_is_lent_what_is_free_and_returns_it_for_others(lab: Lab) -> None:
    shape = subtasks(item("t1", "storey"), item("t2"), *[item(f"t{n}", depends_on=["t2"]) for n in (3, 4)])
    below = subtasks(*[item(f"f{n}", "walker") for n in range(16)])
    turns = Turns(together=4, held=12)  # three of four slots are the nested run's while t2 is at work, then two
    lab.play(turns.within(tree({"": shape, "t1/1": below})))
    result = await lab.run(max_subtasks=20, max_parallel=4)
    assert (result.status, turns.most) == ("completed", 4)
    steps = [step for step in lab.steps if "turn" in step]
    assert {"t3/1/turn.1", "t4/1/turn.1"} <= set(steps[:14]), steps
