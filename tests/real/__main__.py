"""`make real`: gets and serves a real model, plays questions with it, and writes what it saw to FOLDER.

A question takes minutes on a laptop, all of them some hours. With ONLY, the parts or questions of these names alone
are played, with URL a model that is served already. It fails only where a run that should go on did not.
"""

import argparse
import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.real.model_server import ModelServer, cached, get, model_server
from tests.real.playing import Disturbance, Scene, Seen, keep, scene
from tests.real.questions import QUESTIONS, Question, catering_contracts
from tests.waiting import until

_CALL_SECONDS = 1800  # one model call, at a few tokens a second
FIRST = QUESTIONS[0]


async def _after_first_call(at: Scene, run_id: str) -> None:
    """Returns once a run has had its first answer: its next call is in flight."""
    await until(lambda: _has_calls(at, run_id), _CALL_SECONDS)


async def _has_calls(at: Scene, run_id: str) -> bool:
    return await at.model_calls(run_id) > 0


async def kill_the_worker(at: Scene, run_id: str) -> None:
    """Ends the Worker with SIGKILL in a model call, and starts another."""
    await _after_first_call(at, run_id)
    at.kill_worker()
    await at.start_worker()


def restart(server: ModelServer) -> Disturbance:
    """Returns what ends the model's server in a call, and starts it again."""

    async def done(at: Scene, run_id: str) -> None:
        await _after_first_call(at, run_id)
        server.kill()
        await server.start()

    return done


class Play:
    """The parts that are wanted, and what was seen so far."""

    def __init__(self, folder: Path, only: list[str]) -> None:
        self.folder = folder
        self.only = only
        self.records: list[Seen] = []

    def wants(self, *names: str) -> bool:
        """True if one of these names is wanted."""
        return not self.only or bool(set(names) & set(self.only))

    async def ask(self, at: Scene, part: str, question: Question, disturb: Disturbance | None = None) -> None:
        """Plays a question and writes what has been seen so far."""
        record = await at.play(part, question, disturb)
        self.records.append(record)
        keep(self.records, self.folder)
        said = " ".join(record.answer.split())[:100]
        sys.stdout.write(f"{part} {record.name}: {record.verdict} ({record.status}, {record.seconds:.0f} s): {said}\n")
        sys.stdout.flush()


async def plain(play: Play, url: str) -> None:
    """Plays the questions, a `for_each`, and a kill of the Worker."""
    async with scene(play.folder / "plain", url) as at:
        for question in QUESTIONS:
            if play.wants("questions", question.name):
                await play.ask(at, "questions", question)
        if play.wants("for_each", "c1"):
            await play.ask(at, "for_each", catering_contracts())
        if play.wants("kill"):
            await play.ask(at, "kill", FIRST, kill_the_worker)


async def one_call_at_a_time(play: Play, url: str) -> None:
    """Plays two runs at once where the Worker has one call in flight."""
    async with scene(play.folder / "one-call", url, SUPERVISOR_MODEL_CALLS="1") as at:
        both = (play.ask(at, "one call", QUESTIONS[0]), play.ask(at, "one call", QUESTIONS[1]))
        await asyncio.gather(*both)


async def with_own_server(play: Play, folder: Path, port: int) -> None:
    """Plays what needs a server of its own: one that is restarted, and a window of 4,096."""
    if play.wants("restart"):
        async with model_server(folder, port) as server, scene(play.folder / "restart", server.url) as at:
            await play.ask(at, "restart", FIRST, restart(server))
    if play.wants("small"):
        small = model_server(folder, port, window=4096)
        async with small as server, scene(play.folder / "small", server.url) as at:
            await play.ask(at, "small", QUESTIONS[0])
            await play.ask(at, "small", QUESTIONS[5])


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@asynccontextmanager
async def _served(url: str | None, folder: Path) -> AsyncIterator[str]:
    """Gives the URL of a served model: the given one, else one of this process."""
    if url:
        yield url
        return
    async with model_server(folder, _free_port(), slots=2) as server:
        yield server.url


async def main(options: argparse.Namespace) -> int:
    """Plays all that is wanted; returns how many runs gave no result."""
    options.folder.mkdir(parents=True, exist_ok=True)
    own = options.model
    await asyncio.to_thread(get, own)
    play = Play(options.folder, options.only)
    async with _served(options.url, own) as url:
        await plain(play, url)
        if play.wants("one-call"):
            await one_call_at_a_time(play, url)
    await with_own_server(play, own, _free_port())
    sys.stdout.write(f"{options.folder / 'real.md'}\n")
    undisturbed = ("questions", "for_each")
    return sum(each.status == "failed" for each in play.records if each.part not in undisturbed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.real", description=__doc__)
    parser.add_argument(
        "--only", nargs="*", default=[], help="parts (questions, for_each, kill, ...) or questions (d1)"
    )
    parser.add_argument("--url", help="a model that is served already")
    parser.add_argument("--model", type=Path, default=cached(), help="the folder of the model and its server")
    parser.add_argument("--folder", type=Path, default=Path(".cache/real"), help="what was seen is written there")
    sys.exit(asyncio.run(main(parser.parse_args())))
