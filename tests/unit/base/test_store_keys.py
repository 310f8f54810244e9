"""The layout of the artifact store, the call header, ids of spans: readable, harmless, never ambiguous."""

import re
from datetime import date
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base import store_keys as keys
from temporal_supervisor.supervision.base.spans import place_of, span_id, trace_id
from temporal_supervisor.supervision.base.store_keys import KEY_SEGMENT_BYTES

awkward = st.text(st.sampled_from("ab./~%:# \x00\n\x7fÄ\ud800"), min_size=1, max_size=90)
ids = st.one_of(
    awkward,
    st.text(st.characters(), min_size=1, max_size=90),
    st.text(st.sampled_from("xy"), min_size=KEY_SEGMENT_BYTES - 2, max_size=KEY_SEGMENT_BYTES + 2),
    st.sampled_from(["store-id", "outputs", "uploads", ".", "..", "...", "goal", "a" * 500, "ä" * 500, "~", "a~b"]),
)
uuids = st.uuids().map(str)


def call(run: str, first_run_id: str, workflow: str) -> str:
    """The key of a workflow's first model call."""
    return keys.call_key(run, first_run_id, workflow, "turn.1", "ab" * 32)


@given(st.lists(ids, min_size=5, max_size=5))
@example(["..", "a..b", ".", "...", "a."])
def test_keys_hold_nothing_that_a_store_could_misread(parts: list[str]) -> None:
    run, name, *_ = parts
    for key in (
        keys.call_key(*parts),
        keys.output_key(run, name),
        keys.named_key("grant", run, name),
        keys.named_key("ended", run, name),
    ):
        assert keys.is_key(key)
        assert re.fullmatch(r"[!-~]+", key)
        assert not key.startswith("/")
        assert not {"..", "//"} & {key[n : n + 2] for n in range(len(key))}
        assert all(len(segment) <= KEY_SEGMENT_BYTES and segment != "." for segment in key.split("/"))


@given(ids, ids)
@example("a~b", "a%7Eb")
@example("a.", "a%2E")
@example("x" * 300, "x" * 301)
@example("x" * 300, keys.encode("x" * 300))
@example("store-id", keys.encode("store-id"))
def test_different_ids_have_different_segments(one: str, other: str) -> None:
    assert (keys.encode(one) == keys.encode(other)) == (one == other)


def objects(run: str, uuid: str, last: str) -> set[str]:
    """Keys of three objects of a run."""
    return {call(run, uuid, last), keys.output_key(run, last), keys.named_key("ended", run, last)}


things = st.tuples(ids, uuids, ids)


