"""The supervisor's activities as a Worker runs them: a real store, real HTTP to a scripted model, no server."""

import dataclasses
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from temporalio.testing import ActivityEnvironment

from activities.contracts.run_contracts import DependencyRef, ProcessFacts, RunRef
from activities.contracts.turn_contracts import TurnInput
from activities.model.anthropic_model import AnthropicModel
from activities.model.journalled_call import ModelCalls
from activities.model.port import ModelEndpoint
from activities.questions import question as questions
from activities.questions.question import C, Question, R
from activities.run.run_activities import DefaultModels, RunActivities
from activities.store.artifacts import ArtifactStore
from activities.store.store_urls import open_store
from activities.teams.stored_teams import StoredTeams
from activities.teams.team_files import TeamFiles
from temporal_supervisor.supervision.base.store_keys import run_prefix
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.team import Team
from tests.scripted_model import Call, Reply, ScriptedModel

T = TypeVar("T")
MODEL = "claude-opus-5-5"
ROLE = {"description": "Works on its subject.", "system_prompt": "You work."}
ORCHARD = """
name = "orchard"
description = "Knows pears."
generalist = "reader"
[[roles]]
name = "reader"
description = "Reads."
system_prompt = "You read."
capabilities = ["reading"]
tools = ["read_attachment", "read_document"]
[[roles]]
name = "counter"
description = "Counts."
system_prompt = "You count."
capabilities = ["reading", "counting"]
tools = ["query_data", "list_tables"]
[[tools]]
name = "read_attachment"
uses = "attachment"
[[tools]]
name = "read_document"
uses = "document_read"
options = { documents = "*.md" }
[[tools]]
name = "query_data"
uses = "sql_query"
options = { tables = "*.csv" }
[[tools]]
name = "list_tables"
uses = "sql_tables"
options = { tables = "*.csv", descriptions = { harvest = "Pears picked" } }
"""


