"""Functions that misbehave in a child process, and one that waits for a test."""

import os
import re
import signal
import sys
import time


def echo(value: object) -> object:
    return value


def hold(folder: str, name: str) -> str:
    """Says that it began, and returns once it may: folders, as the process may not write files."""
    os.mkdir(f"{folder}/{name}.begun")
    while not os.path.exists(f"{folder}/{name}.go"):
        time.sleep(0.01)
    return name


def search(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


def repeat(count: int) -> str:
    return "x" * count


def flood() -> None:
    while True:
        sys.stdout.write("x" * 1000)


def hang() -> None:
    """Does not heed its alarm."""
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    time.sleep(3600)


def fork(folder: str) -> None:
    """Leaves a process behind that holds the standard output open."""
    child = os.fork()
    if not child:
        time.sleep(3600)
    os.mkdir(f"{folder}/{child}")
    os._exit(0)


def leave() -> None:
    os._exit(3)


def fill() -> int:
    return len(bytearray(1 << 40))


def write(path: str) -> None:
    with open(path, "w") as file:
        file.write("x")


def environment() -> dict[str, str]:
    return dict(os.environ)
