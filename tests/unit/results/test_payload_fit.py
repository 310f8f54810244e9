"""Results fit into a payload, and still say which subtask ended how."""

import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import size
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Finding
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.progress import Counts
from temporal_supervisor.supervision.contract.result import (
    Citation,
    Contradiction,
    Gap,
    Problem,
    RunResult,
    SubtaskReport,
)
from temporal_supervisor.supervision.contract.status import RunLimits, Status
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.results.payload_fit import PAYLOAD_ROOM_BYTES, cut_to, fit, pages

STATES = ["completed", "failed", "skipped", "cancelled", "running", "waiting"]
fillings = st.sampled_from(["a", "é", "漢", "🦜", '"', "\x01", "\n"])


def subtask_report(index: int, text: str, id_bytes: int) -> SubtaskReport:
    subtask_id = f"t{index}".ljust(id_bytes, "x")
    return SubtaskReport.model_validate(
        {
            "id": subtask_id,
            "role": "researcher",
            "description": text,
            "state": STATES[index % len(STATES)],
            "depends_on": [f"t{index - 1}"] if index else [],
            "attempts": 1,
            "turns": 4,
            "finding": Finding(
                summary=text,
                text_ref="run/outputs/" + "f" * 64,
                sources=[text[:50]] * 30,
                limitations=[text] * 5,
                artifacts=[ArtifactRef(name=text[:50], ref="r")],
            ),
            "error": Problem(type="TurnLimit", message=text),
            "started_at": "2026-01-01T00:00:00+00:00",
            "finished_at": "2026-01-01T00:00:00+00:00",
            "usage": Usage(model_calls=4, input_tokens=123_456, usd=0.0123456),
            "workflow_id": f"supervise-which-region-grew-most-4f2a/{subtask_id}/1",
        }
    )


def result(count: int, text: str, id_bytes: int = 0) -> RunResult:
    reports = [subtask_report(n, text, id_bytes) for n in range(count)]
    ids = [report.id for report in reports]
    return RunResult(
        answer=text,
        answer_json={"rows": [text]},
        gaps=[Gap(subtask_id=r.id, reason=text) for r in reports if r.state != "completed"],
        contradictions=[Contradiction(subtask_ids=ids, description=text, resolution=text)] * 30,
        citations=[Citation(claim=text, subtask_ids=ids)] * 100,
        subtasks=reports,
        artifacts=[ArtifactRef(name=text[:50], ref="r")] * 50,
        warnings=[text] * 30,
        usage=Usage(model_calls=7),
        result_ref="run/result",
    )


def check_kept(small: RunResult, whole: RunResult) -> None:
    assert [(r.id, r.state) for r in small.subtasks] == [(r.id, r.state) for r in whole.subtasks]
    assert [g.subtask_id for g in small.gaps] == [g.subtask_id for g in whole.gaps]
    assert (small.usage, small.status, small.result_ref) == (whole.usage, whole.status, whole.result_ref)


@given(st.integers(0, 60), fillings, st.integers(0, 3000))
def test_a_result_of_usual_size_always_fits(count: int, letter: str, length: int) -> None:
    whole = result(count, letter * length)
    before = whole.model_dump_json()
    small = fit(whole)
    assert size(small.model_dump_json()) <= limits.PAYLOAD_AIM_BYTES
    assert small.truncated == (size(before) > limits.PAYLOAD_AIM_BYTES)
    assert whole.model_dump_json() == before
    check_kept(small, whole)
    assert fit(small) == small


@given(st.integers(0, 12), st.integers(0, 3000), st.integers(3_000, 100_000))
def test_any_limit_with_room_for_the_ids_is_kept(count: int, length: int, limit: int) -> None:
    whole = result(count, "ä" * length)
    small = fit(whole, limit)
    assert size(small.model_dump_json()) <= max(limit, 8_500)
    check_kept(small, whole)


def test_the_largest_run_stays_below_the_hard_cap_and_decodes() -> None:
    for id_bytes, limit in ((0, 1.6 * limits.PAYLOAD_AIM_BYTES), (64, limits.PAYLOAD_HARD_BYTES)):
        whole = result(limits.MAX_SUBTASKS, "\x01漢" * 300, id_bytes)
        small = fit(whole)
        payload = small.model_dump_json()
        assert size(payload) <= limit
        assert small.truncated
        check_kept(RunResult.model_validate_json(payload), whole)
        assert all({"id", "state"} <= item.keys() for item in json.loads(payload)["subtasks"])


def test_a_page_of_status_keeps_all_subtasks_and_stays_below_the_hard_cap() -> None:
    reports = result(limits.STATUS_PAGE, "漢字 " * 1200).subtasks
    in_force = RunLimits(max_subtasks=1000, max_parallel=200, max_turns=200, deadline_seconds=60)
    page = cut_to(
        Status(goal="g", team="t", phase="executing", subtasks=reports, limits=in_force, deadline_at=""),
        limits.PAYLOAD_HARD_BYTES,
    )
    assert [(r.id, r.state, r.depends_on) for r in page.subtasks] == [(r.id, r.state, r.depends_on) for r in reports]
    assert size(page.model_dump_json()) <= limits.PAYLOAD_HARD_BYTES


def test_a_plan_keeps_all_that_its_run_needs() -> None:
    names = [f"file-{number}.csv" for number in range(32)]
    subtasks = [
        Subtask(id=f"t{number}", description="d" * 4000, depends_on=[f"t{n}" for n in range(number)], attachments=names)
        for number in range(60)
    ]
    plan = Plan(subtasks=subtasks)
    small = cut_to(plan, limits.PAYLOAD_AIM_BYTES)
    assert size(small.model_dump_json()) <= limits.PAYLOAD_AIM_BYTES
    without = {"subtasks": {"__all__": {"description"}}}
    assert small.model_dump(exclude=without) == plan.model_dump(exclude=without)
    assert len({subtask.description for subtask in small.subtasks}) == 1