class Desk:
    """One run's store and teams, and the activities' way to the scripted model."""

    def __init__(self, model: ScriptedModel, run_id: str, folder: Path, teams: Path) -> None:
        self.run_id = run_id
        self.model = model
        self.teams_folder = teams
        self.store: ArtifactStore = open_store(str(folder))
        self.teams = StoredTeams(self.store, TeamFiles([teams]))
        self.windows: dict[str, int] = {}
        self._client = AnthropicModel(
            api_key="test-key", base_url=model.url, windows=self.windows, http_options={"trust_env": False}
        )
        self.calls = ModelCalls(self._client, self.store)
        self._count = self._journals = 0

    async def run_ref(self) -> RunRef:
        """The run as an activity's input names it, with a journal of its own: what was asked before is asked again."""
        self._journals += 1
        first_run_id = f"first-{self._journals}"
        return RunRef(run_id=self.run_id, store_id=await self.store.begin(), first_run_id=first_run_id)

    async def new_call(self, step: str) -> TurnInput:
        """A call that the run has not made."""
        return TurnInput(run=await self.run_ref(), team_ref="", role="", model="", step=step, max_tokens=1000)

    async def put(self, name: str, text: str) -> str:
        """Stores a text of the run."""
        ref = run_prefix(self.run_id) + name
        await self.store.put(ref, text.encode())
        return ref

    async def read(self, ref: str | None) -> str:
        assert ref is not None
        return (await self.store.get(ref)).decode()

    async def plan(self, *subtasks: Subtask, **fields: Any) -> str:
        """Stores a plan."""
        plan = Plan(goal="Count the pears", subtasks=list(subtasks), **fields)
        return await self.store.put_output(self.run_id, plan.model_dump_json().encode())

    async def findings(self, **texts: str) -> list[DependencyRef]:
        """Stores a finding for each subtask id."""
        return [
            DependencyRef(
                subtask_id=subtask_id, role="reader", text_ref=await self.put(f"finding.{subtask_id}.{at}", text)
            )
            for at, (subtask_id, text) in enumerate(texts.items())
        ]

    async def team(self, team: str | Team, worker_model: str = "claude-haiku-5-5") -> str:
        """Stores a team as a run's first activity does."""
        ref, _ = await self.teams.save(self.run_id, team, [worker_model])
        return ref

    def write_team(self, name: str, team: str, **files: str) -> Path:
        """Writes a team's file, and others beside it by their stems and kinds: `harvest_csv`. Returns its folder."""
        folder = self.teams_folder / name
        folder.mkdir(parents=True)
        for file, text in {"team_toml": team, **files}.items():
            (folder / file.replace("_", ".")).write_text(text)
        return folder

    def write_orchard(self) -> str:
        """Writes the team ORCHARD with a table and a document. Returns its name."""
        harvest = "year,sort,kg\n1990,Anjou,12\n1994,Conference,30\n"
        self.write_team("orchard", ORCHARD, harvest_csv=harvest, frost_md="# Why frost harms pears\n\nIt does.\n")
        return "orchard"

    def write_library(self) -> str:
        """Writes the team ORCHARD with a tool that searches its document. Returns its name."""
        reading = '["search_documents", "read_document", "calculate"]'
        team = ORCHARD.replace('["read_attachment", "read_document"]', reading)
        search = '[[tools]]\nname = "search_documents"\nuses = "document_search"\noptions = { documents = "*.md" }\n'
        search += '[[tools]]\nname = "calculate"\nuses = "calculator"\n'
        frost = "# Why frost harms pears\n\nIt freezes the blossoms.\n"
        self.write_team("orchard", team + search, harvest_csv="year,sort,kg\n1990,Anjou,12\n", frost_md=frost)
        return "orchard"

    def write_counters(self) -> str:
        """Writes the team ORCHARD without its reader's tools, and with a table alone. Returns its name."""
        team = ORCHARD.replace('tools = ["read_attachment", "read_document"]', "")
        tools = re.sub(r'\[\[tools\]\]\nname = "read_.*\n.*\n(options.*\n)?', "", team)
        self.write_team("counters", tools, harvest_csv="year,sort,kg\n1990,Anjou,12\n1994,Conference,30\n")
        return "counters"

    def say(self, *replies: Reply) -> None:
        """The model's replies, one for each call; the last one for all after it."""
        said = list(replies)
        self.model.play(self.run_id, lambda step: said.pop(0) if len(said) > 1 else said[0])

    async def do(self, activity: Callable[[Any], Awaitable[T]], request: Any, workflow_id: str | None = None) -> T:
        """Runs one activity, of the run itself unless another workflow is named."""
        self._count += 1
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(
            environment.info, workflow_id=workflow_id or self.run_id, activity_id=str(self._count), attempt=1
        )
        return await environment.run(activity, request)

    def run_activities(self, endpoint: ModelEndpoint | None = None, **facts: Any) -> RunActivities:
        """The activities of runs in a process with these `facts`, else usual ones."""
        queues = dict.fromkeys(("tools_queue", "outward_queue", "model_queue"), "supervisor")
        process = ProcessFacts(**{**queues, **facts})
        defaults = DefaultModels([MODEL], ["claude-haiku-5-5"])
        return RunActivities(self.store, self.teams, endpoint or self._client, process, defaults)

    async def ask(self, question: Question[C, R], call: C) -> R:
        """Runs the activity of a supervisor's question."""
        return await self.do(question.activity(questions.Desk(self.calls, self.teams)), call)

    @property
    def asked(self) -> list[Call]:
        """The calls that arrived."""
        return self.model.of(self.run_id)

    @property
    def steps(self) -> list[str]:
        return self.model.steps(self.run_id)

    @property
    def prompt(self) -> str:
        """System text and last message of the last call."""
        step = self.asked[-1].step
        return f"{step.body.get('system', '')}\n{step.prompt}"

    @property
    def schema(self) -> dict[str, Any]:
        """The schema that the last call asked for."""
        schema: dict[str, Any] = self.asked[-1].step.body["output_config"]["format"]["schema"]
        return schema

    async def close(self) -> None:
        await self._client.close()
