"""Tool calls as a Worker makes them: how often a tool begins, what is kept of one with effects, stores that fail."""

import dataclasses
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from temporalio.testing import ActivityEnvironment

from activities.agent.tool_calls import ToolActivities
from activities.contracts.run_contracts import DependencyRef, RunRef
from activities.contracts.turn_contracts import ToolCallRef, ToolInput, ToolReply, arguments_sha256
from activities.model.anthropic_model import AnthropicModel
from activities.model.conversation import ConversationStore, ConversationView, Entry, Opening
from activities.model.port import ModelMessage, ModelUsage
from activities.prompts.agent_prompts import (
    FAILED_BEFORE,
    MADE_BEFORE,
    NOT_APPROVED,
    REFUSED,
    UNKNOWN_OUTCOME,
    WRITTEN_MISUSE,
)
from activities.store.artifacts import ArtifactUnavailable
from activities.store.store_urls import open_store
from activities.teams.stored_teams import StoredTeams
from activities.teams.team_files import TeamFiles
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.store_keys import call_key
from temporal_supervisor.supervision.contract.finding import Labels

RUN = "run-1"
CLEAN = Labels(private=True)
UUID = "0190f6a2-7a1c-7c3e-9b58-1f0f3a6f7d10"
TEAM = """
name = "crew"
description = "Works."
generalist = "hand"

[[roles]]
name = "hand"
description = "Works."
system_prompt = "You work."
tools = ["look", "send", "keep", "calculate"]

[[tools]]
name = "calculate"
uses = "calculator"
"""
TOOLS = """
from pathlib import Path
from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput

class Log(Arguments):
    path: str

async def work(arguments: Log, context: ToolContext) -> ToolOutput:
    with Path(arguments.path).open("a") as file:
        file.write("begun.")
    return ToolOutput("done")

TOOLS = [
    Tool("look", "Looks.", Log, work),
    Tool("send", "Sends.", Log, work, effects="outward"),
    Tool("keep", "Keeps.", Log, work, effects="write", approve="never"),
]
"""


def _head(step: str) -> str:
    return call_key(RUN, UUID, f"{RUN}/t1/1", step, "ab" * 32)


