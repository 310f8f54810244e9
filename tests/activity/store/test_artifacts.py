"""The artifact store: the same promises from a local directory and from an S3 API server; samples of runs in it."""

import asyncio
import hashlib
import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.contracts.run_contracts import DependencyRef
from activities.prompts.prompt_blocks import findings_block
from activities.store.artifacts import ArtifactMissing, ArtifactStore, ArtifactUnavailable
from activities.store.contents import read_contents
from activities.store.reading import FindingExcerpt, read_findings, with_findings
from activities.store.spending import RunSpend, keep_run_spend, keep_sample, newest_samples, run_spends
from activities.store.store_urls import open_store
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import SupervisionError
from temporal_supervisor.supervision.base.store_keys import (
    call_key,
    is_upload,
    output_key,
    run_of,
    run_prefix,
    spend_prefix,
    stats_prefix,
)
from temporal_supervisor.supervision.base.text import size
from temporal_supervisor.supervision.contract.finding import CheckedClaim, FindingRecord
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.planning.estimate import CandidateUsage, RunSample

UUID = "0190f6a2-7a1c-7c3e-9b58-1f0f3a6f7d10"


def key_of(step: str, run: str = "run") -> str:
    return call_key(run, UUID, run, step, "ab" * 32)


async def test_namespaces_that_share_a_store_see_nothing_of_each_other(store_url: str) -> None:
    whole, ours, theirs = open_store(store_url), open_store(store_url, "ours"), open_store(store_url, "the/irs")
    await ours.put("run/goal", b"first")
    await theirs.put("run/goal", b"second")
    assert await ours.list_keys() == ["run/goal"]
    assert sorted(await whole.list_keys()) == ["ours/run/goal", "the%2Firs/run/goal"]
    assert await ours.begin() != await theirs.begin()
    assert await ours.delete_run("run/") == 1
    assert await theirs.get("run/goal") == b"second"


async def test_of_many_who_create_at_once_one_wins_and_all_read_the_same(store_url: str) -> None:
    stores = [open_store(store_url) for _ in range(8)]
    for round_ in range(20):
        key = key_of(str(round_))
        won = await asyncio.gather(*(store.create(key, b"%d" % n) for n, store in enumerate(stores)))
        assert won.count(True) == 1
        assert {await store.get(key) for store in stores} == {b"%d" % won.index(True)}


async def test_a_missing_object_is_named(store_url: str) -> None:
    store = open_store(store_url)
    assert await store.find("run/nothing") is None
    with pytest.raises(ArtifactMissing, match="no object 'run/nothing'") as caught:
        await store.get("run/nothing")
    assert "'run/nothing'" in caught.value.message


@pytest.mark.parametrize("key", ["../goal", "run/goal#1"])
async def test_a_bad_key_is_not_written(store_url: str, key: str) -> None:
    store = open_store(store_url)
    with pytest.raises(ValueError, match="not a key"):
        await store.put(key, b"x")
    assert await store.list_keys() == []


async def test_an_object_above_the_limit_is_refused_before_it_is_written(store_url: str) -> None:
    store = open_store(store_url)
    with pytest.raises(SupervisionError, match=str(limits.ARTIFACT_BYTES + 1)):
        await store.put("run/big", bytes(limits.ARTIFACT_BYTES + 1))
    assert await store.list_keys() == []
    assert await store.create("run/big", bytes(limits.ARTIFACT_BYTES))
    assert len(await store.get("run/big")) == limits.ARTIFACT_BYTES


async def test_equal_outputs_are_stored_once(store_url: str) -> None:
    store = open_store(store_url)
    first, again, other = [await store.put_output("run", data) for data in (b"same", b"same", b"other")]
    assert first == again == output_key("run", hashlib.sha256(b"same").hexdigest())
    assert await store.list_keys() == sorted([first, other])
    assert await store.get(first) == b"same"


async def test_uploads_and_samples_belong_to_no_run(store_url: str) -> None:
    store = open_store(store_url)
    ref = await store.put_upload(b"a report")
    assert is_upload(ref)
    assert await store.get(ref) == b"a report"
    await keep_sample(store, "t", "one", START, sample(1))
    assert (await read_contents(store))[0] == []
    assert run_prefix("stats") != "stats/"
    with pytest.raises(ValueError, match="belongs to no run"):
        run_of(f"{stats_prefix('t')}one")


async def test_what_a_run_has_cost_is_kept_as_one_sum_and_rows_of_an_older_version_are_passed_over(
    tmp_path: Path,
) -> None:
    store, spent = open_store(tmp_path), RunSpend(run_id="new", ended_at=START, usage=Usage(usd=1.0))
    await keep_run_spend(store, spent)
    old = {**spent.model_dump(mode="json"), "run_id": "old", "spend": [{"role": "r", "model": "m", "usage": {}}]}
    await store.put(f"{spend_prefix(START.date(), 'runs')}old", json.dumps(old).encode())
    assert await run_spends(store, 1, START.date()) == [spent, spent.model_copy(update={"run_id": "old"})]
    assert b'"spend"' not in await store.get(f"{spend_prefix(START.date(), 'runs')}new")


