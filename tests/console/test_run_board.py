"""The board of a run's live page: what is new is sent, once rendered, and nothing else."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.page.page_guard import Door
from temporal_supervisor.console.page.page_site import PageSite
from temporal_supervisor.console.page.run_board import (
    ITEMS_AT_ONCE,
    LINES,
    LINES_AT_ONCE,
    ROWS_FOLDED,
    ROWS_UNFOLDED,
    RowView,
    RunBoard,
)
from temporal_supervisor.console.view.event_lines import Line
from temporal_supervisor.console.view.live_view import Picture
from temporal_supervisor.supervision.contract.result import SubtaskReport

BEGAN = "2026-11-02T09:30:00+00:00"


@pytest.fixture
def board() -> RunBoard:
    """An empty board."""
    return RunBoard(PageSite(Access(), Door.of([])).text, "/runs/r")


def picture_of(count: int, state: str = "waiting") -> Picture:
    """A run in which a template has so many items."""
    template = SubtaskReport(id="t2", role="reader", state="running")
    items = [SubtaskReport(id=f"t2.{n}", role="reader", state=state) for n in range(1, count + 1)]
    return Picture("r", reports={report.id: report for report in [template, *items]})


def news(board: RunBoard, since: int) -> dict[str, Any]:
    return dict(json.loads(board.news(since)))


def test_only_the_row_that_changed_is_sent(board: RunBoard) -> None:
    picture = picture_of(1000)
    board.update_tree(picture, {})
    before = board.version
    assert news(board, 0)["parts"].keys() == {"tree"}

    changed = picture.reports["t2.500"]
    changed.state, changed.started_at = "running", BEGAN
    board.update_tree(picture, {"t2.500": "turn 1: Calling query_data."})
    sent = news(board, before)["parts"]
    assert list(sent) == ["r501", "g-r2"]
    assert "Calling query_data." in sent["r501"]
    assert "1 running" in sent["g-r2"]
    assert len(board.news(before)) < 2000
    assert news(board, board.version)["parts"] == {}


def test_many_items_are_folded_and_few_are_not(board: RunBoard) -> None:
    board.update_tree(picture_of(1000), {})
    whole = board.tree()
    assert whole.count("<li ") == 1  # the template: its items come when somebody opens them
    assert "1,000 items of t2" in whole
    assert len(whole) < 2000
    few = RunBoard(board.render, "/runs/r")
    few.update_tree(picture_of(5), {})
    assert few.tree().count("<li ") == 6
    assert "<details" not in few.tree()


def test_folded_items_come_some_at_a_time_and_by_their_state(board: RunBoard) -> None:
    picture = picture_of(450)
    picture.reports["t2.7"].state = "failed"
    board.update_tree(picture, {})
    places, start = [], 0
    while True:
        found = board.folded("t2", start=start)
        places += found.rows
        if not found.following:
            break
        start = found.following
    assert start == 2 * ITEMS_AT_ONCE
    assert len(places) == len(set(places)) == 450
    failed = board.folded("t2", "failed")
    assert (failed.total, failed.following) == (1, 0)
    assert "t2.7" in failed.rows[0]
    assert board.folded("t9").rows == []


def test_most_of_very_many_planned_subtasks_are_folded_some_under_each_head(board: RunBoard) -> None:
    names = [f"t{number}" for number in range(1, 1001)]
    reports = {name: SubtaskReport(id=name, role="reader", description="Weigh the pears") for name in names}
    picture = Picture("r", reports=reports)
    board.update_tree(picture, {})
    whole = board.tree()
    assert whole.count("<li ") == ROWS_FOLDED
    assert whole.count("<details ") == 9
    assert len(whole) < 100_000
    heads = [f"t{start} to t{start + 99}" for start in range(101, 1001, 100)]
    assert [row.row.path for head in heads for row in rows_of(board, head)] == names[ROWS_FOLDED:]
    assert "100 waiting" in whole

    before = board.version
    reports["t950"].state = "running"
    board.update_tree(picture, {})
    sent = news(board, before)["parts"]
    assert list(sent) == ["r950", "g-r901"]
    assert "1 running" in sent["g-r901"]
    assert [len(board.folded("t901 to t1000", state).rows) for state in ("running", "waiting")] == [1, 99]


def rows_of(board: RunBoard, name: str) -> list[RowView]:
    """The rows of a fold."""
    found = board.folded(name)
    assert (len(found.rows), found.total, found.following) == (100, 100, 0)
    return [board._rows[path] for path in board._folds[name].paths]


def test_a_plan_of_some_more_subtasks_than_fit_is_not_folded_for_a_few(board: RunBoard) -> None:
    def tree_of(count: int) -> str:
        reports = {f"t{number}": SubtaskReport(id=f"t{number}") for number in range(count)}
        made = RunBoard(board.render, "/runs/r")
        made.update_tree(Picture("r", reports=reports), {})
        return made.tree()

    assert (tree_of(ROWS_UNFOLDED).count("<li "), tree_of(ROWS_UNFOLDED).count("<details ")) == (ROWS_UNFOLDED, 0)
    more = tree_of(2 * ROWS_FOLDED + 5)
    assert (more.count("<li "), more.count("<details ")) == (ROWS_FOLDED + 5, 1)


def test_items_of_two_templates_and_of_nested_runs_are_apart(board: RunBoard) -> None:
    """In a tree the items of one template may stand right below those of another."""

    def items(template: str) -> dict[str, SubtaskReport]:
        named = [f"{template}.{n}" for n in range(1, 21)]
        return {name: SubtaskReport(id=name, role="reader") for name in named}

    crew = SubtaskReport(id="t1", role="crew", workflow_id="w1")
    picture = Picture("r", reports={"t1": crew, **items("t2"), **items("t3")})
    picture.nested = {"w1": items("t2")}
    board.update_tree(picture, {})
    whole = board.tree()
    for template in ("t1/t2", "t2", "t3"):
        assert f"20 items of {template}<" in whole
        assert board.folded(template).total == 20


def test_a_page_comes_with_the_newest_events_and_the_others_are_asked_for(board: RunBoard) -> None:
    at = datetime(2026, 11, 2, tzinfo=UTC)
    lines = [Line(at, "t1", f"event {number}.", "plain", ()) for number in range(LINES_AT_ONCE + 30)]
    board.add_lines(lines)
    newest = board.newest_lines()
    assert len(newest) == LINES_AT_ONCE
    assert f"event {LINES_AT_ONCE + 29}." in newest[0]
    older = board.older_lines(board.older_than)
    assert len(older) == 30
    assert "event 29." in older[0]
    begun = news(board, 0)
    assert (len(begun["lines"]), begun["older_than"]) == (LINES_AT_ONCE, board.older_than)
    assert "older_than" not in news(board, 1)


def test_an_event_that_is_read_late_stands_by_its_time(board: RunBoard) -> None:
    def at(second: int) -> Line:
        return Line(datetime(2026, 11, 2, 9, second // 60, second % 60, tzinfo=UTC), "t1", f"event {second}.")

    board.add_lines([at(second) for second in range(0, 2 * LINES, 2)])
    before = board.version
    board.add_lines([at(2 * LINES - 5), at(1)])
    newest = board.newest_lines()
    assert [f"event {2 * LINES - back}." in newest[place] for place, back in enumerate((2, 4, 5, 6))] == [True] * 4
    (late,) = news(board, before)["lines"]  # the other one is older than all that a page keeps
    assert f"event {2 * LINES - 5}." in late
    older = board.older_lines(board.older_than)
    assert len(newest) + len(older) == LINES
    assert f"event {2 * LINES - 202}." in older[1]


def test_a_new_plan_sends_the_tree_anew(board: RunBoard) -> None:
    board.update_tree(picture_of(2), {})
    before = board.version
    board.update_tree(picture_of(3), {})
    assert news(board, before)["parts"].keys() == {"tree"}


def test_events_come_once_and_foreign_text_is_text(board: RunBoard) -> None:
    at = datetime(2026, 11, 2, tzinfo=UTC)
    board.add_lines([Line(at, "t1", "<script>pwned()</script> \u202e", "plain", ("why: <b>",))])
    (line,) = news(board, 0)["lines"]
    assert "&lt;script&gt;" in line
    assert "&lt;U+202E&gt;" in line
    assert "<b>" not in line
    assert news(board, board.version)["lines"] == []


def test_a_part_is_rendered_only_when_what_it_shows_is_new(board: RunBoard) -> None:
    board.update_part("writing", "one", "writing.html.j2", tail="one")
    version = board.version
    board.update_part("writing", "one", "writing.html.j2", tail="not rendered")
    assert board.version == version
    board.update_part("writing", "two", "writing.html.j2", tail="two")
    assert news(board, version)["parts"].keys() == {"writing"}
