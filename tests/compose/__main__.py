"""`make compose-test`: builds the image, runs docker-compose.yml for real, and breaks each part in the middle of a run.

The ledger of the stand-in model judges: no call may come again after its answer was stored. A line per step.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

from tests.postgres import free_port

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
FILES = ("docker-compose.yml", "tests/compose/override.yml")
ALL: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / FILES[0]).read_text())["services"]
SERVICES = {name: settings for name, settings in ALL.items() if settings.get("profiles", ["standin"]) == ["standin"]}
PROJECT = "supervisor-compose-test"
PODMAN_COMPOSE = "podman-compose==1.6.0"
GOAL = "What happened to deliveries to the South in 2025, and why do office chairs come back?"
FACTS = ("Südfracht GmbH", "Alpen-Logistik", "lot 7")
PATIENCE = 150.0
CUT = 30.0
TICK = 0.05  # the clock of a file's time lags
KILLED = ("model", "worker", "server", "postgresql", "standin")


class Broken(Exception):
    """A step that did not hold."""


def run(*command: str, check: bool = True, feed: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command of the engine. Raises Broken with the end of its output."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, input=feed)
    if check and done.returncode:
        raise Broken(f"{shlex.join(command)}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-4000:]}")
    return done


def until(what: str, holds: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Returns what `holds` returns once it is true. Raises Broken."""
    end = time.monotonic() + patience
    while not (found := holds()):
        if time.monotonic() > end:
            raise Broken(f"{what}: not within {patience:g} s")
        time.sleep(0.5)
    return found


class Stack:
    """The services of the compose file under an engine: docker where its daemon answers, else podman."""

    def __init__(self) -> None:
        docker = shutil.which("docker") and not run("docker", "info", check=False).returncode
        self.engine = "docker" if docker else "podman"
        tool = ["docker", "compose"]
        self.alone: list[str] = []
        if not docker:
            tool = [shutil.which("uv") or str(ROOT / ".uv/bin/uv"), "tool", "run", PODMAN_COMPOSE, "--in-pod", "false"]
            self.alone = ["--no-deps"]
            # without systemd podman has no timers for health checks: `_check_health` takes their place
            os.environ["DISABLE_HC_SYSTEMD"] = "true"
        files = [word for file in FILES for word in ("-f", file)]
        self.compose = [*tool, *files, "-p", PROJECT, "--env-file", "deploy/standin.env"]
        self.ui = free_port()
        os.environ |= {
            "COMPOSE_PROFILES": "standin",
            "TEMPORAL_PORT": str(free_port()),
            "TEMPORAL_UI_PORT": str(self.ui),
        }
        self._stopped = threading.Event()

    def container(self, service: str) -> str:
        """Returns the name of a service's container."""
        labels = (f"com.docker.compose.project={PROJECT}", f"com.docker.compose.service={service}")
        filters = [word for label in labels for word in ("--filter", f"label={label}")]
        names = run(self.engine, "ps", "-a", *filters, "--format", "{{.Names}}").stdout.split()
        return names[0] if names else ""

    def state(self, service: str) -> dict[str, Any]:
        """Returns the state of a service's container as the engine has it; empty if there is none."""
        name = self.container(service)
        done = run(self.engine, "inspect", "--format", "{{json .State}}", name, check=False) if name else None
        return dict(json.loads(done.stdout)) if done and not done.returncode else {}

    def fits(self, service: str, condition: str) -> bool:
        """True if a service's container is as another service's `depends_on` asks."""
        state = self.state(service)
        if condition == "service_completed_successfully":
            return state.get("Status") == "exited" and state.get("ExitCode") == 0
        if condition == "service_healthy":
            health: dict[str, Any] = state.get("Health") or state.get("Healthcheck") or {}
            return bool(state.get("Running")) and health.get("Status") == "healthy"
        return bool(state.get("Running"))

    def up(self) -> str:
        """Starts the services in their order, and waits until all of them are as they should be."""
        if self.engine == "docker":
            run(*self.compose, "up", "-d")
        else:
            for service in _in_order():
                for other, rule in SERVICES[service].get("depends_on", {}).items():
                    until(f"{other} for {service}", partial(self.fits, other, rule["condition"]))
                run(*self.compose, "up", "-d", *self.alone, service)
        for service in SERVICES:
            until(service, partial(self.fits, service, _goal_of(service)))
        return f"{len(SERVICES)} services, each healthy or completed"

    def down(self, *words: str) -> None:
        """Removes the containers."""
        run(*self.compose, "down", *words)

    def log(self, service: str) -> str:
        """Returns what a service's container has written."""
        done = run(self.engine, "logs", self.container(service), check=False)
        return done.stdout + done.stderr

    def execute(self, service: str, *command: str, check: bool = True) -> str:
        """Runs a command in a service's container; returns its standard output."""
        return run(self.engine, "exec", self.container(service), *command, check=check).stdout

    def kill(self, service: str) -> None:
        """Ends the first process of a container with SIGKILL, as a crash would; the engine starts it again."""
        os.kill(int(self.state(service)["Pid"]), 9)

    @contextlib.contextmanager
    def cut(self, service: str, network: str) -> Iterator[None]:
        """Takes down a container's link to a network for the time of a `with` block; its addresses stay."""
        name, pid = self.container(service), str(self.state(service)["Pid"])
        networks = json.loads(
            run(self.engine, "inspect", "--format", "{{json .NetworkSettings.Networks}}", name).stdout
        )
        address = networks[f"{PROJECT}_{network}"]["IPAddress"]
        inside = ("nsenter", "-t", pid, "-n", "ip")
        lines = run(*inside, "-o", "-4", "address").stdout.splitlines()
        link = next(line.split()[1] for line in lines if f" {address}/" in line)
        run(*inside, "link", "set", link, "down")
        try:
            yield
        finally:
            run(*inside, "link", "set", link, "up")

    @contextlib.contextmanager
    def checking_health(self) -> Iterator[None]:
        """Runs the health checks of all containers where the engine does not."""
        thread = threading.Thread(target=self._check_health, daemon=True)
        if self.engine == "podman":
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()

    def _check_health(self) -> None:
        while not self._stopped.wait(3):
            for service in (name for name, settings in SERVICES.items() if "healthcheck" in settings):
                if name := self.container(service):
                    run(self.engine, "healthcheck", "run", name, check=False)


