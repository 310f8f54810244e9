"""Limits of replies: of plan and answer by the request, of a role's turns by its own, and what a cut answer does."""

from typing import Any

from tests.scripted_model import answer, stop
from tests.workflow.runs import Lab
from tests.workflow.scripts import FOUND, in_order, item, plans, subtasks, with_replies

ROLES = [
    {"name": "terse", "description": "Counts ripe pears.", "system_prompt": "You count.", "max_tokens": 700},
    {"name": "other", "description": "Weighs ripe apples.", "system_prompt": "You weigh."},
]
TEAM: dict[str, Any] = {"name": "own", "generalist": "terse", "roles": ROLES}


def limit(lab: Lab, step: str) -> int:
    return int(lab.call(step).step.body["max_tokens"])


async def test_each_reply_has_the_limit_of_its_role_else_that_of_the_request(lab: Lab) -> None:
    turn = in_order(FOUND)
    lab.play(plans(subtasks(item("t1", "terse"), item("t2", "other")), turns={"t1": turn, "t2": turn}))
    assert (await lab.run(team=TEAM, max_tokens=1200)).status == "completed"
    steps = ("plan.1.1", "t1/1/turn.1", "t2/1/turn.1", "synthesis.1")
    assert [limit(lab, step) for step in steps] == [1200, 700, 1200, 1200]


async def test_an_answer_that_is_cut_at_the_limit_is_asked_for_again_shorter(lab: Lab) -> None:
    usual = plans(subtasks(item("t1", "other")), turns={"t1": in_order(FOUND)})
    replies = in_order(stop("max_tokens", '{"answer": "It is lo'), answer("It is short.", ["t1"]))
    lab.play(with_replies(usual, synthesis=replies))
    result = await lab.run(team=TEAM, max_tokens=1200)
    assert result.answer.startswith("It is short.")
    assert limit(lab, "synthesis.2") == 1200
    assert "cut off after 1,200 tokens. Write a shorter one." in lab.prompt("synthesis.2")
