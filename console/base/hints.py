"""Commands that messages suggest, written so that they run as printed, from where this process was started."""

from pathlib import Path

from runtime.paths import PROGRAM, command

EXAMPLE_GOAL = "Which source of electricity grew most in Iowa from 2001 to 2017?"
_connection: list[str] = []


def keep_connection(address: str | None, namespace: str | None, env_file: Path | None) -> None:
    """Makes all hints repeat these options: without them a command would look elsewhere."""
    given = {"--address": address, "--namespace": namespace, "--env-file": env_file and str(env_file)}
    _connection[:] = [word for name, value in given.items() if value for word in (name, value)]


def hint(*words: str) -> str:
    """Returns a command of this program."""
    return command(PROGRAM, [*_connection, *words])


def worker_hint(*words: str) -> str:
    """Returns the command that starts a Worker."""
    return hint("worker", *words)
