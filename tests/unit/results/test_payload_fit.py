"""Results fit into a payload, and still say which subtask ended how."""

import json

from hypothesis import given
from hypothesis import strategies as st

from supervision import limits
from supervision.contract.finding import ArtifactRef, Finding
from supervision.contract.result import Citation, Contradiction, Gap, Problem, RunResult, SubtaskReport
from supervision.contract.usage import Usage
from supervision.results.payload_fit import fit, fit_page
from supervision.text import size

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
                sources=[text] * 30,
                limitations=[text] * 5,
                artifacts=[ArtifactRef(name=text, ref="r")],
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
        artifacts=[ArtifactRef(name=text, ref="r")] * 50,
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
    assert size(small.model_dump_json()) <= max(limit, 8_300)
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


def test_a_lost_cost_is_unknown_and_never_nothing() -> None:
    small = fit(result(limits.MAX_SUBTASKS, "long " * 40))
    decoded = RunResult.model_validate_json(small.model_dump_json())
    assert {report.usage.usd for report in decoded.subtasks} == {None}


def test_a_result_that_fits_stays_as_it_is() -> None:
    whole = result(3, "short")
    assert fit(whole) is whole


def test_texts_shrink_before_the_answer_loses_its_beginning() -> None:
    whole = result(12, "word " * 2000).model_copy(update={"answer": "The answer. " * 1000})
    small = fit(whole)
    assert small.truncated
    assert small.answer == whole.answer
    assert all(r.finding and r.finding.summary.endswith("…") for r in small.subtasks)


def test_a_page_of_subtasks_keeps_all_and_stays_below_the_hard_cap() -> None:
    reports = result(limits.STATUS_PAGE, "漢字 " * 1200).subtasks
    page = fit_page(reports)
    assert [(r.id, r.state, r.depends_on) for r in page] == [(r.id, r.state, r.depends_on) for r in reports]
    assert sum(size(r.model_dump_json()) for r in page) <= limits.PAYLOAD_HARD_BYTES
    few = result(2, "漢字").subtasks
    assert fit_page(few) == few


def test_more_gaps_than_a_payload_holds_are_counted() -> None:
    gaps = [Gap(subtask_id=f"t{n}/{m}".ljust(129, "x"), reason="why") for n in range(40) for m in range(100)]
    fitted = fit(RunResult(gaps=gaps, answer="a", result_ref="run/result"))
    assert size(fitted.model_dump_json()) < limits.PAYLOAD_HARD_BYTES
    assert fitted.warnings == [f"{len(gaps) - len(fitted.gaps)} more gaps stand only in the stored result"]