class Shop:
    """One run's store, its team, and a conversation whose last reply asks for tools."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = open_store(folder / "artifacts")
        team = folder / "teams" / "crew"
        team.mkdir(parents=True)
        (team / "team.toml").write_text(TEAM)
        (team / "tools.py").write_text(TOOLS)
        self.log = folder / "log"

    async def request(self, name: str, labels: Labels = CLEAN) -> ToolInput:
        """The input of the call of a reply that asks for that tool."""
        arguments = {"path": str(self.log)}
        block = {"type": "tool_use", "id": "c0", "name": name, "input": arguments}
        reply = ModelMessage(model="m", content=[block], stop_reason="tool_use", usage=ModelUsage())
        head = _head(name)
        entry = Entry(opening=Opening(system="s", model="m"), input=[], reply=reply, labels=labels)
        await ConversationStore(self.store).save(head, entry)
        team_ref, _ = await self._teams.save(RUN, "crew", ["m"])
        call = ToolCallRef(call_id="c0", name=name, arguments_sha256=arguments_sha256(arguments))
        run = RunRef(run_id=RUN, store_id=await self.store.begin())
        return ToolInput(run=run, team_ref=team_ref, role="hand", head=head, call=call)

    async def turn(
        self, number: int, before: str, results: list[JsonObject], block: JsonObject, cleared: int = 0
    ) -> ToolInput:
        """The input of the one call of a further reply; `results` answer the call `before` it."""
        reply = ModelMessage(model="m", content=[block], stop_reason="tool_use", usage=ModelUsage())
        conversations, head = ConversationStore(self.store), _head(f"turn.{number}")
        ancestors = [*(await conversations.entry(before)).ancestors, before]
        added = [{"role": "user", "content": results}]
        view = ConversationView(cleared=cleared)
        await conversations.save(head, Entry(ancestors=ancestors, input=added, reply=reply, view=view, labels=CLEAN))
        request = await self.request(block["name"])
        call = ToolCallRef(call_id=block["id"], name=block["name"], arguments_sha256=arguments_sha256(block["input"]))
        return request.model_copy(update={"head": head, "call": call})

    async def attempt(self, request: ToolInput, number: int = 1, workflow_run_id: str = "w1") -> ToolReply:
        """One attempt at a call, in a process of its own as far as the activity can tell."""
        activities = ToolActivities(self.store, self._teams, AnthropicModel())
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(environment.info, attempt=number, workflow_run_id=workflow_run_id)
        return await environment.run(activities.run_tool, request)

    async def text(self, reply: ToolReply) -> str:
        return (await self.store.get(reply.result.ref)).decode()

    @property
    def _teams(self) -> StoredTeams:
        return StoredTeams(self.store, TeamFiles([self.folder / "teams"]))

    def begun(self) -> int:
        return self.log.read_text().count("begun") if self.log.exists() else 0


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


async def test_a_call_with_effects_is_made_once_and_its_result_is_kept(shop: Shop) -> None:
    request = await shop.request("send")
    first = await shop.attempt(request)
    again = await shop.attempt(request, number=2)
    after_a_reset = await shop.attempt(request, workflow_run_id="w2")
    assert await shop.text(first) == "done"
    assert first == again == after_a_reset
    assert shop.begun() == 1


@pytest.mark.parametrize(("name", "words"), [("send", NOT_APPROVED), ("keep", REFUSED), ("look", "done")])
async def test_the_stored_conversation_decides_whatever_the_workflow_asks_for(
    shop: Shop, name: str, words: str
) -> None:
    request = await shop.request(name, labels=Labels(untrusted="a page in t1"))
    assert await shop.text(await shop.attempt(request)) == words
    assert shop.begun() == (words == "done")
    approved = request.model_copy(update={"call": request.call.model_copy(update={"waits_for": "tool"})})
    assert await shop.text(await shop.attempt(approved)) == (words if name == "keep" else "done")


async def test_a_call_with_effects_whose_process_died_is_not_made_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """The end of the process: nothing of the attempt comes after the tool began."""

    request = await shop.request("send")
    with monkeypatch.context() as patched:
        patched.setattr("activities.teams.toolbox.Toolbox.run", AsyncMock(side_effect=Killed))
        with pytest.raises(Killed):
            await shop.attempt(request)
    reply = await shop.attempt(request, number=2)
    assert (await shop.text(reply), reply.result.is_error) == (UNKNOWN_OUTCOME, True)
    assert shop.begun() == 0


@pytest.mark.parametrize("name", ["look", "send"])
async def test_an_output_waits_for_the_store_and_the_tool_is_not_run_again(
    shop: Shop, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STORE_RETRY_INITIAL", timedelta(milliseconds=1))
    real, failures = shop.store.put_output, [ArtifactUnavailable("the store is away")] * 3

    async def flaky(*arguments: Any) -> str:
        if failures:
            raise failures.pop()
        return await real(*arguments)

    request = await shop.request(name)
    monkeypatch.setattr(shop.store, "put_output", flaky)
    assert (await shop.text(await shop.attempt(request)), shop.begun(), failures) == ("done", 1, [])


@pytest.mark.parametrize("lacking", ["tool", "team"])
async def test_what_a_worker_lacks_is_an_error_to_be_tried_again_and_no_result(shop: Shop, lacking: str) -> None:
    request, folder = await shop.request("send"), shop.folder / "teams" / "crew"
    (folder / "tools.py").write_text(TOOLS.split("TOOLS =")[0] + "TOOLS = [Tool('look', 'Looks.', Log, work)]")
    (folder / "team.toml").write_text(TEAM.replace(', "send"', ""))
    if lacking == "team":
        (folder / "team.toml").unlink()
    with pytest.raises(SupervisionError) as lacks:
        await shop.attempt(request)
    assert lacks.value.kind == ErrorKind.TEAM_UNAVAILABLE
    assert shop.begun() == 0


@pytest.mark.parametrize(("name", "words"), [("send", WRITTEN_MISUSE), ("keep", WRITTEN_MISUSE), ("look", "done")])
async def test_a_call_that_was_written_as_text_has_no_effects(shop: Shop, name: str, words: str) -> None:
    first = await shop.request("look")
    block = {"type": "tool_use", "id": "written_3_abcd", "name": name, "input": {"path": str(shop.log)}}
    request = await shop.turn(2, first.head, [], block)
    reply = await shop.attempt(request)
    assert (await shop.text(reply), reply.result.is_error) == (words, words != "done")
    approved = request.model_copy(update={"call": request.call.model_copy(update={"waits_for": "tool"})})
    assert await shop.text(await shop.attempt(approved)) == words
    assert shop.begun() == (2 if words == "done" else 0)


@pytest.mark.parametrize(
    ("tool", "is_error", "cleared", "words"),
    [
        ("calculate", False, 0, MADE_BEFORE),
        ("calculate", True, 0, FAILED_BEFORE),
        ("calculate", False, 1, "6*7 = 42"),  # its output is a preview by now
        ("look", False, 0, "done"),  # the output of an author's tool may change
    ],
)
async def test_a_call_that_was_made_before_is_answered_by_its_output_above(
    shop: Shop, tool: str, is_error: bool, cleared: int, words: str
) -> None:
    given = {"expression": "6*7"} if tool == "calculate" else {"path": str(shop.log)}
    first = await shop.request("look")
    block = {"type": "tool_use", "id": "c1", "name": tool, "input": given}
    asked = await shop.turn(2, first.head, [], block)
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "said before", "is_error": is_error}
    again = await shop.turn(3, asked.head, [result], {**block, "id": "c2"}, cleared)
    assert (await shop.text(await shop.attempt(again))).replace(" * ", "*") == words
    other = await shop.turn(4, asked.head, [result], {**block, "id": "c3", "input": {"expression": "6*8"}}, cleared)
    if tool == "calculate":
        assert await shop.text(await shop.attempt(other)) == "6*8 = 48"


async def _reads(shop: Shop, output: object, offset: int = 0, findings: list[DependencyRef] | None = None) -> ToolReply:
    """What `read_output` returns in a conversation with one output before, of 30,000 characters."""
    request = await shop.request("look")
    conversations = ConversationStore(shop.store)
    ref = await shop.store.put_output(RUN, ("0123456789" * 3000).encode())
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c0", "content_ref": ref}]}
    arguments = {"output": output, "offset": offset}
    block = {"type": "tool_use", "id": "r", "name": "read_output", "input": arguments}
    reply = ModelMessage(model="m", content=[block], stop_reason="tool_use", usage=ModelUsage())
    head = _head(f"reads-{output}-{offset}")
    await conversations.save(head, Entry(ancestors=[request.head], input=[result], reply=reply))
    call = ToolCallRef(call_id="r", name="read_output", arguments_sha256=arguments_sha256(arguments))
    return await shop.attempt(request.model_copy(update={"head": head, "call": call, "findings": findings or []}))


async def test_an_earlier_output_is_read_again_by_pages_without_being_one_of_the_roles_tools(shop: Shop) -> None:
    first = await shop.text(await _reads(shop, "1-1"))
    assert first.startswith("0123456789")
    assert first.endswith("[These are the characters 0 to 19850 of 30000. Continue with offset 19850.]")
    assert await shop.text(await _reads(shop, "1-1", 19_850)) == ("0123456789" * 3000)[19_850:]


async def test_the_whole_text_of_a_finding_of_the_brief_is_read_by_its_subtask(shop: Shop) -> None:
    ref = await shop.store.put_output(RUN, b"the whole finding")
    finding = DependencyRef(subtask_id="t1", role="hand", text_ref=ref)
    assert await shop.text(await _reads(shop, "t1", findings=[finding])) == "the whole finding"
    assert (await _reads(shop, "t1")).result.is_error


@pytest.mark.parametrize("output", ["2-1", "9-9", "run-1/secret"])
async def test_nothing_but_outputs_of_the_same_conversation_can_be_read(shop: Shop, output: object) -> None:
    reply = await _reads(shop, output)
    assert reply.result.is_error
    assert "output" in await shop.text(reply)