async def test_deleting_a_run_leaves_those_whose_ids_only_begin_alike(store_url: str) -> None:
    store = open_store(store_url)
    doomed, alike = "run", ["run2", "run.2", "run/2", "run%2F2", "RUN", "ru", "a" * 250, "a" * 251]
    for run in [doomed, *alike]:
        await store.put(f"{run_prefix(run)}goal", b"goal")
        await store.put_output(run, b"output")
        await store.put(key_of("1", run), b"entry")
    assert await store.delete_run(run_prefix(doomed)) == 3
    assert {run.key for run in (await read_contents(store))[0]} == {run_prefix(run) for run in alike}
    assert await store.list_keys(run_prefix(doomed)) == []
    assert await store.delete_run(run_prefix(doomed)) == 0
    assert await store.delete_run(run_prefix(alike[-1])) == 3
    assert len(await store.list_keys(run_prefix(alike[-2]))) == 3


@pytest.mark.parametrize("prefix", ["", "run/outputs/", "uploads/", "stats/"])
async def test_what_is_not_one_run_is_never_deleted(store_url: str, prefix: str) -> None:
    store = open_store(store_url)
    await store.put("run/goal", b"x")
    await store.put_output("run", b"y")
    with pytest.raises(ValueError, match="no run|one run"):
        await store.delete_run(prefix)
    assert len(await store.list_keys("run/")) == 2


