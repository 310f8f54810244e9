"""Pages of the web in a run: asked for by the brief or the team's list, figures looked up in them, labels kept."""

from datetime import UTC, datetime
from typing import Any

from tests.activity.tools.web_server import WebServer
from tests.scripted_model import Reply, Step, plan, script, text, tools
from tests.workflow.runs import Lab

PORT = 18473  # the one that the team's file has
PAGE = f"http://127.0.0.1:{PORT}/page"
NAMED = "https://127.0.0.1/fees?of=1"


async def test_a_page_is_read_and_its_label_reaches_what_builds_on_it(lab: Lab) -> None:
    """The URL of a brief is asked for, but for its address, until untrusted text had a part in the brief."""

    def reading(step: Step) -> Reply:
        if step.number == 1:
            return tools(*(("web_fetch", {"url": url}) for url in (PAGE, NAMED, NAMED + "&more")))
        return text("The fee is 4711 euros.\n\nConfidence: 0.9\nLimitations: none")

    parts: list[dict[str, Any]] = [{"id": "t1", "role": "surfer"}, {"id": "t2", "role": "surfer", "after": ["t1"]}]
    lab.play(
        script(plan(*({**part, "description": f"Read {NAMED}."} for part in parts)), {"t1": reading, "t2": reading})
    )
    days = {datetime.now(UTC).date()}
    with WebServer().serving(PORT) as web:
        result = await lab.run(team="surfer")
        assert [path for path, _ in web.asked] == ["/page"] * 2
    days.add(datetime.now(UTC).date())
    assert result.status == "completed"
    first, second = (report.finding for report in result.subtasks)
    assert first is not None
    assert second is not None
    assert first.unsupported == []
    assert first.sources[0] in {f"{PAGE} (fetched on {day})" for day in days}
    assert first.labels.untrusted == second.labels.untrusted == f"web_fetch {PAGE} in t1"
    first_shown, second_shown = (lab.prompt(f"{task}/1/turn.2") for task in ("t1", "t2"))
    assert f"{NAMED} is not fetched: 127.0.0.1 is at 127.0.0.1, a loopback IP" in first_shown
    assert f"{NAMED}&more is not fetched: it stands, exactly so, neither in the subtask" in first_shown
    assert f"{NAMED} is not fetched: the brief, in which it might stand" in second_shown