def _in_order() -> list[str]:
    ordered: list[str] = []

    def add(service: str) -> None:
        for other in SERVICES[service].get("depends_on", {}):
            add(other)
        if service not in ordered:
            ordered.append(service)

    for service in SERVICES:
        add(service)
    return ordered


def _goal_of(service: str) -> str:
    """Returns what a service's container is to be in the end."""
    if service in ("schema", "namespace"):
        return "service_completed_successfully"
    return "service_healthy" if "healthcheck" in SERVICES[service] else "service_started"


def starter(stack: Stack, *words: str, check: bool = True) -> str:
    """Runs the command line in the container `worker`."""
    return stack.execute("worker", "python", "starter.py", *words, check=check)


def calls(stack: Stack, run_id: str) -> list[dict[str, Any]]:
    """Returns the ledger's lines about one run."""
    text = stack.execute("standin", "cat", "/data/calls.jsonl", check=False)
    lines = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
    return [line for line in lines if line["call"].startswith(f"{run_id}/")]


def stored(stack: Stack, run_id: str) -> dict[str, float]:
    """Returns when the answer of each call was stored, by the call's name in the ledger."""
    printed = stack.execute("worker", "find", "/data/artifacts", "-path", f"*/{run_id}/*", "-printf", r"%T@ %p\n")
    parts = [(float(at), path.split("/")) for at, _, path in (line.partition(" ") for line in printed.splitlines())]
    # <store>/<run>/<first run id>/<workflow id>/<step>/<sha256>
    return {unquote("/".join(path[-3:-1])): at for at, path in parts if path[-5:-4] == [run_id]}