async def test_more_objects_than_one_page_holds_are_listed_and_deleted(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")
    store = open_store(store_url)
    await asyncio.gather(*(store.put(key_of(str(n)), b"") for n in range(35)))
    assert len(await store.list_keys("run/")) == 35
    assert await store.delete_run("run/") == 35
    assert await store.list_keys() == []


async def test_what_a_killed_writer_left_is_no_object_and_no_obstacle(tmp_path: Path) -> None:
    """Kills of Workers wherever they are: `tests/recovery/test_kill.py`."""
    store = open_store(tmp_path)
    await store.put("run/goal", b"old")
    (tmp_path / "run" / "goal#1").write_bytes(b"half an obj")
    assert await store.list_keys("run/") == ["run/goal"]
    await store.put("run/goal", b"new")
    assert await store.get("run/goal") == b"new"
    assert await store.delete_run("run/") == 1
    assert list(tmp_path.iterdir()) == []


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Makes the system refuse to write larger files, as it does when a disk is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_write_that_fails_halfway_leaves_nothing_and_says_why(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with no_file_above(1024 * 1024), pytest.raises(ArtifactUnavailable) as caught:
        await store.create("run/big", bytes(3 * 1024 * 1024))
    assert str(tmp_path) in str(caught.value)
    assert "File too large" in str(caught.value)
    assert "space left" in str(caught.value)
    assert await store.find("run/big") is None
    assert await store.create("run/big", b"later")


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("s3://", "Check the bucket"),
        ("file://var/artifacts", "names no directory: .*file:///directory"),
        ("s3://key:hush@bucket/prefix", "credentials go into variables"),
        ("az://container/prefix", "AZURE_STORAGE_"),
    ],
)
def test_a_url_that_names_no_store_is_refused_in_one_sentence(
    url: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(ValueError, match=complaint) as caught:
        open_store(url)
    assert "\n" not in str(caught.value)
    assert "hush" not in str(caught.value)


async def test_a_missing_bucket_is_not_taken_for_a_missing_object(s3_environment: str) -> None:
    store = open_store("s3://no-such-bucket-here/prefix")
    for doing in (store.find("run/goal"), store.put("run/goal", b""), store.list_keys(), store.identity()):
        with pytest.raises(
            ArtifactUnavailable, match="s3://no-such-bucket-here/prefix.*NoSuchBucket.*Check the bucket"
        ):
            await doing


async def test_an_unreachable_service_is_unavailable_and_no_secret_is_told(
    s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://user:hush@127.0.0.1:9")
    monkeypatch.setattr(limits, "STORE_REQUEST_RETRIES", 0)
    store = open_store(s3_url)
    with pytest.raises(ArtifactUnavailable, match="could not write 'run/goal'.*AWS_ENDPOINT_URL") as caught:
        await store.put("run/goal", b"")
    assert caught.value.__cause__ is None
    for secret in ("hush", "a-secret-that-nobody-may-see", "AKIATESTTESTTEST"):
        assert secret not in str(caught.value)


async def test_plain_http_beyond_loopback_needs_consent(s3_environment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STORE_REQUEST_RETRIES", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio.invalid:9000")
    with pytest.raises(ArtifactUnavailable, match="builder error.*AWS_ALLOW_HTTP=true"):
        await open_store("s3://bucket").find("run/goal")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with pytest.raises(ArtifactUnavailable) as sent:
        await open_store("s3://bucket").find("run/goal")
    assert "builder error" not in str(sent.value)


@pytest.mark.parametrize(
    ("url", "variable"), [("s3://bucket", "AWS_ENDPOINT"), ("az://container", "AZURE_STORAGE_ENDPOINT")]
)
async def test_no_variable_but_the_consent_lets_a_credential_go_unencrypted(
    url: str, variable: str, s3_environment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STORE_REQUEST_RETRIES", 0)
    for name, value in {"AZURE_STORAGE_ACCOUNT_NAME": "us", "AZURE_STORAGE_ACCOUNT_KEY": "aHVzaA=="}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(variable, "http://elsewhere.invalid:9000")
    with pytest.raises(ArtifactUnavailable, match="builder error"):
        await open_store(url).find("run/goal")


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return open_store(str(tmp_path / "artifacts"))


async def finding(
    store: ArtifactStore, subtask_id: str, text: str, weight: float = 0.5, **record: Any
) -> DependencyRef:
    ref = await store.put_output("run", text.encode())
    stored = await store.put_output("run", FindingRecord(**record).model_dump_json().encode()) if record else ""
    return DependencyRef(subtask_id=subtask_id, role="analyst", text_ref=ref, weight=weight, record_ref=stored)


async def test_findings_that_do_not_fit_give_way_to_their_authors_summaries(store: ArtifactStore) -> None:
    """Two of 102 KB: the conclusion stands at their ends, and in their summaries."""
    rows = "| a row of pears | 17 |\n" * 4500
    refs = [
        await finding(store, "t1", f"{rows}It grew by 12 %.", 0.9, summary="It grew by 12 %."),
        await finding(store, "t2", f"{rows}It fell by 4 %.", 0.1, summary="It fell by 4 %."),
    ]
    heavy, light = await read_findings(store, refs, 40_000)
    assert (heavy.text[-16:], heavy.summarised) == ("It grew by 12 %.", False)
    assert (light.text, light.summarised) == ("It fell by 4 %.", True)
    assert 'shown="summary"' in findings_block([light])
    assert [one.text for one in await read_findings(store, refs, 100)] == ["It grew by 12 %.", "It fell by 4 %."]


@pytest.mark.parametrize("budget", [0, 1, 30, 1000, 50_000, 400_000])
async def test_all_findings_together_stay_within_the_budget(store: ArtifactStore, budget: int) -> None:
    refs = [await finding(store, f"t{n}", "x" * 1000 * n, 0.1 if n % 3 else 0.9) for n in range(20)]
    texts = [finding.text for finding in await read_findings(store, refs, int(budget / limits.CHARS_PER_TOKEN))]
    assert sum(map(size, texts)) <= budget
    assert len(texts) == 20


async def test_a_finding_that_is_cut_says_so(store: ArtifactStore) -> None:
    [cut] = await read_findings(store, [await finding(store, "t1", "x" * 1000)], 50)
    assert cut.text.endswith("x\n[… the rest of this finding is left out here]")


async def test_sources_and_checked_claims_of_many_findings_take_a_share_of_the_room(store: ArtifactStore) -> None:
    claims = [CheckedClaim(text=f"{n} kg", source="look pears", line="a row of pears " * 10) for n in range(40)]
    sources = [f"the harvest book of {year}" for year in range(2000, 2030)]
    refs = [await finding(store, f"t{n}", "44 pears", checked=claims, sources=sources) for n in range(10)]

    def write(findings: list[FindingExcerpt]) -> str:
        return findings_block(findings, with_evidence=True)

    prompt = await with_findings(store, refs, write, 8_000)
    assert len(prompt) < 8_000 * limits.CHARS_PER_TOKEN
    assert prompt.count('"0 kg" <- look pears: a row of pears') == 10
    assert prompt.count("Source: the harvest book of 2000") == 10
    whole = await with_findings(store, refs, write, 100_000)
    assert whole.count("<- look pears") > prompt.count("<- look pears")
    assert whole.count("Source: ") == 100


START = datetime(2026, 1, 1, tzinfo=UTC)


def sample(calls: float) -> RunSample:
    return RunSample(parts=[], rest=CandidateUsage(), total=CandidateUsage(calls=calls))


async def test_the_newest_samples_of_a_team_are_kept(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for number in range(203):
        await keep_sample(store, "a/b", f"run {number}", START + timedelta(seconds=number), sample(number))
    await keep_sample(store, "other", "run", START, sample(1))
    assert [kept.total.calls for kept in await newest_samples(store, "a/b")] == [*range(3, 203)]
    assert len(await store.list_keys(stats_prefix("a/b"))) == 200
    await keep_sample(store, "a/b", "run 202", START + timedelta(seconds=202), sample(7))  # tried once more
    assert [kept.total.calls for kept in await newest_samples(store, "a/b")][-2:] == [201, 7]
