"""The layout of the artifact store and the call header: readable, harmless, never ambiguous."""

import re
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from supervision.base import store_keys as keys
from supervision.base.store_keys import KEY_SEGMENT_BYTES

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


def test_an_ordinary_id_stays_readable() -> None:
    run = "supervise-which-region-grew-most-4f2a"
    uuid = "0190f6a2-7a1c-7c3e-9b58-1f0f3a6f7d10"
    assert keys.call_key(run, uuid, f"{run}/t1/1", "turn.7", "ab" * 32) == (
        f"{run}/{uuid}/{run}%2Ft1%2F1/turn.7/{'ab' * 32}"
    )
    assert keys.output_key(run, "ab" * 32) == f"{run}/outputs/{'ab' * 32}"
    assert keys.named_key(run, "result") == f"{run}/result"
    assert keys.encode("team v1.2/ä") == "team%20v1.2%2F%C3%A4"


@given(st.lists(ids, min_size=5, max_size=5))
@example(["..", "a..b", ".", "...", "a."])
def test_keys_hold_nothing_that_a_store_could_misread(parts: list[str]) -> None:
    for key in (
        keys.call_key(*parts),
        keys.output_key(parts[0], parts[1]),
        keys.named_key(parts[0], parts[1]),
        keys.grant_key(parts[0], parts[1]),
    ):
        assert keys.is_key(key)
        assert ".." not in key
        assert "//" not in key
        assert re.fullmatch(r"[!-~]+", key)
        assert not key.startswith("/")
        assert all(len(segment) <= KEY_SEGMENT_BYTES and segment != "." for segment in key.split("/"))


@given(ids, ids)
@example("a~b", "a%7Eb")
@example("a.", "a%2E")
@example("x" * 300, "x" * 301)
@example("x" * 300, keys.encode("x" * 300))
@example("store-id", keys.encode("store-id"))
def test_different_ids_have_different_segments(one: str, other: str) -> None:
    assert (keys.encode(one) == keys.encode(other)) == (one == other)


