"""The command `make prompts` writes docs/prompts.md: what the team almanac sends for the demo."""

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from temporal_supervisor.bundled import BUILTIN_TEAMS
from temporal_supervisor.console.demo import GOAL
from temporal_supervisor.standin.extract.kind_of_call import think
from temporal_supervisor.standin.server.api_reply import ApiReply, json_reply, text_reply
from temporal_supervisor.standin.server.api_request import ApiRequest
from temporal_supervisor.standin.server.app import BrainServer
from temporal_supervisor.standin.server.app import serving as serving_model
from temporal_supervisor.supervision.contract.request import RunRequest
from tests.serving import own_server, settings_for
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow

PAGE = Path(__file__).resolve().parents[1] / "docs" / "prompts.md"
_KINDS = ("plan", "turn", "query", "review", "synthesis")
_SHORT_KINDS = ("plan", "turn", "query")
_INTRODUCTION = """# What the team almanac sends

The requests of one run of the demo's goal, without the sampled replies: the first one of each \
kind and role. The plan and the findings were written by hand, as a model would write them; the \
other replies are the stand-in model's. Written by `make prompts`; the texts are from \
`activities/prompts/`, `activities/questions/` and the file of the team almanac.
"""
SMALL_WINDOW = 16_384
_SHORT_GOAL = "Write a short report on life expectancy in Rwanda and in Botswana from 1952 to 2007."
_SHORT = f"""# What a model with a small window gets

The first plan, the first turn and the first [other query](model-calls.md#small-windows) of a run \
for a model with a window of {SMALL_WINDOW:,} tokens. The demo's goal gets no planner there: it \
asks for figures and their reasons, which the roles for tables and for documents share. So this \
goal is another one: "{_SHORT_GOAL}"
"""
_QUERY = """```sql
SELECT country, year, life_expectancy_years FROM life_expectancy
WHERE country IN ('Botswana', 'Rwanda') ORDER BY country, year
```"""
_PLAN: list[dict[str, Any]] = [
    {
        "id": "t1",
        "description": "From table life_expectancy, give life expectancy in Rwanda and in "
        "Botswana, in years, for each year of the table from 1952 to 2007, as one table, with the "
        "change from 1952 to 2007 of each and its largest fall between two years of the table. "
        "Leave the causes to t2. Done when all years are there, or when the table shows that some "
        "are missing.",
        "reasoning": "Only the analyst sees the table.",
        "role": "analyst",
        "depends_on": [],
    },
    {
        "id": "t2",
        "description": "From the documents on life expectancy, name what made it fall in Rwanda "
        "and in Botswana between 1952 and 2007, with the years and the document of each cause, and "
        "what they say of the quality of the figures for these years. t1 has the figures. Done "
        "with a cause for each country, or when none is named.",
        "reasoning": "The causes are in documents.",
        "role": "researcher",
        "depends_on": [],
    },
    {
        "id": "t3",
        "description": "Write a short report from the findings of t1 and t2 on how life expectancy "
        "in Rwanda and Botswana changed from 1952 to 2007: the figures, the falls, their causes, "
        "and what is uncertain. One page.",
        "reasoning": "The goal asks for a report.",
        "role": "writer",
        "depends_on": ["t1", "t2"],
    },
]
_FINDINGS = {
    "t1": "Life expectancy in Rwanda was 40.0 years in 1952 and 46.242 in 2007, "
    "in Botswana 47.622 and 50.728.",
    "t2": "The documents name the genocide of 1994 for Rwanda and HIV/AIDS for Botswana.",
    "t3": "Rwanda rose from 40.0 to 46.242 years, Botswana from 47.622 to 50.728, "
    "each with a deep fall between.",
}
_REPLY = {
    "reasoning": "Figures and causes have different sources, and the goal asks for a report.",
    "direct_answer": None,
    "strategy": "plan",
    "subtasks": _PLAN,
    "aggregation": "merge",
    "final_instruction": "Give the changes of both countries first, "
    "then the falls and their causes.",
}


async def sent(window: int | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Returns the requests of a run to a model with that window, with their steps, in order."""
    seen: list[tuple[str, dict[str, Any]]] = []

    def listening(request: ApiRequest) -> ApiReply:
        step = request.call.partition("/")[2]
        seen.append((step, request.body))
        if _kind(step) == "plan":
            return json_reply(_REPLY)
        if window and step.startswith("t1/1/") and not step.startswith("t1/1/turn.2"):
            return text_reply(_QUERY)
        subtask, _, turn = step.partition("/1/turn.")
        # The first turn looks something up; the stand-in model would conclude that it cannot do
        # these subtasks.
        is_conclusion = subtask in _FINDINGS and turn not in ("", "1")
        return text_reply(_FINDINGS[subtask]) if is_conclusion else think(request)

    with tempfile.TemporaryDirectory() as folder:
        async with own_server() as client, serving_model(BrainServer(listening)) as url:
            windows = {"*": window} if window else {}
            settings = settings_for(
                url, folder, teams_dir=BUILTIN_TEAMS, model="standin", model_window=windows
            )
            request = RunRequest(goal=_SHORT_GOAL if window else GOAL, team="almanac")
            async with serving(client, settings):
                run, queue = SupervisorWorkflow.run, "supervisor"
                await client.execute_workflow(run, request, id="prompts", task_queue=queue)
    return seen


def _kind(step: str) -> str:
    return step.rpartition("/")[2].partition(".")[0]


def _fenced(title: str, text: str, language: str = "text") -> str:
    return f"**{title}**\n\n````{language}\n{text.strip()}\n````\n"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n\n".join(
        block.get("text") or json.dumps(block, ensure_ascii=False) for block in content
    )


def _section(step: str, body: dict[str, Any]) -> str:
    parts = [f"## `{step}`\n", _fenced("System", _text(body.get("system", "")))]
    if tools := body.get("tools"):
        listed = [
            f"{tool['name']}: {tool['description']}\n{json.dumps(tool['input_schema'])}"
            for tool in tools
        ]
        parts.append(_fenced("Tools", "\n\n".join(listed)))
    parts += [
        _fenced(message["role"].capitalize(), _text(message["content"]))
        for message in body["messages"]
    ]
    if form := body.get("output_config", {}).get("format"):
        parts.append(_fenced("Form of the reply", json.dumps(form["schema"], indent=1), "json"))
    return "\n".join(parts)


Requests = list[tuple[str, dict[str, Any]]]


def page(requests: Requests, short: Requests) -> str:
    """Returns the page: the first request of each kind of call and each worker agent.

    The first `short` ones come after these.
    """
    of_kind: dict[str, str] = {}
    for step, section in _first(short).items():
        of_kind.setdefault(_kind(step), section)
    beginnings = [of_kind[kind] for kind in _SHORT_KINDS]
    text = "\n".join([_INTRODUCTION, *_first(requests).values(), _SHORT, *beginnings])
    return re.sub(r"(?<=Today is )[\d-]+", "YYYY-MM-DD", text)  # or the page would change each day


def _first(requests: Requests) -> dict[str, str]:
    """Returns the first request of each kind of call and each worker agent, as a section."""
    first: dict[str, str] = {}
    # Subtasks run in parallel: in the order they came, the page would differ from run to run.
    for step, body in sorted(requests, key=lambda item: (_KINDS.index(_kind(item[0])), item[0])):
        first.setdefault(step.partition(".")[0], _section(step, body))
    return first


async def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(await sent(), await sent(SMALL_WINDOW)), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")


if __name__ == "__main__":
    asyncio.run(main())
