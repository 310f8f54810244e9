"""The recorder of showcase runs: it records what a model answered, and nothing where no model is."""

from pathlib import Path

import pytest

from benchmarks.showcase import BUDGET_USD, ROOT, Entry, entries, showcase, team_entries
from temporal_supervisor.bundled import BUILTIN_TEAMS
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.standin.extract.kind_of_call import think
from temporal_supervisor.standin.server.app import BrainServer
from temporal_supervisor.standin.server.app import serving as serving_model
from tests.scripted_model import ScriptedModel, as_json, text
from tests.serving import settings_for
from tests.workflow.scripts import plans

SUM = [Entry("sum", "What is 2 + 3?", ("--team", "almanac"))]


async def test_without_a_model_and_by_the_stand_in_nothing_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for settings in (Settings(_env_file=None), settings_for("http://127.0.0.1:1", tmp_path, model="standin")):
        assert await showcase(settings, SUM, tmp_path / "showcase") == 1
        assert "set ANTHROPIC_API_KEY" in capsys.readouterr().err
    async with serving_model(BrainServer(think)) as url:
        settings = settings_for(url, tmp_path, teams_dir=BUILTIN_TEAMS)
        assert await showcase(settings, SUM, tmp_path / "showcase") == 0
    assert "not recorded, the stand-in model answered" in capsys.readouterr().out
    assert not (tmp_path / "showcase").exists()


@pytest.mark.long
async def test_an_answer_of_a_model_is_recorded_with_its_cost_and_its_verdict(
    tmp_path: Path, model: ScriptedModel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = as_json({"reasoning": "A sum.", "direct_answer": "It is 5.", "strategy": "plan", "subtasks": []})
    model.play("showcase-sum", lambda step: direct)
    for name in ("ANTHROPIC_BASE_URL", "SUPERVISOR_MODEL"):
        monkeypatch.delenv(name, raising=False)
    settings = settings_for(model.url, tmp_path, teams_dir=BUILTIN_TEAMS)
    wall = team_entries(ROOT / "teams/experts/goals.toml")[4]
    routed = as_json({"role": "general", "secondary_role": None, "description": wall.goal, "reasoning": ""})
    model.play("showcase-experts-5", plans(routed, turns={"t1": lambda step: text("In 1990.")}))
    assert await showcase(settings, [*SUM, wall], tmp_path / "showcase") == 0
    assert "falls short of its goal's facts: says 1989\n" in (tmp_path / "showcase" / "experts-5.md").read_text()
    said = capsys.readouterr().out
    assert said.startswith(f"2 goals, at most {BUDGET_USD:.2f} USD each")
    page = (tmp_path / "showcase" / "sum.md").read_text()
    assert page.startswith("# sum\n\n> What is 2 + 3?\n")
    assert page.endswith("\n\nIt is 5.\n")
    for fact in ("completed", " minutes", " USD", "1 model calls", "`verify`: 0 claims, 0 in doubt"):
        assert fact in page


def test_the_goals_of_teams_and_examples_are_recorded() -> None:
    assert {"demo", "shop", "contracts", "suppliers", "experts-1"} <= {entry.name for entry in entries()}