def begin(stack: Stack, run_id: str, answered: int = 3) -> None:
    """Starts a run and waits until some of its calls were answered and one is in flight."""
    starter(stack, "run", "--data", "/shop", "--id", run_id, "--detach", GOAL)

    def under_way() -> bool:
        events = Counter(call["event"] for call in calls(stack, run_id))
        return events["answered"] >= answered and events["received"] > events["answered"]

    until("answered calls and one in flight", under_way)


def finish(stack: Stack, run_id: str) -> str:
    """Waits for a run's end; returns its figures. Raises Broken if it is not whole, or a stored call came again."""

    def result() -> dict[str, Any] | None:
        text = starter(stack, "result", run_id, "--json", "--full", check=False)
        found = json.loads(text) if text.startswith("{") else {}
        return found if found.get("status") not in (None, "running") else None

    ended = until(f"the end of {run_id}", result)
    missing = [fact for fact in FACTS if fact not in ended["answer"]]
    if ended["status"] != "completed" or missing:
        raise Broken(f"{run_id}: {ended['status']}, without {missing}: {json.dumps(ended)[:3000]}")
    received = [(call["call"], call["at"]) for call in calls(stack, run_id) if call["event"] == "received"]
    at = stored(stack, run_id)
    if missing := sorted({call for call, _ in received} - at.keys()):
        raise Broken(f"{run_id}: asked, and never stored: {missing}")
    if repeated := [call for call, asked in received if asked > at[call] + TICK]:
        raise Broken(f"{run_id}: stored, and sent again: {repeated}")
    return f"completed; {len(at)} calls, {len(received) - len(at)} in flight sent again, 0 stored sent again"


def step(title: str, work: Callable[[], str]) -> None:
    """Does one step and prints its line."""
    began = time.monotonic()
    figures = work()
    print(f"{title:34} {time.monotonic() - began:6.1f} s  {figures}", flush=True)


