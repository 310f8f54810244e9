"""Examples as a newcomer plays them: a Worker and a command out of one installation, and a scripted model."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer
from temporal_supervisor.standin.server.api_reply import ApiReply
from tests.scripted_model import OTHERS, Reply, Script, ScriptedModel, Step, as_json, scripted_model, tools
from tests.shown.examples import EXAMPLES, Example, Part
from tests.waiting import until

_OURS = ("ANTHROPIC_", "SUPERVISOR_", "OTEL_", "TEMPORAL_", "PYTHON", "VIRTUAL_ENV")
_CLOCK = re.compile(r"^\d\d:\d\d:\d\d ", re.MULTILINE)
_SECONDS = 300


@dataclass(frozen=True)
class Shown:
    """What a command has written, and its exit code."""

    code: int
    text: str


def script(example: Example) -> Script:
    """Returns the replies of an example's model."""
    return lambda step: _counted(_reply_to(example, step))


def _counted(reply: Reply) -> Reply:
    """Returns the reply without tokens of its own: the server then counts them as the API does."""

    async def counted() -> ApiReply:
        return replace(await reply(), usage={})

    return counted


def _reply_to(example: Example, step: Step) -> Reply:
    inside = _run_of(step)
    if step.kind == "plan":
        return _planned(example, inside, step.call)
    if step.kind == "turn":
        return _turn(_part(example, step), step.number)
    if step.kind == "synthesis":
        return as_json({"answer": example.answer, "confidence": 0.8, "contradictions": []})
    return OTHERS[step.kind](step)


def _run_of(step: Step) -> str:
    """Returns the subtask whose nested run makes a call; empty for the run itself."""
    workflow = step.call.removeprefix(f"{step.run_id}/").split("/")[:-1]
    depth = 2 if step.kind == "turn" else 0  # an agent's own subtask and attempt
    return workflow[0] if len(workflow) > depth else ""


def _part(example: Example, step: Step) -> Part:
    subtask_id = step.call.split("/")[-3]
    inside = _run_of(step)
    return next(part for part in example.parts if (part.id, part.inside) == (subtask_id, inside))


def _planned(example: Example, inside: str, call: str) -> Reply:
    parts = [part for part in example.parts if part.inside == inside]
    if example.routed:
        roles = [part.role for part in parts]
        secondary = roles[1] if len(roles) > 1 else None
        return as_json({"reasoning": "It is their field.", "role": roles[0], "secondary_role": secondary})
    if "/plan.1." not in f"/{call.rpartition('/')[2]}":
        return as_json({"reasoning": "Nothing is missing.", "subtasks": []})
    subtasks = [
        {
            "id": part.id,
            "description": part.description,
            "reasoning": "It is what this role is for.",
            "role": part.role,
            "depends_on": [*part.after],
        }
        for part in parts
    ]
    named = (example.answer_from or {}).get(inside)
    ends = {"aggregation": "finding", "answer_from": named} if named else {"aggregation": "merge"}
    words = {"reasoning": "A subtask for each part of the goal.", "final_instruction": "Answer the goal first."}
    return as_json({**words, "direct_answer": None, "strategy": "plan", "subtasks": subtasks, **ends})


def _turn(part: Part, number: int) -> Reply:
    if number <= len(part.calls):
        call = part.calls[number - 1]
        return tools((call.tool, call.arguments))
    first = part.finding.split("\n")[0]
    finish = {
        "finding": part.finding,
        "limitations": [*part.limitations],
        "confidence": 0.8,
        "outcome": "done",
        "summary": first,
    }
    return tools(("finish", finish))


class Place:
    """A folder in which commands of one installation are run; `program` is its `temporal-supervisor`."""

    def __init__(self, program: Path, folder: Path, environ: Mapping[str, str], model: ScriptedModel) -> None:
        self.folder = folder
        self.model = model
        self._program = program
        self._environ = {**environ, "COLUMNS": "100"}

    async def show(self, *words: str) -> Shown:
        """Runs a command to its end."""
        process = await asyncio.create_subprocess_exec(
            self._program,
            *words,
            cwd=self.folder,
            env=self._environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(_SECONDS):
            written, _ = await process.communicate()
        assert process.returncode is not None
        return Shown(process.returncode, _CLOCK.sub("", written.decode()))

    async def play(self, example: Example) -> Shown:
        """Runs the command of an example, with its model."""
        self.model.play(example.name, script(example))
        return await self.show(*example.words)


@contextlib.asynccontextmanager
async def place(program: Path, folder: Path) -> AsyncIterator[Place]:
    """Gives an empty folder in which a Worker of the installation serves, for the time of an `async with` block."""
    home = folder / "home"
    home.mkdir()
    own = {key: value for key, value in os.environ.items() if not key.startswith(_OURS)}
    async with scripted_model() as model, EmbeddedServer(shared=False, headless=True) as server:
        environ = {
            **own,
            "HOME": str(home),
            "PATH": os.pathsep.join([str(program.parent), own.get("PATH", "")]),  # as in an activated environment
            "SUPERVISOR_CACHE_DIR": str(home / "cache"),
            "SUPERVISOR_ARTIFACTS_URL": str(home / "artifacts"),
            "TEMPORAL_ADDRESS": server.address,
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "of-the-scripted-model",
            "NO_PROXY": "127.0.0.1,localhost",
        }
        log = home / "worker.log"
        async with _worker(program, home, environ, log):
            empty = folder / "empty"
            empty.mkdir()
            yield Place(program, empty, environ, model)


@contextlib.asynccontextmanager
async def _worker(program: Path, folder: Path, environ: Mapping[str, str], log: Path) -> AsyncIterator[None]:
    with log.open("wb") as output:
        worker = await asyncio.create_subprocess_exec(
            program, "worker", cwd=folder, env=dict(environ), stdout=output, stderr=output
        )
    try:
        await until(lambda: "worker ready" in log.read_text() or worker.returncode is not None, _SECONDS)
        assert worker.returncode is None, log.read_text()
        yield
    finally:
        if worker.returncode is None:
            worker.terminate()
        await worker.wait()


def lacks(example: Example, shown: Shown) -> list[str]:
    """Returns what is wrong with what an example's command has written; empty if nothing is."""
    whole = " ".join(shown.text.split())
    expected = (*example.says, "completed: ")
    missing: list[Any] = [f"says {words}" for words in expected if words not in whole]
    return [*missing, *([f"exit code {shown.code}: {shown.text[-1500:]}"] if shown.code else [])]


def named(name: str) -> Example:
    """Returns the example of that name."""
    return next(example for example in EXAMPLES if example.name == name)
