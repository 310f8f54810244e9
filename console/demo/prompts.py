"""`python -m console.demo.prompts`: prints what the default team sends to the model for the demo's goal, as Markdown.

The demo is run with the stand-in model, and its calls are read from the journal: the page is what was really sent.
"""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from activities.model.conversation import ConversationStore, Entry
from activities.store.artifacts import ArtifactStore, open_store
from console.demo.__main__ import GOAL
from console.demo.demo_processes import KeptWorker, stand_in
from console.run.run_handle import RunHandle, subtask_path
from console.run.start_run import start
from runtime.connection import connect
from runtime.process import exit_now
from runtime.server.embedded_server import EmbeddedServer
from supervision.contract.request import parse_request
from supervision.store_keys import call_key, calls_prefix

_HEAD = """\
# Prompts

What the default team sends to the model for the demo's goal: the first request of each conversation, as it was sent. \
`make prompts` writes this page; a test compares it with what is sent. The texts are made in \
[activities/prompts](../activities/prompts) and [teams/default/team.toml](../teams/default/team.toml).
"""
_CALLS = {"plan": "Planner", "review": "Reviewer", "synthesize": "Answer"}
_RUN = "demo"


async def prompt_page(run: RunHandle, store: ArtifactStore) -> str:
    """Returns the page for a run that has ended, its requests in the order in which the work was begun."""
    described = await run.describe()
    sections, agents = dict[str, Entry](), dict[str, Entry]()
    conversations = ConversationStore(store)
    async for event in run.handle.fetch_history_events():
        scheduled = event.activity_task_scheduled_event_attributes
        started = event.child_workflow_execution_started_event_attributes.workflow_execution
        if title := _CALLS.get(scheduled.activity_type.name):
            key = call_key(run.id, described.run_id, scheduled.activity_id)
            sections[title] = await conversations.entry(key)
        elif started.workflow_id:
            calls = [
                await conversations.entry(key) for key in await store.list_keys(calls_prefix(run.id, started.run_id))
            ]
            path = subtask_path(started.workflow_id, run.id)
            agents |= {f"Worker agent of {path}": call for call in calls if call.opening}
    first = sections.pop("Planner")
    ordered = {"Planner": first, **dict(sorted(agents.items())), **sections}
    return "\n".join([_HEAD, *(line for title, entry in ordered.items() for line in _section(title, entry))])


def _section(title: str, entry: Entry) -> Iterator[str]:
    assert entry.opening is not None
    yield f"## {title}\n"
    yield f"Model `{entry.opening.model}`. System text:\n"
    yield from _fenced(entry.opening.system)
    if entry.opening.tools:
        yield "Tools:\n"
        yield from (f"- `{tool['name']}`: {tool.get('description', '')}" for tool in entry.opening.tools)
        yield ""
    for message in entry.input:
        yield f"{'Message' if message['role'] == 'user' else 'Note of the system'}:\n"
        content = message["content"]
        yield from _fenced("\n".join(block.get("text", "") for block in content if isinstance(block, dict)))
    if schema := entry.opening.output_schema:
        yield "The answer must fit the JSON schema:\n"
        yield from _fenced(json.dumps(schema, indent=1, ensure_ascii=False), "json")


def _fenced(text: str, language: str = "text") -> Iterator[str]:
    yield f"````{language}"
    yield text.strip("\n")
    yield "````\n"


async def _demo_page() -> str:
    """Runs the demo's goal with a server, a stand-in model and a Worker of its own."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = await stack.enter_async_context(EmbeddedServer(shared=False, headless=True))
        url = await stack.enter_async_context(stand_in(folder))
        artifacts = str(folder / "artifacts")
        environ: dict[str, Any] = {**os.environ, "TEMPORAL_ADDRESS": server.address, "ANTHROPIC_BASE_URL": url}
        environ |= {"SUPERVISOR_MODEL": "standin", "SUPERVISOR_ARTIFACTS_URL": artifacts}
        await stack.enter_async_context(KeptWorker(environ, folder / "worker.log", lambda _: None))
        run = await start(await connect(address=server.address), parse_request({"goal": GOAL}), _RUN)
        await run.handle.result()
        return await prompt_page(run, open_store(artifacts))


def main() -> None:
    """Prints the page."""
    sys.stdout.write(asyncio.run(_demo_page()))
    sys.stdout.flush()
    exit_now(0)


if __name__ == "__main__":
    main()
