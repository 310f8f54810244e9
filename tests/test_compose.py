"""docker-compose.yml and Dockerfile: valid, closed to the outside, started in the right order."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from asyncio.subprocess import PIPE, STDOUT
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from temporalio.client import Client

from activities.store.store_urls import open_store
from temporal_supervisor.runtime.search_attributes import WANTED, usable
from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer
from temporal_supervisor.runtime.server.temporal_binary import find_temporal
from temporal_supervisor.supervision.base import limits, spans
from tests.test_public_names import variables
from worker_main import SERVING

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = ROOT / "docker-compose.yml"
WHOLE: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = WHOLE["services"]
WORKERS = ("model", "worker", "outward")


def dependencies(service: str) -> dict[str, str]:
    return {name: rule["condition"] for name, rule in SERVICES[service].get("depends_on", {}).items()}


@pytest.mark.parametrize(
    "file", ["docker-compose.yml", "deploy/encryption.yml", "deploy/notices.yml", "tests/compose/override.yml"]
)
def test_it_follows_the_compose_specification(file: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", ROOT / file],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_who_is_waited_for_until_healthy_has_a_health_check_and_servers_are_of_one_version() -> None:
    waited_for = {
        name
        for service in SERVICES
        for name, condition in dependencies(service).items()
        if condition == "service_healthy"
    }
    assert {name for name in waited_for if "healthcheck" not in SERVICES[name]} == set()
    assert not waited_for & set(WORKERS)
    assert len({SERVICES[name]["image"].rpartition(":")[2] for name in ("schema", "server", "namespace")}) == 1


def test_the_stand_in_comes_only_when_asked_for() -> None:
    assert SERVICES["standin"]["profiles"] == ["standin"]
    assert all(SERVICES[worker]["depends_on"]["standin"]["required"] is False for worker in WORKERS)
    environment = dict(
        line.split("=", 1) for line in (ROOT / "deploy/standin.env").read_text().splitlines() if "=" in line[1:]
    )
    assert environment["COMPOSE_PROFILES"] == "standin"
    assert environment["ANTHROPIC_BASE_URL"] == f"http://standin:{SERVICES['standin']['command'][-1]}"


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_is_pinned_confined_and_published_on_loopback_only(service: str) -> None:
    settings = SERVICES[service]
    image = settings["image"]
    assert re.fullmatch(r"[\w./-]+:\d+\.\d+(\.\d+)?(-[\w.]+)?(@sha256:[0-9a-f]{64})?", image), image
    assert "auto-setup" not in image  # upstream maintains it no more
    assert [port for port in settings.get("ports", []) if not port.startswith("127.0.0.1:")] == []
    assert settings["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in settings["security_opt"]
    assert settings["pids_limit"] > 0
    assert settings["mem_limit"]
    assert settings.get("read_only") or service in ("server", "ui", "observability")  # their start-up writes
    assert service == "postgresql" or "cap_add" not in settings


def test_outward_tools_are_of_one_service_which_comes_when_asked_for() -> None:
    roles = {name: SERVICES[name]["command"][-1].split(",") for name in WORKERS}
    assert roles == {"model": ["model"], "worker": ["workflows", "tools"], "outward": ["outward"]}
    assert SERVICES["outward"]["profiles"] == ["outward"]
    assert [name for name in SERVICES if "SUPERVISOR_SECRETS_DIR" in str(SERVICES[name])] == ["outward"]
    assert [file.name for file in (ROOT / "deploy/no-secrets").iterdir()] == [".gitkeep"]


def test_the_key_is_a_file_of_one_service_and_in_no_environment() -> None:
    assert {name for name, settings in SERVICES.items() if "secrets" in settings} == {"model"}
    assert SERVICES["model"]["secrets"] == ["anthropic_api_key"]
    assert SERVICES["model"]["environment"]["ANTHROPIC_API_KEY_FILE"] == "/run/secrets/anthropic_api_key"
    named = {name for settings in SERVICES.values() for name in settings.get("environment", {})}
    assert {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"} & named == set()
    # other kinds of secrets cannot be mounted into a container that is read-only
    source = WHOLE["secrets"]["anthropic_api_key"]["file"]
    default = source.partition(":-")[2].removesuffix("}")
    assert (ROOT / default).read_text(encoding="utf-8") == ""


def test_only_who_calls_models_or_runs_outward_tools_reaches_the_outside() -> None:
    internal = {name for name, network in WHOLE["networks"].items() if network.get("internal")}
    assert internal == {"storage", "temporal"}
    open_to = {name: set(settings.get("networks", ["default"])) - internal for name, settings in SERVICES.items()}
    assert {name: networks for name, networks in open_to.items() if networks} == {
        "model": {"outside"},
        "outward": {"outside"},
        "server": {"loopback"},
        "ui": {"loopback"},
        "observability": {"loopback"},
    }


def test_teams_of_ones_own_and_other_endpoints_reach_the_workers() -> None:
    for name in WORKERS:
        assert SERVICES[name]["environment"]["SUPERVISOR_TEAMS_DIR"] == "/teams"
        assert "${SUPERVISOR_TEAMS_DIR:-./deploy/no-teams}:/teams:ro" in SERVICES[name]["volumes"]
    assert [file.name for file in (ROOT / "deploy/no-teams").iterdir()] == [".gitkeep"]
    of_processes = {"SUPERVISOR_MODEL_CALLS", "SUPERVISOR_MODEL_RPM"}
    of_models = {name for name in variables() if name.startswith("SUPERVISOR_MODEL_")} - of_processes
    of_models |= {"SUPERVISOR_SUPERVISOR_MODEL", "SUPERVISOR_WORKER_MODEL"}
    for name in ("model", "worker"):
        assert of_models - set(SERVICES[name]["environment"]) == set()


def test_notices_have_a_way_out() -> None:
    notices = yaml.safe_load((ROOT / "deploy/notices.yml").read_text(encoding="utf-8"))["services"]["worker"]
    assert "outside" in notices["networks"]
    assert "SUPERVISOR_NOTIFY" in notices["environment"]
    assert [name for name in SERVICES if "SUPERVISOR_NOTIFY" in SERVICES[name].get("environment", {})] == []


@pytest.mark.parametrize("service", WORKERS)
def test_workers_get_the_time_to_drain(service: str) -> None:
    grace = timedelta(seconds=int(SERVICES[service]["stop_grace_period"].removesuffix("s")))
    assert grace > limits.GRACEFUL_SHUTDOWN


@pytest.mark.parametrize("service", WORKERS)
def test_a_worker_is_healthy_while_it_beats(service: str, tmp_path: Path) -> None:
    kind, test = SERVICES[service]["healthcheck"]["test"]
    assert kind == "CMD-SHELL"

    def healthy() -> bool:
        return subprocess.run(["sh", "-c", test.replace("/tmp/supervisor", str(tmp_path))]).returncode == 0

    assert not healthy()
    file = tmp_path / SERVING
    file.touch()
    assert healthy()
    os.utime(file, (time.time() - 40,) * 2)
    assert not healthy()


def test_a_store_that_cannot_be_made_says_what_to_do() -> None:
    with pytest.raises(
        ValueError, match=r"let user \d+ write there, or name another place in SUPERVISOR_ARTIFACTS_URL"
    ):
        open_store("/proc/none/artifacts")


def test_the_image_runs_as_nobody_special_from_pinned_bases_with_the_locked_versions() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert bases
    assert all(re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", base) for base in bases), bases
    assert [line for line in lines if line.startswith("USER ")] == ["USER supervisor"]
    assert any("uv sync --locked --no-dev" in line for line in lines)
    assert [line for line in lines if "pip install" in line and "--require-hashes" not in line] == []
    pinned = (ROOT / "deploy/uv.txt").read_text(encoding="utf-8")
    assert re.match(r"uv==\d+\.\d+\.\d+ \\\n +--hash=sha256:[0-9a-f]{64}", pinned)


def test_the_image_gets_every_package_and_main_of_the_wheel() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = {word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]}
    included = set((ROOT / ".dockerignore").read_text(encoding="utf-8").split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"])
    assert shipped <= copied
    assert {f"!{name}" for name in shipped} <= included


async def test_the_namespace_job_makes_every_search_attribute_and_may_run_again(tmp_path: Path) -> None:
    (tmp_path / "temporal").symlink_to(find_temporal())
    async with EmbeddedServer(shared=False, headless=True) as info:
        environment = os.environ | {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "TEMPORAL_ADDRESS": info.address,
            "TEMPORAL_NAMESPACE": "fresh",
        }
        for _ in range(2):
            job = await asyncio.create_subprocess_exec(
                "sh", ROOT / "deploy/create-namespace.sh", env=environment, stdout=PIPE, stderr=STDOUT
            )
            output, _ = await job.communicate()
            assert job.returncode == 0, output.decode()
        client = await Client.connect(info.address, namespace="fresh")
        assert await usable(client) == list(WANTED)


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    """As a collector names them for Prometheus: underscores, the unit, and `_total` for counters."""
    names = {spans.TOKEN_USAGE, spans.BREAKER_OPEN, spans.WAITING}
    known = {name.replace(".", "_") for name in names} | {f"{spans.USD}_total", f"{spans.RETRIES}_total"}
    known |= {f"{name}_seconds" for name in (spans.OPERATION_DURATION, spans.RUN_DURATION)}
    panels = json.loads((ROOT / "deploy/dashboard.json").read_text(encoding="utf-8"))["panels"]
    asked = {
        name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
        for panel in panels
        for target in panel["targets"]
        for name in re.findall(r"\b(?:supervisor|gen_ai_client)_\w+", target.get("expr", ""))
    }
    labels = {"supervisor_status", "supervisor_kind"}
    assert asked - labels == {name.replace(".", "_") for name in known}
