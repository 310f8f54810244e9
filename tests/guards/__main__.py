"""`make guards`: plays the case of each guard without it. Exits 1 if one of them stays green."""

import argparse
import os
import subprocess
import sys

from tests.guards.table import ROOT, guards

_RED = 1  # tests failed: another exit code says that the case was not played
_SECONDS = 600


def is_red_without(name: str, case: str) -> bool:
    """True if a case fails without the guard."""
    words = ["-q", "-n", "0", "-x", "--timeout", "120", "-p", "no:cacheprovider", "-p", "tests.guards.dropped", case]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        env={**os.environ, "DROPPED": name},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_SECONDS,
        check=False,
    )
    if ended.returncode not in (0, _RED):
        sys.stdout.buffer.write(ended.stdout[-2000:])
    return ended.returncode == _RED


def main(only: list[str]) -> int:
    """Returns how many guards nobody missed."""
    chosen = {name: guard for name, guard in guards().items() if not only or name in only}
    missed = 0
    for name, guard in chosen.items():
        is_red = is_red_without(name, guard.case)
        missed += not is_red
        print(f"{'red' if is_red else 'NOT NOTICED'}  {guard.finding}  {name}: {guard.case}", flush=True)
    print(f"{len(chosen)} guards, {missed} that nobody missed", flush=True)
    return missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.guards", description=__doc__)
    parser.add_argument("only", nargs="*", help="names of guards")
    sys.exit(bool(main(parser.parse_args().only)))
