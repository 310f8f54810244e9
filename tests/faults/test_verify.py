"""The command `verify`: the chain from an answer's claims to the outputs of tools, recomputed from the store."""

import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.console.base.command import DONE, FAILED
from temporal_supervisor.console.commands.evidence_commands import chain_report
from temporal_supervisor.runtime.settings import Settings
from tests.faults.plays import NOTED, QUOTE, YEARS, Play, answering
from tests.scripted_model import ScriptedModel
from tests.serving import store_of
from tests.workflow import runs

pytestmark = pytest.mark.usefixtures("worker")


class Verifier:
    """Plays a run and verifies it."""

    def __init__(self, client: Client, model: ScriptedModel, store: ArtifactStore, capsys: Any) -> None:
        self._client, self._model, self._capsys = client, model, capsys
        self._store, self.folder = store, Path(store.url)

    async def play(self, run_id: str, play: Play) -> None:
        self._model.play(run_id, play.script(self.folder))
        await runs.run(self._client, run_id, "orchard", goal="How did it grow?", max_reviews=1, max_replans=0)

    async def verify(self, run_id: str) -> tuple[int, dict[str, dict[str, Any]], list[str]]:
        """Returns the exit code, the claims by their text, and the problems."""
        code = (await chain_report(run_id, self._store)).print_to(as_json=True)
        printed = json.loads(self._capsys.readouterr().out)
        return code, {link["text"]: link for link in printed["claims"]}, printed["problems"]

    def output_with(self, run_id: str, words: str) -> Path:
        outputs = (self.folder / run_id / "outputs").iterdir()
        return next(path for path in outputs if path.read_bytes().startswith(words.encode()))


@pytest.fixture
async def verifier(
    client: Client, model: ScriptedModel, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> Verifier:
    return Verifier(client, model, await store_of(client, settings.artifacts_url), capsys)


async def test_each_claim_is_traced_to_findings_and_calls_and_a_changed_byte_names_it(
    verifier: Verifier, run_id: str
) -> None:
    await verifier.play(run_id, YEARS)
    code, links, problems = await verifier.verify(run_id)
    assert (code, problems) == (DONE, [])
    assert {text: link["findings"] for text, link in links.items() if link["kind"] == "figure"} == {
        "4,412 kg": ["t1", "t3"],
        "2009": ["t1", "t3"],
        "4,950 kg": ["t2", "t3"],
        "2010": ["t2", "t3"],
        "12.2 %": ["t3"],
    }
    assert [call["tool"] for call in links["12.2 %"]["outputs"]] == ["calculate"]
    assert [(call["tool"], call["arguments"]) for call in links["4,412 kg"]["outputs"]][0] == (
        "harvest",
        '{"year": 2009}',
    )
    assert [link["findings"] for link in links.values() if link["kind"] == "citation"] != []
    for words in ("Harvest of 2010", "The garden yielded 4,950"):  # a tool's output, a finding
        path = verifier.output_with(run_id, words)
        stored = path.read_bytes()
        path.write_bytes(stored.replace(b"950", b"951"))
        code, links, problems = await verifier.verify(run_id)
        path.write_bytes(stored)
        assert code == FAILED
        assert "is not what was stored" in links["4,950 kg"]["problem"] or any("is not what was" in p for p in problems)
        assert any(path.name in problem for problem in problems)
        assert "is not what was stored" in next(
            link["problem"] for link in links.values() if link["kind"] == "citation" and "t2" in link["findings"]
        )


async def test_a_quotation_is_traced_to_its_page(verifier: Verifier, run_id: str) -> None:
    await verifier.play(run_id, NOTED)
    code, links, _ = await verifier.verify(run_id)
    assert code == DONE
    assert [call["arguments"] for call in links[QUOTE]["outputs"]] == ['{"page": 1}']


async def test_a_claim_without_support_is_named(verifier: Verifier, run_id: str) -> None:
    await verifier.play(run_id, answering(YEARS, "It was 3,871 kg in 2008 [t1]."))
    code, links, problems = await verifier.verify(run_id)
    assert code == FAILED
    assert links["3,871 kg"]["problem"] == "no finding has it"
    assert "'3,871 kg' (answer) has no support" in problems
