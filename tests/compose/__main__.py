"""`make compose-test`: builds the image, runs docker-compose.yml for real, and breaks each part in the middle of a run.

The ledger of the stand-in model judges: no call may come again after its answer was stored. A line per step.
"""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
FILES = ("docker-compose.yml", "tests/compose/override.yml")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / FILES[0]).read_text())["services"]
PROJECT = "supervisor-compose-test"
PODMAN_COMPOSE = "podman-compose==1.6.0"
GOAL = "What happened to deliveries to the South in 2025, and why do office chairs come back?"
FACTS = ("Südfracht GmbH", "Alpen-Logistik", "lot 7")
PATIENCE = 300.0
CUT = 30.0
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
        tool = ["docker", "compose"] if docker else [sys.executable, "-m", "uv", "tool", "run", PODMAN_COMPOSE]
        if not docker:
            tool = [shutil.which("uv") or str(ROOT / ".uv/bin/uv"), "tool", "run", PODMAN_COMPOSE]
            # without systemd podman has no timers for health checks: `_check_health` takes their place
            os.environ["DISABLE_HC_SYSTEMD"] = "true"
        files = [word for file in FILES for word in ("-f", file)]
        self.compose = [*tool, *files, "-p", PROJECT, "--env-file", "deploy/standin.env"]
        os.environ["COMPOSE_PROFILES"] = "standin"
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

    def up(self) -> None:
        """Starts the services in their order, and waits until all of them are as they should be."""
        if self.engine == "docker":
            run(*self.compose, "up", "-d")
        else:
            for service in _in_order():
                for other, rule in SERVICES[service].get("depends_on", {}).items():
                    until(f"{other} for {service}", lambda o=other, r=rule: self.fits(o, r["condition"]))
                run(*self.compose, "up", "-d", "--no-deps", service)
        for service in SERVICES:
            until(service, lambda s=service: self.fits(s, _goal_of(s)))
        until("a Worker that serves", lambda: "worker ready" in self.log("worker") and "worker ready" in self.log("model"))

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
        """Takes a service's container off a network for the time of a `with` block."""
        name, whole = self.container(service), f"{PROJECT}_{network}"
        run(self.engine, "network", "disconnect", whole, name)
        try:
            yield
        finally:
            run(self.engine, "network", "connect", "--alias", service, whole, name)

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
    """Returns the strongest condition that others wait for, else that it runs."""
    asked = {s["depends_on"][service]["condition"] for s in SERVICES.values() if service in s.get("depends_on", {})}
    return max(asked, default="service_started", key=len) if asked else "service_started"


def starter(stack: Stack, *words: str, check: bool = True) -> str:
    """Runs the command line in the container `worker`."""
    return stack.execute("worker", "python", "starter.py", *words, check=check)


def calls(stack: Stack, run_id: str) -> list[dict[str, Any]]:
    """Returns the ledger's lines about one run."""
    text = stack.execute("standin", "cat", "/data/calls.jsonl", check=False)
    lines = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
    return [line for line in lines if line["call"].startswith(f"{run_id}/")]


def stored(stack: Stack, run_id: str) -> dict[str, float]:
    """Returns when each call's answer was stored, by workflow id and step."""
    listed = stack.execute("worker", "find", "/data/artifacts", "-path", f"*{run_id}*", "-type", "f", "-printf", "%T@ %p\n")
    return {path: float(at) for at, _, path in (line.partition(" ") for line in listed.splitlines())}


def begin(stack: Stack, run_id: str, answered: int = 3) -> None:
    """Starts a run and waits until some of its calls were answered."""
    starter(stack, "run", "--data", "/shop", "--id", run_id, "--detach", GOAL)
    until("answered calls", lambda: sum(c["event"] == "answered" for c in calls(stack, run_id)) >= answered)


def finish(stack: Stack, run_id: str) -> str:
    """Waits for a run's end; returns its figures. Raises Broken if it is not whole, or a stored call came again."""
    def result() -> dict[str, Any] | None:
        text = starter(stack, "result", run_id, "--json", "--full", check=False)
        found = json.loads(text) if text.startswith("{") else {}
        return found if found.get("status") not in (None, "running") else None

    ended = until(f"the end of {run_id}", result)
    if ended["status"] != "completed" or any(fact not in ended["answer"] for fact in FACTS):
        raise Broken(f"{run_id}: {json.dumps(ended, indent=1)[:3000]}")
    ledger, at = calls(stack, run_id), stored(stack, run_id)
    received = Counter(c["call"] for c in ledger if c["event"] == "received")
    again = [
        c["call"] for c in ledger
        if c["event"] == "received" and any(time_ < c["at"] - 0.05 for time_ in _stored_at(c["call"], at))
    ]
    if again:
        raise Broken(f"{run_id}: stored, and sent again: {again}")
    twice = sum(times - 1 for times in received.values())
    return f"completed, {len(received)} calls, {twice} sent again that were in flight, 0 that were stored"
