"""Plays questions as a user would: a server, a Worker process, the command line, and a real model behind them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from temporal_supervisor.supervision.base.json_object import JsonObject
from tests.real.model_server import MODEL
from tests.real.questions import ROOT, Question, Verdict, is_marked, judged
from tests.serving import address_of, own_server
from tests.waiting import until

_OURS = ("ANTHROPIC_", "SUPERVISOR_", "OTEL_", "TEMPORAL_")
_READY_SECONDS = 300  # a Worker asks its endpoint before it serves
_DEADLINE = "60m"  # at a few tokens a second

Disturbance = Callable[["Scene", str], Awaitable[None]]


@dataclass
class Seen:
    """What became of a question."""

    part: str
    name: str
    question: str
    truth: str
    verdict: Verdict
    status: str
    answer: str
    confidence: float | None
    marked: bool
    unsupported: list[str]
    gaps: list[str]
    calls: int
    tokens: int
    seconds: float
    run_id: str


class Scene:
    """A Temporal server and a Worker process that serves it with a model at `url`."""

    def __init__(self, address: str, folder: Path, url: str, changes: Mapping[str, str]) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        own = {
            "TEMPORAL_ADDRESS": address,
            "ANTHROPIC_BASE_URL": url,
            "SUPERVISOR_ARTIFACTS_URL": str(folder / "artifacts"),
        }
        self.environ = {**kept, **own, **changes}
        self._folder = folder
        self._workers: list[subprocess.Popen[bytes]] = []

    async def start_worker(self) -> None:
        """Starts a Worker. Returns once it serves."""
        log = self._folder / f"worker-{len(self._workers)}.log"
        self._workers.append(self._worker(log))
        await until(lambda: "worker ready" in log.read_text() or self._workers[-1].poll() is not None, _READY_SECONDS)
        if self._workers[-1].poll() is not None:
            raise RuntimeError(f"the Worker did not start:\n{log.read_text()}")

    def _worker(self, log: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(ROOT / "worker_main.py")]
        with log.open("wb") as opened:
            return subprocess.Popen(command, env=self.environ, stdout=opened, stderr=opened)

    def kill_worker(self) -> None:
        """Ends the newest Worker with SIGKILL."""
        self._workers[-1].send_signal(signal.SIGKILL)
        self._workers[-1].wait()

    def end(self) -> None:
        """Ends all Workers that still run."""
        for worker in self._workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()

    async def starter(self, *arguments: str) -> tuple[int, str]:
        """Returns the exit code and the output of the command line."""
        command = (sys.executable, str(ROOT / "starter.py"), *arguments)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, env=self.environ, stdout=pipe, stderr=pipe)
        output, errors = await process.communicate()
        return process.returncode or 0, (output or errors).decode("utf-8", "replace")

    async def model_calls(self, run_id: str) -> int:
        """Returns how many model calls of a run have been answered so far; 0 before it has begun."""
        code, output = await self.starter("status", run_id, "--json")
        return int(json.loads(output)["usage"]["model_calls"]) if code == 0 else 0

    async def play(self, part: str, question: Question, disturb: Disturbance | None = None) -> Seen:
        """Returns what became of a question; `disturb` does what is to happen meanwhile."""
        run_id, began = f"real-{part}-{question.name}".replace(" ", "-"), time.monotonic()
        options = ["--json", "--id", run_id, "--deadline", _DEADLINE, *question.options]
        if question.request:
            written = self._folder / f"{run_id}.json"
            written.write_text(json.dumps({"goal": question.text, **question.request}))
            options += ["--request", str(written)]
        playing = asyncio.create_task(self.starter("run", *options, question.text))
        if disturb is not None:
            await disturb(self, run_id)
        code, output = await playing
        result = json.loads(output) if code == 0 else None
        return seen(part, question, run_id, result, output, time.monotonic() - began)


def seen(part: str, question: Question, run_id: str, result: JsonObject | None, output: str, seconds: float) -> Seen:
    """Returns the record of a run that ended with that result, or failed with that output."""
    whole = result or {"status": "failed", "answer": output.strip()[-600:]}
    usage = whole.get("usage", {})
    return Seen(
        part=part,
        name=question.name,
        question=question.text,
        truth=question.truth,
        verdict=judged(question, result),
        status=whole["status"],
        answer=whole["answer"],
        confidence=whole.get("confidence"),
        marked=result is not None and is_marked(result),
        unsupported=[f"{item['where']}: {item['text']}" for item in whole.get("unsupported", [])],
        gaps=[f"{gap['subtask_id']}: {gap['reason']}" for gap in whole.get("gaps", [])],
        calls=usage.get("model_calls", 0),
        tokens=sum(usage.get(kind, 0) for kind in ("input_tokens", "output_tokens", "cache_read_tokens")),
        seconds=round(seconds, 1),
        run_id=run_id,
    )


@asynccontextmanager
async def scene(folder: Path, url: str, **changes: str) -> AsyncIterator[Scene]:
    """Gives a scene with one Worker; `changes` are variables of its environment."""
    folder.mkdir(parents=True, exist_ok=True)
    async with own_server() as client:
        made = Scene(address_of(client), folder, url, changes)
        try:
            await made.start_worker()
            yield made
        finally:
            made.end()


def page(records: list[Seen]) -> str:
    """Returns the records as a page: counts of verdicts, a table, the answers."""
    counts = {verdict: sum(each.verdict == verdict for each in records) for verdict in Verdict.__args__}  # type: ignore[attr-defined]
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    lines = [
        "# What a real model answered\n",
        f"{MODEL} by llama.cpp. {len(records)} runs: {listed}.\n",
        "| part | question | verdict | status | confidence | calls | tokens | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in records:
        confidence = "none" if each.confidence is None else f"{each.confidence:.2f}"
        cells = [each.part, f"{each.name}: {each.question}", each.verdict, each.status, confidence]
        lines.append(f"| {' | '.join(cells)} | {each.calls} | {each.tokens:,} | {each.seconds:.0f} |")
    for each in records:
        lines += [f"\n## {each.run_id}\n", f"> {each.question}\n", each.answer.strip(), f"\nTrue: {each.truth}."]
        lines += [f"- no source has {item}" for item in each.unsupported]
        lines += [f"- missing: {item}" for item in each.gaps]
    return "\n".join(lines) + "\n"


def keep(records: list[Seen], folder: Path) -> None:
    """Writes the records as a page and as JSON."""
    (folder / "real.md").write_text(page(records), encoding="utf-8")
    (folder / "real.json").write_text(json.dumps([asdict(each) for each in records], indent=1), encoding="utf-8")
