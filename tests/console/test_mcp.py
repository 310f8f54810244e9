"""The command `mcp`: what its tools refuse, forms for the person at the client, HTTP and its token."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult

from temporal_supervisor.console import demo
from temporal_supervisor.console.base.command import Access, CommandFailed
from temporal_supervisor.console.mcp_server.mcp_serving import _PlainServer, serve_mcp
from temporal_supervisor.runtime.settings import Settings
from tests.mcp_clients import McpClient, asking, in_process, mcp_environ, over_stdio
from tests.scripted_model import Reply, Step, answer, plan, script, text, tools
from tests.serving import ROOT
from tests.waiting import until
from tests.workflow.plan.test_approval import asked
from tests.workflow.runs import Lab
from tests.workflow.subtasks import test_people as people
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "people"}
ONE = plan({"id": "t1", "role": "both"})
HASH = "0" * 64
TOKEN = "t" * 32


@pytest.fixture
def environ(lab: Lab, settings: Settings, tmp_path: Path) -> dict[str, str]:
    """The environment of the command where the session's Worker serves."""
    return mcp_environ(lab.client, settings.artifacts_url, tmp_path)


def play(step: Step) -> Reply:
    """Asks, then sends, then is done."""
    if step.number == 1:
        return people.asking(step)
    return tools(("send", {"to": "board", "words": "Sell"})) if step.number == 2 else text("It was sent.")


async def test_a_further_question_builds_on_what_a_run_found(lab: Lab, environ: dict[str, str]) -> None:
    """Its team, and its owner, are those of that run; a run of nobody is refused as in the command."""
    lab.play(script(plan({"id": "t1"})))
    await lab.run(team="again", metadata={"owner": "anna"})
    more = plan({"id": "t1", "role": "hand", "after": ["r1/t1"]})
    async with in_process(environ) as mcp:
        assert "there is no run 'run-of-nobody'" in await mcp.refused("research", goal="x", after=["run-of-nobody"])
        later = lab.model
        later.play("*", script(more))
        started = await mcp("research", goal="And what do the pears cost?", after=[lab.run_id])
        await mcp.until(started["run_id"])
        found = await mcp("result", run_id=started["run_id"])
    assert found["state"] == "completed"
    assert [step for step in later.steps(started["run_id"]) if "turn" in step] == ["t1/1/turn.1"]
    handle = lab.client.get_workflow_handle_for(SupervisorWorkflow.run, started["run_id"])
    result = await handle.result()
    assert [report.id for report in result.reused] == ["earlier-t1"]
    assert result.reuse_from == [lab.run_id]


async def test_without_decisions_a_client_has_no_tool_for_them() -> None:
    """A client's model that obeys what it has read can't decide then, whatever it has read."""
    for decides in (True, False):
        server = _PlainServer(Access(), decides=decides)
        names = {tool.name for tool in await server.list_tools()}
        assert ({"decide", "reply"} <= names) is decides
        assert names >= {"research", "wait", "result", "inbox", "steer", "cancel"}
        assert decides or not {"decide", "reply"} & names


class Person:
    """Who fills in forms; `shown` are the forms that were."""

    def __init__(self, *filled: dict[str, Any] | None) -> None:
        self.shown: list[str] = []
        self._filled = list(filled)

    async def fill(self, form: ElicitRequestFormParams) -> ElicitResult:
        """Fills in the next one; None leaves it."""
        self.shown.append(form.message)
        fields = self._filled.pop(0)
        assert fields is None or set(fields) <= set(form.requested_schema["properties"])
        return ElicitResult(action="decline" if fields is None else "accept", content=fields)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_person_at_the_client_decides_in_forms(
    lab: Lab, environ: dict[str, str], tmp_path: Path, mode: str
) -> None:
    lab.play(script(ONE, {"t1": play}))
    handle = await lab.start(approve_plan=True)
    person = Person(
        None,
        {"decision": "change", "comment": "only garden 1"},
        {"decision": "approve"},
        {"reply": "2025"},
        {"decision": "deny", "comment": "not to the board"},
    )
    async with over_stdio(environ, tmp_path, person.fill, mode) as mcp:
        left = await mcp("wait", run_id=lab.run_id, seconds=30, ask=True)
        assert "the person left 'plan.1' open" in left["notes"]
        assert [item["id"] for item in left["asked"]] == ["plan.1"]
        while (await mcp("wait", run_id=lab.run_id, seconds=30, ask=True))["state"] == "running":
            pass
    assert (await handle.result()).status == "completed"
    assert "part t1 of garden 1" in person.shown[0]
    assert person.shown[1] == person.shown[0]
    assert "only garden 1" in lab.prompt("plan.2.1")
    assert "2025 | 2026" in person.shown[3]
    assert '"words": "Sell"' in person.shown[4]
    assert "not to the board" in lab.prompt("t1/1/turn.3")
    assert len(person.shown) == 5


