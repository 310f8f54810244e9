"""Thirty questions on files of one's own: answered exactly, or refused in words; none beside the point.

The files are real ones of several forms, read by the product's tools; the prompts are the product's own.
"""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from activities.files.file_cache import FileCache
from activities.prompts.agent_prompts import worker_request, worker_system
from activities.teams.team_files import LoadedTeam, TeamFiles
from activities.tools.files import FolderFiles
from activities.tools.tool import ToolContext
from temporal_supervisor.standin.extract.kind_of_call import think
from temporal_supervisor.standin.server.api_request import parse
from temporal_supervisor.supervision.agent.agent_tools import finish_tool
from temporal_supervisor.supervision.base.standin_words import NEEDS_MODEL
from temporal_supervisor.supervision.contract.plan import Subtask
from temporal_supervisor.supervision.contract.team import Role

TEAMS = Path(__file__).parents[2] / "teams"
FILES = {
    "orders.csv": """Order No,Day,Region,Product,Quantity,Revenue EUR
1001,2025-01-14,East,Kettle,10,250.00
1002,2025-01-20,West,Toaster,4,160.00
1003,2025-02-03,East,Toaster,6,240.00
1004,2025-02-17,West,Kettle,12,300.00
1005,2025-03-05,East,Kettle,8,200.00
1006,2025-03-21,North,Blender,3,210.00
1007,2025-03-28,West,Blender,5,350.00
""",
    "staff.csv": """Name;Department;Office;Salary;Joined
Ruth Baum;Accounts;Oslo;4.100,50;14.02.2019
Igor Hahn;Sales;Bergen;3.950,00;01.07.2021
Mina Lund;Sales;Oslo;4.500,25;23.11.2017
Paul Voss;Stores;Bergen;3.300,75;30.05.2023
""",
    "parts.json": json.dumps(
        [
            {"Part": "Cable", "Shelf": "A1", "Stock": 140, "Unit Price": 2.5},
            {"Part": "Fuse", "Shelf": "A2", "Stock": None, "Unit Price": 0.4},
            {"Part": "Heater", "Shelf": "B1", "Stock": 12, "Unit Price": None},
            {"Part": "Switch", "Shelf": "B1", "Stock": 65, "Unit Price": 1.75},
        ]
    ),
    "handbook.md": """# Handbook of the repair shop

## Opening hours

The shop opens at 8:30 on weekdays. On Saturdays the shop is closed.

## Warranty

The warranty on kettles covers two years. Blenders made before May 2024 were recalled because a seal could melt.
The maker pays for each recalled blender.

## Contacts

Mina Lund handles complaints of customers. Invoices go to Ruth Baum.
""",
}
# Each question that the stand-in can answer, with the words that the answer must have.
ANSWERED = {
    "What is the salary of Mina Lund?": ["4500.25"],
    "Which department is Igor Hahn in?": ["Sales"],
    "How many orders are there?": ["Order No: 7."],
    "How many orders did we have in March 2025?": ["(2025-03): 3."],
    "What is the total revenue?": ["1710"],
    "What is the total revenue in the East in January 2025?": ["250", "East"],
    "Which region has the highest total revenue?": ["West, 810"],
    "Which product has the lowest total quantity?": ["Blender, 8"],
    "Who has the highest salary?": ["4500.25", "Mina Lund"],
    "List all parts.": ["Cable, Fuse, Heater, Switch"],
    "Which regions are there?": ["East, North, West"],
    "What is the revenue by region?": ["East: 690", "North: 210", "West: 810"],
    "What is the total quantity per month?": ["2025-01: 14", "2025-02: 18", "2025-03: 16"],
    "How did revenue change from January to March 2025?": ["410", "760", "350"],
    "What is the average salary in Oslo?": ["4300.375"],
    "How many parts have no stock?": ["Part (without Stock): 1."],
    "What is the unit price of Heater?": ["no value"],
    "When does the shop open on weekdays?": ["8:30"],
    "Who handles complaints of customers?": ["Mina Lund handles complaints"],
    "Why were blenders recalled?": ["because a seal could melt"],
}
REFUSED = [
    "Should we stop selling toasters?",
    "Summarise the handbook in two sentences.",
    "Plot revenue by month.",
    "Why did revenue fall in February?",
    "What will the revenue be next year?",
    "Is Paul Voss paid fairly?",
    "Which product has the best margin?",
    "What share of revenue comes from kettles?",
    "Translate the opening hours into German.",
    "Which customers complained most about toasters?",
]


@dataclass
class Shop:
    """The team of own files, and what its tools read."""

    loaded: LoadedTeam
    context: ToolContext

    async def finding(self, role: Role, question: str) -> dict[str, Any]:
        """Returns what a role hands in about a question."""
        subtask = Subtask(id="t1", role=role.name, description=f"Find it out.\nQuestion: {question}")
        tools = [*self.loaded.toolbox.definitions(role.tools), finish_tool()]
        messages: list[dict[str, Any]] = [{"role": "user", "content": worker_request(subtask, [], [], {})}]
        while True:
            body = {"model": "m", "max_tokens": 9000, "system": worker_system(role, 10, ""), "messages": messages}
            reply = think(parse(json.loads(json.dumps({**body, "tools": tools}))))
            calls = [block for block in reply.content if block["type"] == "tool_use"]
            if [call["name"] for call in calls] == ["finish"]:
                return dict(calls[0]["input"])
            results = await asyncio.gather(*(self._result(role, call) for call in calls))
            messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]

    async def _result(self, role: Role, call: dict[str, Any]) -> dict[str, Any]:
        run = await self.loaded.toolbox.run(role, call["name"], call["input"], self.context)
        assert not run.is_error, (call["input"], run.text)
        return {"type": "tool_result", "tool_use_id": call["id"], "content": run.text}

    async def answers(self, question: str) -> list[str]:
        """Returns the findings of the roles that have one; the others refuse in words."""
        said = []
        for role in self.loaded.team.roles[:2]:
            made = await self.finding(role, question)
            if made["outcome"] == "impossible":
                assert made["summary"].startswith(f"{NEEDS_MODEL}: “{question.rstrip('?.')}")
                assert "ANTHROPIC_API_KEY" in made["finding"]
                continue
            said.append(str(made["finding"]))
        return said


@pytest.fixture(scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("shop")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    files = FolderFiles(folder, "*", FileCache(tmp_path_factory.mktemp("cache")))
    return Shop(await TeamFiles([TEAMS]).load("files"), ToolContext(files=files))


def test_there_are_thirty_questions() -> None:
    assert len(ANSWERED) + len(REFUSED) == 30


@pytest.mark.parametrize("question", ANSWERED)
async def test_what_the_files_say_is_answered_exactly_and_once(shop: Shop, question: str) -> None:
    (answer,) = await shop.answers(question)
    assert [words for words in ANSWERED[question] if words not in answer] == [], answer


@pytest.mark.parametrize("question", REFUSED)
async def test_what_takes_a_model_is_refused_in_words(shop: Shop, question: str) -> None:
    assert await shop.answers(question) == []
