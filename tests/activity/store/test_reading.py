"""Findings as they are read into a prompt: whole where they fit, cut by weight where they do not."""

from pathlib import Path

import pytest

from activities.contracts.packed import DependencyRef
from activities.prompts.agent_prompts import findings_block
from activities.store.artifacts import ArtifactStore, open_store
from activities.store.reading import FindingExcerpt, read_findings, with_findings
from supervision.base import limits
from supervision.contract.finding import Evidence, FindingRecord


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return open_store(str(tmp_path / "artifacts"))


async def finding(store: ArtifactStore, subtask_id: str, text: str, weight: float = 0.5) -> DependencyRef:
    ref = await store.put_output("run", text.encode())
    return DependencyRef(subtask_id=subtask_id, role="analyst", text_ref=ref, weight=weight)


async def test_findings_that_fit_are_read_whole_and_in_order(store: ArtifactStore) -> None:
    refs = [await finding(store, "t2", "zwölf"), await finding(store, "t1", "eleven", 0.1)]
    assert await read_findings(store, refs, 11) == [
        FindingExcerpt("t2", "analyst", "zwölf"),
        FindingExcerpt("t1", "analyst", "eleven"),
    ]


async def test_findings_of_less_weight_are_cut_first_and_say_how_much_is_missing(store: ArtifactStore) -> None:
    refs = [await finding(store, "t1", "a" * 5000), await finding(store, "t2", "b" * 5000, 0.1)]
    heavy, light = [finding.text for finding in await read_findings(store, refs, 2285)]
    assert heavy == "a" * 5000
    kept = light.count("b")
    assert light == "b" * kept + f"\n[… {5000 - kept} characters left out here]"
    assert 2950 <= len(light) <= 3000


@pytest.mark.parametrize("budget", [0, 1, 30, 1000, 50_000, 400_000])
async def test_all_findings_together_stay_within_the_budget(store: ArtifactStore, budget: int) -> None:
    refs = [await finding(store, f"t{n}", "x" * 1000 * n, 0.1 if n % 3 else 0.9) for n in range(20)]
    texts = [finding.text for finding in await read_findings(store, refs, int(budget / limits.CHARS_PER_TOKEN))]
    assert sum(map(len, texts)) <= budget
    assert len(texts) == 20


async def test_texts_of_other_scripts_are_cut_by_their_bytes(store: ArtifactStore) -> None:
    refs = [await finding(store, "t1", "x" * 9000), await finding(store, "t2", "数" * 9000)]
    latin, other = [(await read_findings(store, [ref], 1000))[0].text for ref in refs]
    assert len(latin) <= 1000 * limits.CHARS_PER_TOKEN
    assert len(other.encode()) <= 1000 * limits.CHARS_PER_TOKEN
    assert "characters left out here" in other


async def test_what_findings_rest_on_takes_a_share_of_the_room_and_the_last_calls_stay(store: ArtifactStore) -> None:
    refs = []
    for number in range(10):
        calls = [Evidence(tool="look", arguments=f"call {call}.", preview="a row of pears " * 20) for call in range(60)]
        record = await store.put_output("run", FindingRecord(evidence=calls).model_dump_json().encode())
        refs.append((await finding(store, f"t{number}", "44 pears")).model_copy(update={"record_ref": record}))

    def write(findings: list[FindingExcerpt]) -> str:
        return findings_block(findings, with_evidence=True)

    prompt = await with_findings(store, refs, write, 8_000)
    assert prompt.count("Rests on") == prompt.count("call 59.") * 2 == 20
    assert len(prompt) < 8_000 * limits.CHARS_PER_TOKEN
    assert (await with_findings(store, refs, write, 100_000)).count("Rests on") == 250
