"""Findings as they are read into a prompt: whole where they fit, cut by weight where they do not."""

from pathlib import Path
from typing import Any

import pytest

from activities.contracts.packed import DependencyRef
from activities.prompts.agent_prompts import findings_block
from activities.store.artifacts import ArtifactStore, open_store
from activities.store.reading import FindingExcerpt, read_findings, with_findings
from supervision.base import limits
from supervision.contract.finding import CheckedClaim, FindingRecord


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return open_store(str(tmp_path / "artifacts"))


async def finding(
    store: ArtifactStore, subtask_id: str, text: str, weight: float = 0.5, **record: Any
) -> DependencyRef:
    ref = await store.put_output("run", text.encode())
    stored = await store.put_output("run", FindingRecord(**record).model_dump_json().encode()) if record else ""
    return DependencyRef(subtask_id=subtask_id, role="analyst", text_ref=ref, weight=weight, record_ref=stored)


async def test_findings_that_fit_are_read_whole_and_in_order(store: ArtifactStore) -> None:
    refs = [await finding(store, "t2", "zwölf"), await finding(store, "t1", "eleven", 0.1)]
    assert await read_findings(store, refs, 11) == [
        FindingExcerpt("t2", "analyst", "zwölf"),
        FindingExcerpt("t1", "analyst", "eleven"),
    ]


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


async def test_a_text_without_a_summary_is_cut_and_says_how_much_is_missing(store: ArtifactStore) -> None:
    refs = [await finding(store, "t1", "a" * 1000), await finding(store, "t2", "b" * 9000)]
    first, second = [one.text for one in await read_findings(store, refs, 1000)]
    assert first == "a" * 1000
    kept = second.count("b")
    assert second == "b" * kept + f"\n[… {9000 - kept} characters left out here]"
    assert 2450 <= len(second) <= 2500


@pytest.mark.parametrize("budget", [0, 1, 30, 1000, 50_000, 400_000])
async def test_all_findings_together_stay_within_the_budget(store: ArtifactStore, budget: int) -> None:
    refs = [await finding(store, f"t{n}", "x" * 1000 * n, 0.1 if n % 3 else 0.9) for n in range(20)]
    texts = [finding.text for finding in await read_findings(store, refs, int(budget / limits.CHARS_PER_TOKEN))]
    assert sum(map(len, texts)) <= budget
    assert len(texts) == 20


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