SEEN = {"sha256": "0" * 64}
REFUSALS: list[tuple[str, dict[str, Any], str]] = [
    ("research", {"goal": " "}, "the goal is empty"),
    ("research", {"goal": "x", "deadline": "soon"}, "deadline: must be a duration"),
    ("research", {"goal": "x", "team": {"name": "mine"}}, "team: Input should be a valid string"),
    ("research", {"goal": "x", "team": "peeple"}, "there is no team 'peeple': did you mean 'people'?"),
    ("research", {"goal": "x", "max_subtasks": 1_000_000}, "max_subtasks: "),
    ("wait", {"run_id": "nobody"}, "there is no run 'nobody'"),
    ("wait", {"run_id": "RUN", "seconds": 51}, "seconds: Input should be less than or equal to 50"),
    ("result", {"run_id": "nobody"}, "in namespace 'default': give the id that `research` returned"),
    ("decide", {"run_id": "RUN", "id": "plan.7", "decision": "approve", **SEEN}, "plan.7"),
    ("decide", {"run_id": "RUN", "id": "plan.1", "decision": "approve", **SEEN}, "shows something else"),
    ("decide", {"run_id": "RUN", "id": "plan.1", "decision": "change", **SEEN}, '"change" needs a comment'),
    ("decide", {"run_id": "RUN", "id": "t1/1:1.0", "decision": "change", **SEEN}, "only a plan can be changed"),
    ("decide", {"run_id": "RUN", "id": "t1/1:1.0", "decision": "approve"}, "sha256: Field required"),
    ("reply", {"run_id": "RUN", "id": "plan.1", "text": "yes", **SEEN}, "plan.1"),
    ("reply", {"run_id": "RUN", "id": "t1/1:1.0", "text": "x" * 20_000, **SEEN}, "at most 16384 are allowed"),
    ("steer", {"run_id": "RUN", "text": "x", "to": "t9"}, "has no subtask 't9'"),
]


async def test_what_is_refused_is_said_in_one_sentence(lab: Lab, environ: dict[str, str]) -> None:
    lab.play(script(ONE))
    handle = await lab.start(approve_plan=True)
    await asked(handle)
    async with in_process({**environ, "SUPERVISOR_TEAMS_DIR": str(ROOT / "tests/workflow/teams")}) as mcp:
        for tool, arguments, sentence in REFUSALS:
            given = {name: lab.run_id if value == "RUN" else value for name, value in arguments.items()}
            assert sentence in await mcp.refused(tool, **given)
        for uri in ("supervisor://run/nobody/report", f"supervisor://run/{lab.run_id}/artifact/{HASH}"):
            with pytest.raises(MCPError, match=f"no run 'nobody'|{HASH}"):
                await mcp.read(uri)
        assert (await mcp("cancel", run_id=lab.run_id))["message"] == f"run '{lab.run_id}' is being cancelled"
        assert (await mcp.until(lab.run_id))["state"] == "cancelled"
        assert "cancelled" in (await mcp("result", run_id=lab.run_id))["problem"]
        for tool in ("cancel", "steer"):
            words = {"text": "x"} if tool == "steer" else {}
            refused = await mcp.refused(tool, run_id=lab.run_id, **words)
            assert "has ended (cancelled)" in refused
            assert "start another one with `research`" in refused
        ended = {"run_id": lab.run_id, "id": "plan.1", "decision": "approve", **SEEN}
        assert "has ended (cancelled)" in await mcp.refused("decide", **ended)


async def test_files_of_a_run_are_read_and_no_others(lab: Lab, environ: dict[str, str]) -> None:
    def noting(step: Step) -> Reply:
        return tools(("note", {"text": "# Quinces"})) if step.number == 1 else text("noted")

    lab.play(script(plan({"id": "t1", "role": "scribe"}), {"t1": noting}, answer(cites=["t1"])))
    result = await lab.run(team="lab")
    (made,) = result.artifacts
    async with in_process(environ) as mcp:
        found = await mcp("result", run_id=lab.run_id)
        (_report, link) = found["links"]
        said = await mcp.text("result", run_id=lab.run_id)
        assert "temporal-supervisor" not in said  # a model has no shell: hints name tools and links
        assert "check the figures: the links of `result`" in said
        assert (link["name"], link["mimeType"]) == (made.name, made.media_type)
        assert await mcp.read(link["uri"]) == "# Quinces"
        with pytest.raises(MCPError):
            await mcp.read(link["uri"].replace(lab.run_id, "another"))