GAP_BYTES = size(Gap(subtask_id="t0", reason="x" * 200).model_dump_json()) + 1


@given(st.lists(st.integers(0, 900), max_size=30), st.integers(200, 1500))
@example([200] * 4, 2 * GAP_BYTES)
@example([200] * 4, 2 * GAP_BYTES - 1)
def test_pages_hold_all_items_in_order_and_no_more_bytes_than_they_may(lengths: list[int], limit: int) -> None:
    gaps = [Gap(subtask_id=f"t{n}", reason="x" * length) for n, length in enumerate(lengths)]
    parts = pages(gaps, limit)
    assert [gap for part in parts for gap in part] == gaps
    assert all(parts) or parts == [[]]
    assert all(len(part) == 1 or sum(size(gap.model_dump_json()) + 1 for gap in part) <= limit for part in parts)
    full = [sum(size(gap.model_dump_json()) + 1 for gap in part) for part in parts]
    assert all(this + following > limit for this, following in pairwise(full))


# --- the order in which texts give way ------------------------------------------------------------


def stages(whole: RunResult) -> Iterator[RunResult]:
    """Yields the result as it is shortened step by step: each time it has one byte less than it takes."""
    small, before = whole, None
    while small != before:
        small, before = fit(whole, size(small.model_dump_json()) - 1), small
        if small.subtasks[0].finding is None:
            return
        yield small


def one_finding() -> RunResult:
    text = "w" * 5000
    finding = Finding(
        summary=text,
        text_ref="run/outputs/f",
        sources=["s" * 200] * 30,
        limitations=[text] * 30,
        record_ref="run/outputs/r",
    )
    report = SubtaskReport(id="t1", state="completed", description=text, finding=finding)
    gap = Gap(subtask_id="t2", description=text, reason=text)
    artifacts = [ArtifactRef(name="n" * 200, ref="r")] * 600
    return RunResult(answer="a", answer_json=[text], gaps=[gap], subtasks=[report], artifacts=artifacts)


def test_texts_and_lists_become_shorter_step_by_step_and_references_stay_whole() -> None:
    whole, seen = one_finding(), []
    for small in [*stages(whole)][1:]:
        (report,) = small.subtasks
        assert report.finding is not None
        assert size(report.description) == size(report.finding.summary)
        assert size(small.gaps[0].reason) == min(size(report.description), limits.PARAGRAPH_BYTES)
        assert {size(source) for source in report.finding.sources} == {200}
        assert (report.finding.text_ref, report.finding.record_ref) == ("run/outputs/f", "run/outputs/r")
        lists = len(small.artifacts), len(report.finding.sources)
        seen.append((size(report.description), *lists, small.answer_json == whole.answer_json))
        assert small.answer_json in (whole.answer_json, None)
    assert seen == [
        (2048, 200, 20, True), (600, 200, 20, False), (200, 100, 10, False), (24, 10, 1, False),
    ]  # fmt: skip


# --- limits to the byte ---------------------------------------------------------------------------


def test_a_result_of_exactly_the_limit_stays_as_it_is() -> None:
    whole = result(3, "short")
    assert fit(whole, size(whole.model_dump_json())) is cut_to(whole, size(whole.model_dump_json())) is whole


def test_a_shortened_result_of_exactly_the_limit_is_shortened_no_further() -> None:
    for small in stages(one_finding()):
        assert fit(one_finding(), size(small.model_dump_json())) == small


@pytest.mark.parametrize(("length", "kept"), [(10_000, 10_000), (10_001, 10_000), (19_000, 10_000)])
def test_the_answer_keeps_half_of_the_payload(length: int, kept: int) -> None:
    whole = one_finding().model_copy(update={"answer": "a" * length, "artifacts": []})
    assert size(fit(whole, 20_000).answer) == kept


def test_of_what_was_made_the_tables_of_templates_stay() -> None:
    whole = result(9, "word " * 1000)
    whole.subtasks[3].counts = Counts(total=1)
    whole.artifacts = [ArtifactRef(name="n", ref="r", subtask_id=f"t{n}") for n in range(9)]
    assert [artifact.subtask_id for artifact in fit(whole, 3_000).artifacts] == ["t3"]


def test_beyond_the_hard_cap_the_first_subtasks_and_gaps_stay_and_a_warning_says_so() -> None:
    whole = result(3 * limits.MAX_SUBTASKS, "word", id_bytes=64)
    fitted, few = fit(whole), limits.STATUS_PAGE
    assert size(fitted.model_dump_json()) <= PAYLOAD_ROOM_BYTES
    assert fitted.warnings[0].startswith("of 3000 subtasks and 2500 gaps the first 100 are here")
    assert [r.id for r in fitted.subtasks] == [r.id for r in whole.subtasks[:few]]
    assert [gap.subtask_id for gap in fitted.gaps] == [gap.subtask_id for gap in whole.gaps[:few]]


def test_a_few_gaps_keep_their_reasons_when_the_rows_of_many_subtasks_give_way() -> None:
    reports = [subtask_report(number, "word " * 400, 0) for number in range(0, 480, 6)]  # completed, all of them
    gaps = [Gap(subtask_id=f"x{n}", description=f"part {n}", reason=f"the server refused part {n}") for n in range(3)]
    fitted = fit(RunResult(answer="a", subtasks=reports, gaps=gaps))
    assert fitted.truncated
    assert [(gap.description, gap.reason) for gap in fitted.gaps] == [(gap.description, gap.reason) for gap in gaps]
    assert [report.id for report in fitted.subtasks] == [report.id for report in reports]
