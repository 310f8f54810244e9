"""Questions to the stand-in about files: the tools are the product's own, and so are the prompts."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities.files.file_cache import FileCache
from activities.prompts.agent_prompts import worker_request, worker_system
from activities.teams.team_files import LoadedTeam, TeamFiles
from activities.tools.files import FolderFiles
from activities.tools.tool import ToolContext
from temporal_supervisor.standin.extract.kind_of_call import think
from temporal_supervisor.standin.extract.standin_words import NEEDS_MODEL
from temporal_supervisor.standin.server.api_request import parse
from temporal_supervisor.supervision.agent.agent_tools import finish_tool
from temporal_supervisor.supervision.contract.plan import Subtask
from temporal_supervisor.supervision.contract.team import Role

TEAMS = Path(__file__).parents[2] / "teams"


@dataclass
class Asked:
    """The team of own files, what its tools read, and how the stand-in answers questions with it."""

    loaded: LoadedTeam
    context: ToolContext

    @classmethod
    async def about(cls, files: dict[str, str], folder: Path) -> "Asked":
        """Writes files by their names into a new folder, and returns the team that is asked about them."""
        data = folder / "data"
        data.mkdir(parents=True)
        for name, text in files.items():
            (data / name).write_text(text, encoding="utf-8")
        read = FolderFiles(data, "*", FileCache(folder / "cache"))
        return cls(await TeamFiles([TEAMS]).load("files"), ToolContext(files=read))

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