async def test_without_server_or_worker_a_tool_says_so(alone: Any, tmp_path: Path) -> None:
    async with over_stdio({**alone.environ, "TEMPORAL_ADDRESS": "127.0.0.1:1"}, tmp_path) as mcp:
        assert "no Temporal server at 127.0.0.1:1" in await mcp.refused("inbox")
    async with in_process(alone.environ) as mcp:
        said = await mcp.refused("research", goal="x")
        assert "no worker serves queue 'supervisor'" in said
        assert "--queue-anyway" not in said


def test_other_commands_do_not_load_the_protocol() -> None:
    code = "import sys, starter; print([name for name in ('mcp', 'starlette', 'uvicorn') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


# --- over HTTP ------------------------------------------------------------------------------------------


class Served(demo.Served):
    """The command over HTTP, which can be started again."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        words = [str(ROOT / "starter.py"), "mcp", "--http", self.address]
        super().__init__("mcp", words, environ, folder / "mcp.log", "MCP at http")

    async def start(self) -> None:
        """Returns once it serves."""
        await self.__aenter__()
        await until(self._answers, 30)

    async def _answers(self) -> bool:
        with contextlib.suppress(httpx2.ConnectError):
            return (await self.post()).status_code == 401
        return False

    async def post(self, token: str = "", **headers: str) -> httpx2.Response:
        """Returns the reply to a request with that token and those headers."""
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
        sent = {"Accept": "application/json, text/event-stream", **headers}
        sent |= {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient() as http:
            return await http.post(f"http://{self.address}/mcp", json=body, headers=sent)

    @contextlib.asynccontextmanager
    async def client(self, token: str, person: Person) -> AsyncIterator[McpClient]:
        """Gives a client."""
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
            transport = streamable_http_client(f"http://{self.address}/mcp", http_client=http)
            async with Client(transport, **asking(person.fill)) as client:
                yield McpClient(client)


@pytest.fixture
async def served(environ: dict[str, str], tmp_path: Path) -> AsyncIterator[Served]:
    """The command over HTTP."""
    served = Served({**environ, "SUPERVISOR_MCP_TOKEN": TOKEN}, tmp_path)
    await served.start()
    yield served
    await served.kill()


async def test_a_request_needs_the_token_and_a_host_and_origin_of_this_machine(served: Served) -> None:
    replies = {
        "no token": await served.post(),
        "another token": await served.post(f"{TOKEN}x"),
        "another host": await served.post(TOKEN, Host="evil.example:80"),
        "another origin": await served.post(TOKEN, Origin="http://evil.example"),
        "this machine's": await served.post(TOKEN, Origin="http://localhost:3000"),
    }
    assert [reply.status_code for reply in replies.values()] == [401, 401, 421, 403, 200]
    assert TOKEN not in served.log.read_text()


async def test_a_form_that_is_out_outlives_the_server(lab: Lab, served: Served) -> None:
    class Late(Person):
        async def fill(self, form: ElicitRequestFormParams) -> ElicitResult:
            await served.kill()
            await served.start()
            return await super().fill(form)

    lab.play(script(ONE))
    handle = await lab.start(approve_plan=True)
    person = Late({"decision": "approve"})
    async with served.client(TOKEN, person) as mcp:
        await mcp("wait", run_id=lab.run_id, seconds=30, ask=True)
        assert (await mcp.until(lab.run_id))["state"] == "completed"
    assert len(person.shown) == 1
    assert (await handle.result()).status == "completed"


@pytest.mark.parametrize(
    ("http", "token", "sentence"),
    [
        ("8765", "", "write HOST:PORT"),
        ("0.0.0.0:8765", "", "is not loopback"),
        ("127.0.0.1:8765", "secret", "at least 16 characters"),
    ],
)
async def test_addresses_and_tokens_that_are_not_safe_are_refused(
    http: str, token: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUPERVISOR_MCP_TOKEN", token)
    with pytest.raises(CommandFailed, match=sentence):
        await serve_mcp(Access(), http, [])