@given(st.tuples(ids, uuids, ids), st.tuples(ids, uuids, ids))
def test_different_objects_have_different_keys(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    def all_of(run: str, uuid: str, last: str) -> list[str]:
        return [
            call(run, uuid, last),
            keys.output_key(run, last),
            keys.named_key(run, last),
            keys.STORE_ID,
        ]

    assert len(set(all_of(*one))) == 4
    assert (call(*one) == call(*other)) == (one == other)
    different = set(all_of(*one)) & set(all_of(*other)) - {keys.STORE_ID}
    assert not different or one[0] == other[0]


@given(st.tuples(ids, uuids, ids), st.tuples(ids, uuids, ids))
@example(("a", "0" * 8, "1"), ("a", "0" * 8, "12"))
def test_no_object_lies_where_another_needs_a_folder(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    files = {
        key
        for run, uuid, last in (one, other)
        for key in (
            call(run, uuid, last),
            keys.output_key(run, last),
            keys.named_key(run, last),
        )
    } | {keys.STORE_ID}
    assert not [(a, b) for a in files for b in files if b.startswith(f"{a}/")]


@given(ids, ids, ids)
@example("a", "ab", "x")
@example("run", "run.2", "x")
@example("run", "run/2", "x")
@example("y" * 250, "y" * 251, "x")
def test_the_prefix_of_a_run_fits_no_key_of_another_run(run: str, other: str, name: str) -> None:
    assert keys.named_key(run, name).startswith(keys.run_prefix(run))
    if run != other:
        assert not keys.named_key(other, name).startswith(keys.run_prefix(run))
        assert not call(other, run, name).startswith(keys.run_prefix(run))


@given(awkward, ids)
def test_the_run_can_be_read_back_from_a_key(run: str, name: str) -> None:
    encoded = keys.encode(run)
    assert keys.run_of(keys.named_key(run, name)) == (encoded if "~" in encoded else run)


def test_a_key_without_a_run_is_told_so() -> None:
    for key in (keys.STORE_ID, "", "/goal", keys.upload_key("ab" * 32)):
        with pytest.raises(ValueError, match="no run"):
            keys.run_of(key)


@given(ids, uuids, ids)
@example("uploads", "0" * 8, "x")
def test_no_object_of_a_run_passes_for_an_upload(run: str, uuid: str, name: str) -> None:
    assert keys.is_upload(keys.upload_key("ab" * 32))
    for ref in (
        keys.named_key(run, name),
        call(run, uuid, name),
        keys.output_key(run, name),
        keys.STORE_ID,
    ):
        assert not keys.is_upload(ref)
    for ref in ("uploads", "uploads/", "uploads/a/b", "uploads/..", "../uploads/a"):
        assert not keys.is_upload(ref)


def test_an_empty_id_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        call("run", "", "1")


def test_a_long_id_keeps_a_readable_prefix_without_half_an_escape() -> None:
    for length in range(60, 80):
        encoded = keys.encode("a" * length + "ü" * 100)
        prefix, _, digest = encoded.partition("~")
        assert prefix.startswith("a" * length)
        assert re.fullmatch(r"a+(%C3|%BC)*", prefix)
        assert re.fullmatch(r"[0-9a-f]{64}", digest)


@pytest.mark.parametrize(
    "text", ["", "/", "a/", "/a", "a//b", "../a", "a/..", ".", "a b", "a#1", "a\n", "ä", "a/b/c/d/e/f", "x" * 201]
)
def test_what_is_no_key_is_not_taken_for_one(text: str) -> None:
    assert not keys.is_key(text)


def test_the_call_header_reads_like_the_ids_it_is_made_of() -> None:
    assert keys.call_header("supervise-x/t1/2", "turn.3") == "supervise-x/t1/2/turn.3"
    assert keys.call_header("order:17 ä", "refine.t 1.2") == "order:17%20%C3%A4/refine.t%201.2"


@given(ids, ids, st.integers(1, 99))
def test_the_call_header_fits_one_line_and_tells_calls_apart(one: str, other: str, turn: int) -> None:
    header = keys.call_header(one, f"turn.{turn}")
    assert re.fullmatch(r"[!-~]+", header)
    assert len(header) <= 2 * KEY_SEGMENT_BYTES + 1
    assert (header == keys.call_header(other, f"turn.{turn}")) == (one == other)
    if "~" not in header:
        assert unquote(header, errors="surrogatepass") == f"{one}/turn.{turn}"


RUN, EXECUTION, SHA = "run 1", "0190f6a2-7a1c-7c3e-9b58-1f0f3a6f7d10", "ab" * 32


def test_the_layout_is_as_written_down() -> None:
    written = {
        keys.run_prefix(RUN): "run%201/",
        keys.calls_prefix(RUN, EXECUTION): f"run%201/{EXECUTION}/",
        keys.effect_key(RUN, "2.0"): "run%201/started/2.0.effect",
        keys.result_key(RUN, "2.0"): "run%201/started/2.0.result",
        keys.call_key(RUN, EXECUTION, f"{RUN}/t1/1", "turn.3", SHA): (
            f"run%201/{EXECUTION}/run%201%2Ft1%2F1/turn.3/{SHA}"
        ),
        keys.team_key(RUN, SHA): f"run%201/team.{SHA}",
        keys.grant_key(RUN, SHA): f"run%201/grant.{SHA}",
        keys.ended_key(RUN, EXECUTION): f"run%201/ended.{EXECUTION}",
        keys.upload_key(SHA): f"uploads/{SHA}",
    }
    assert list(written) == list(written.values())


def test_an_id_is_kept_whole_up_to_the_bytes_of_a_segment() -> None:
    longest = "x" * KEY_SEGMENT_BYTES
    assert keys.encode(longest) == longest
    assert len(keys.encode(f"{longest}x")) == KEY_SEGMENT_BYTES


@pytest.mark.parametrize(
    ("key", "digest", "ended", "team", "grant", "upload"),
    [
        (keys.upload_key(SHA), SHA, False, False, False, True),
        (keys.output_key(RUN, SHA), SHA, False, False, False, False),
        (keys.team_key(RUN, SHA), SHA, False, True, False, False),
        (keys.team_key("run 2", SHA), SHA, False, False, False, False),
        (keys.grant_key(RUN, SHA), SHA, False, False, True, False),
        (keys.grant_key("run 2", SHA), SHA, False, False, False, False),
        (keys.ended_key(RUN, EXECUTION), None, True, False, False, False),
        (keys.named_key(RUN, "goal"), None, False, False, False, False),
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
    assert (keys.digest_of(key), keys.is_ended(key)) == (digest, ended)
    assert (keys.is_team(key, RUN), keys.is_grant(key, RUN), keys.is_upload(key)) == (team, grant, upload)


# --- model calls --------------------------------------------------------------------------------------


@given(st.lists(ids, min_size=5, max_size=5), st.integers(0, 4), ids)
def test_each_part_of_a_calls_name_tells_it_from_others(parts: list[str], at: int, instead: str) -> None:
    key, other = keys.call_key(*parts), keys.call_key(*(instead if n == at else part for n, part in enumerate(parts)))
    assert (key == other) == (parts[at] == instead)
    assert key.count("/") == 4
    assert keys.digest_of(key) is None


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