def images(stack: Stack) -> str:
    """Gets upstream's images, or makes stand-ins for them; builds the project's."""
    named = {settings["image"] for settings in SERVICES.values() if "build" not in settings}
    named |= set(re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    if any(run(stack.engine, "image", "inspect", name, check=False).returncode for name in named) and any(
        run(stack.engine, "pull", name, check=False).returncode for name in named
    ):
        with tempfile.TemporaryDirectory(prefix="compose-test-") as folder:
            run(str(HERE / "stand_ins.sh"), stack.engine, folder)
    limits = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000") if stack.engine == "podman" else ()
    run(stack.engine, "build", "--network", "host", *limits, "--tag", SERVICES["worker"]["image"], str(ROOT))
    of = "stand-ins" if stand_ins(stack) else "upstream's"
    return f"{stack.engine}; {len(named)} images, {of}; {SERVICES['worker']['image']} built"


def stand_ins(stack: Stack) -> list[str]:
    """Returns the images that are stand-ins or built on one: nothing else may find them."""
    return run(stack.engine, "images", "-q", "--filter", "label=supervisor.stand-in").stdout.split()


def first_run(stack: Stack) -> str:
    """README's run, and the Web UI."""
    starter(stack, "run", "--data", "/shop", "--id", "first", GOAL)
    with urllib.request.urlopen(f"http://127.0.0.1:{stack.ui}/", timeout=10) as page:
        if page.status != 200:
            raise Broken(f"the Web UI answers {page.status}")
    return finish(stack, "first")


def old_volumes(stack: Stack) -> str:
    """Everything removed but the volumes, and started again, in the middle of a run."""
    begin(stack, "old-volumes")
    stack.down()
    stack.up()
    return finish(stack, "old-volumes")


def killed(stack: Stack, service: str) -> str:
    """One service's first process is killed in mid-run; the engine starts it again."""
    begin(stack, f"kill-{service}")
    before, since = stack.state(service)["StartedAt"], time.monotonic()
    stack.kill(service)
    until(
        f"{service} again", lambda: stack.state(service).get("StartedAt") != before and stack.fits(service, "running")
    )
    return f"up again after {time.monotonic() - since:.1f} s; {finish(stack, f'kill-{service}')}"


def cut_off(stack: Stack, service: str, network: str) -> str:
    """A service is off a network for half a minute in mid-run."""
    begin(stack, f"cut-{service}")
    with stack.cut(service, network):
        time.sleep(CUT)
    return finish(stack, f"cut-{service}")


def restored(stack: Stack) -> str:
    """The database is dumped in mid-run, lost with its volume, and restored into a new one."""
    begin(stack, "restore")
    for service in ("model", "worker", "server"):
        run(stack.engine, "stop", stack.container(service))
    dump = stack.execute("postgresql", "pg_dumpall", "-U", "temporal")
    stack.down()
    run(stack.engine, "volume", "rm", f"{PROJECT}_postgresql")
    run(*stack.compose, "up", "-d", *stack.alone, "postgresql")
    until("an empty database", lambda: stack.fits("postgresql", "service_healthy"))
    run(stack.engine, "exec", "-i", stack.container("postgresql"), "psql", "-q", "-U", "temporal", feed=dump)
    stack.up()
    listed = starter(stack, "list")
    if any(f"kill-{service}" not in listed for service in KILLED):
        raise Broken(f"runs are missing after the restore: {listed}")
    for run_id in ("first", "kill-model"):
        starter(stack, "result", run_id, "--full")
        starter(stack, "verify", run_id)
    return f"{len(dump) >> 10:,} KiB; {finish(stack, 'restore')}; earlier runs readable"


def refused(stack: Stack) -> str:
    """A Worker without a key, and one whose data folder belongs to another user, say so and end."""
    image = SERVICES["worker"]["image"]
    with tempfile.TemporaryDirectory(prefix="compose-test-") as folder:
        no_key = ("--network", "none"), ("--roles", "model"), "no model to call: set ANTHROPIC_API_KEY"
        on_temporal = (
            "--network",
            f"{PROJECT}_temporal",
            "-e",
            "TEMPORAL_ADDRESS=server:7233",
            "-v",
            f"{folder}:/data",
        )
        unwritable = on_temporal, ("--roles", "workflows"), "let user 10001 write there"
        for options, roles, words in (no_key, unwritable):
            command = (image, "python", "worker_main.py", *roles)
            done = run(stack.engine, "run", "--rm", "--read-only", "--tmpfs", "/tmp", *options, *command, check=False)
            if done.returncode != 2 or words not in done.stderr or "Traceback" in done.stderr:
                raise Broken(f"{roles}: exit code {done.returncode}, {done.stderr}")
    return "both say what to do, exit code 2"


def main() -> int:
    """Does all steps; leaves nothing behind. Returns 0 if all held."""
    stack = Stack()
    try:
        step("images", lambda: images(stack))
        stack.down("--volumes")
        with stack.checking_health():
            step("up", stack.up)
            step("README's run", lambda: first_run(stack))
            step("no key; no right to write", lambda: refused(stack))
            step("down and up on old volumes", lambda: old_volumes(stack))
            for service in KILLED:
                step(f"kill -9 {service}", partial(killed, stack, service))
            step(f"model {CUT:g} s without network", lambda: cut_off(stack, "model", "temporal"))
            step(f"postgresql {CUT:g} s without network", lambda: cut_off(stack, "postgresql", "storage"))
            step("dump, restore into a new volume", lambda: restored(stack))
    except Broken as error:
        print(error)
        for service in SERVICES:
            print(f"--- {service}\n{stack.log(service)[-3000:]}")
        return 1
    finally:
        if "KEEP" not in os.environ:
            stack.down("--volumes")
            if made := stand_ins(stack):
                run(stack.engine, "rmi", "--force", *dict.fromkeys(made))
                run(stack.engine, "rmi", "--force", "localhost/supervisor-stand-in:base")
    return 0


if __name__ == "__main__":
    sys.exit(main())
