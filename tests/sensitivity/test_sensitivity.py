"""What is planted is seen: one change of each kind, and none where nothing has changed."""

import pytest

from tests.sensitivity.__main__ import falls_short, scene, seen
from tests.sensitivity.changes import CHANGES
from tests.sensitivity.fleet import COUNT, HEAD, OPEN, ROW, RULES, SIGN, fleet, questions, team
from tests.sensitivity.seen import Seen, lines_of


def test_the_questions_are_answered_by_the_table_alone() -> None:
    asked = questions(fleet())
    kinds = [each.answer.kind for each in asked]
    assert (kinds.count("number"), kinds.count("none")) == (30, 10)
    assert any(isinstance(each.answer.value, int) and each.answer.value < 0 for each in asked)
    assert fleet().text().splitlines()[0] == ",".join(HEAD)
    prompts = [str(team(rules)["roles"][0]["system_prompt"]) for rules in ((), RULES)]
    for rule in (ROW, SIGN, COUNT, OPEN):
        assert [rule in prompt for prompt in prompts] == [False, True]


def test_twenty_changes_have_names_of_their_own() -> None:
    names = [change.name for change in CHANGES]
    assert len(set(names)) == len(names) == 20
    assert {name.partition(":")[0] for name in names} == {"prompt", "brain", "file", "request"}


def test_too_few_changes_or_too_many_repetitions_fall_short() -> None:
    def of(is_change: bool, is_worse: bool) -> Seen:
        counts = {"questions": 40, "right": 30, "unflagged": 2}
        return Seen(name="file: x", is_change=is_change, is_worse=is_worse, **counts)

    good = [of(True, True)] * 9 + [of(True, False)] + [of(False, False)] * 20
    assert not falls_short(good)
    assert falls_short([*good, of(True, False)])
    assert falls_short([*good, of(False, True), of(False, True)])
    first, *_, last = lines_of(good)[2:]
    assert first == "| file: x | 30 of 40 | 2 | yes |"
    assert last == "| none: the same eval 20 times again | 30 to 30 of 40 | 2 to 2 | 0 of 20 |"


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_a_change_of_each_kind_is_seen_and_a_repetition_is_not() -> None:
    kinds = {change.name.partition(":")[0]: change for change in CHANGES}
    async with scene() as own:
        found = await seen(own, [*kinds.values()], 8)
    assert [each.is_worse for each in found] == [each.is_change for each in found]