@given(things, things)
@example(("a", "0" * 8, "1"), ("a", "0" * 8, "12"))
@example(("a", "0" * 8, "x"), ("ab", "0" * 8, "x"))
@example(("run", "0" * 8, "x"), ("run.2", "0" * 8, "x"))
@example(("run", "0" * 8, "x"), ("run/2", "0" * 8, "x"))
@example(("y" * 250, "0" * 8, "x"), ("y" * 251, "0" * 8, "x"))
@example(("uploads", "0" * 8, "x"), ("store-id", "0" * 8, "x"))
def test_no_object_meets_another_or_lies_where_it_needs_a_folder(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    mine, others = objects(*one), objects(*other)
    everything, prefix = mine | others | {keys.STORE_ID}, keys.run_prefix(one[0])
    assert len(mine) == 3
    assert (call(*one) == call(*other)) == (one == other)
    assert all(key.startswith(prefix) for key in mine)
    assert one[0] == other[0] or not any(key.startswith(prefix) for key in others)
    assert not [(a, b) for a in everything for b in everything if b.startswith(f"{a}/")]
    assert not any(map(keys.is_upload, everything))


@given(awkward, ids)
def test_the_run_can_be_read_back_from_a_key(run: str, name: str) -> None:
    encoded = keys.encode(run)
    assert keys.run_of(keys.named_key("ended", run, name)) == (encoded if "~" in encoded else run)


def test_what_names_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        call("run", "", "1")
    for key in (keys.STORE_ID, "", "/goal", keys.upload_key("ab" * 32)):
        with pytest.raises(ValueError, match="no run"):
            keys.run_of(key)


def test_a_long_id_keeps_a_readable_prefix_without_half_an_escape() -> None:
    longest = "x" * KEY_SEGMENT_BYTES
    assert keys.encode(longest) == longest
    assert len(keys.encode(f"{longest}x")) == KEY_SEGMENT_BYTES
    for length in range(60, 80):
        encoded = keys.encode("a" * length + "ü" * 100)
        prefix, _, digest = encoded.partition("~")
        assert prefix.startswith("a" * length)
        assert re.fullmatch(r"a+(%C3|%BC)*", prefix)
        assert re.fullmatch(r"[0-9a-f]{64}", digest)


@pytest.mark.parametrize(
    "text", ["", "a/", "uploads/", "uploads/..", "../a", "a/..", ".", "a#1", "a\n", "ä", "a/b/c/d/e/f", "x" * 201]
)
def test_what_is_no_key_is_not_taken_for_one(text: str) -> None:
    assert not keys.is_key(text)
    assert not keys.is_upload(text)


@given(ids, ids, st.integers(1, 99))
def test_the_call_header_fits_one_line_and_tells_calls_apart(one: str, other: str, turn: int) -> None:
    header = keys.call_header(one, f"turn.{turn}")
    assert re.fullmatch(r"[!-~]+", header)
    assert len(header) <= 2 * KEY_SEGMENT_BYTES + 1
    assert (header == keys.call_header(other, f"turn.{turn}")) == (one == other)
    if "~" not in header:
        assert unquote(header, errors="surrogatepass") == f"{one}/turn.{turn}"


AT = date(2026, 1, 2)
RUN, EXECUTION, SHA = "run 1", "0190f6a2-7a1c-7c3e-9b58-1f0f3a6f7d10", "ab" * 32


def test_the_layout_is_as_written_down() -> None:
    written = {
        keys.encode("team v1.2/ä"): "team%20v1.2%2F%C3%A4",
        keys.run_prefix(RUN): "run%201/",
        keys.output_key(RUN, SHA): f"run%201/outputs/{SHA}",
        keys.calls_prefix(RUN, EXECUTION): f"run%201/{EXECUTION}/",
        keys.effect_keys(RUN, "2.0"): ("run%201/started/2.0.effect", "run%201/started/2.0.result"),
        keys.call_key(RUN, EXECUTION, f"{RUN}/t1/1", "turn.3", SHA): (
            f"run%201/{EXECUTION}/run%201%2Ft1%2F1/turn.3/{SHA}"
        ),
        keys.named_key("team", RUN, SHA): f"run%201/team.{SHA}",
        keys.named_key("grant", RUN, SHA): f"run%201/grant.{SHA}",
        keys.named_key("ended", RUN, EXECUTION): f"run%201/ended.{EXECUTION}",
        keys.upload_key(SHA): f"uploads/{SHA}",
        keys.stats_prefix("crew 1"): "stats/crew%201/",
        keys.spend_prefix(AT, "runs"): "spend/2026-01-02/runs/",
        keys.call_header("order:17 ä", "refine.t 1.2"): "order:17%20%C3%A4/refine.t%201.2",
    }
    assert list(written) == list(written.values())


def test_spans_have_ids_of_the_sizes_of_opentelemetry_that_differ() -> None:
    traces, spans = ([make("r", n) for n in "abc"] for make in (trace_id, span_id))
    assert len({*traces, *spans}) == 6
    assert [max(ids).bit_length() for ids in (traces, spans)] == [128, 64]
    assert [place_of(workflow, "run/1") for workflow in ("run/1", "run/1/t1/2")] == ["run/1", "run/1/t1"]


@pytest.mark.parametrize(
    ("key", "digest", "ended", "team", "grant", "upload"),
    [
        (keys.upload_key(SHA), SHA, False, False, False, True),
        (keys.output_key(RUN, SHA), SHA, False, False, False, False),
        (keys.named_key("team", RUN, SHA), SHA, False, True, False, False),
        (keys.named_key("team", "run 2", SHA), SHA, False, False, False, False),
        (keys.named_key("grant", RUN, SHA), SHA, False, False, True, False),
        (keys.named_key("grant", "run 2", SHA), SHA, False, False, False, False),
        (keys.named_key("ended", RUN, EXECUTION), None, True, False, False, False),
        ("run%201/goal", None, False, False, False, False),
        (keys.call_key(RUN, EXECUTION, RUN, "7", SHA), None, False, False, False, False),
        (f"uploads/{SHA}/7", None, False, False, False, False),
        (f"run%201/outputs/{SHA}/7", None, False, False, False, False),
        (f"run%201/team.{SHA}/7", None, False, True, False, False),
        ("outputs", None, False, False, False, False),
        (f"run%201/team.{SHA}?", f"{SHA}?", False, False, False, False),
        (f"run%201/grant.{SHA}?", f"{SHA}?", False, False, False, False),
    ],
)
def test_a_key_says_of_what_kind_it_is(
    key: str, digest: str | None, ended: bool, team: bool, grant: bool, upload: bool
) -> None:
    assert (keys.digest_of(key), keys.is_named("ended", key), keys.is_upload(key)) == (digest, ended, upload)
    assert (keys.is_named("team", key, RUN), keys.is_named("grant", key, RUN)) == (team, grant)


# Names that the SDK and the project give: a child's begins with its parent's, with a slash.
names = st.lists(st.text("t1./% ", min_size=1, max_size=4), min_size=1, max_size=3).map("/".join)


@given(names, names, uuids)
@example("run", "run/t1/1", "0" * 8)
@example("run/t1/1", "run/t1/10", "0" * 8)
@example("run", "run.2", "0" * 8)
@example("run%2Ft1", "run/t1", "0" * 8)
def test_the_calls_of_a_workflow_are_found_with_those_of_its_children_and_no_others(
    one: str, other: str, first_run_id: str
) -> None:
    beginnings = keys.calls_of("run", first_run_id, one)
    found = call("run", first_run_id, other).startswith(beginnings)
    assert found == (other == one or other.startswith(f"{one}/"))
    assert call("run", first_run_id, one).startswith(keys.calls_prefix("run", first_run_id))
    assert not call("run", f"{first_run_id}2", one).startswith(beginnings)
    assert not call("run2", first_run_id, one).startswith(beginnings)
