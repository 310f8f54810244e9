"""docker-compose.yml and Dockerfile: valid, closed to the outside, started in the right order."""

import asyncio
import os
import re
import subprocess
import sys
import tomllib
from asyncio.subprocess import PIPE, STDOUT
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from temporalio.client import Client

from runtime.search_attributes import WANTED, usable
from runtime.server.embedded_server import EmbeddedServer
from runtime.server.temporal_binary import find_temporal
from supervision import limits

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = ROOT / "docker-compose.yml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
OURS = ("worker", "standin")


def dependencies(service: str) -> dict[str, str]:
    return {name: rule["condition"] for name, rule in SERVICES[service].get("depends_on", {}).items()}


def test_it_follows_the_compose_specification() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_ports_are_published_on_loopback_only(service: str) -> None:
    assert [port for port in SERVICES[service].get("ports", []) if not port.startswith("127.0.0.1:")] == []


@pytest.mark.parametrize("service", SERVICES)
def test_images_are_pinned_and_maintained(service: str) -> None:
    image = SERVICES[service]["image"]
    assert re.fullmatch(r"[\w./-]+:\d+\.\d+(\.\d+)?(-[\w.]+)?", image), image
    assert "auto-setup" not in image


def test_server_and_admin_tools_are_of_one_version() -> None:
    versions = {SERVICES[name]["image"].rpartition(":")[2] for name in ("schema", "server", "namespace")}
    assert len(versions) == 1


def test_each_service_waits_for_what_it_needs() -> None:
    assert dependencies("schema") == {"postgresql": "service_healthy"}
    assert dependencies("server") == {"schema": "service_completed_successfully"}
    assert dependencies("namespace") == {"server": "service_healthy"}
    assert dependencies("ui") == {"server": "service_healthy"}
    assert dependencies("worker")["namespace"] == "service_completed_successfully"


def test_who_is_waited_for_until_healthy_has_a_health_check() -> None:
    waited_for = {
        name
        for service in SERVICES
        for name, condition in dependencies(service).items()
        if condition == "service_healthy"
    }
    assert {name for name in waited_for if "healthcheck" not in SERVICES[name]} == set()
    assert "worker" not in waited_for
    assert SERVICES["worker"]["healthcheck"]["test"][0] == "CMD"


def test_the_stand_in_comes_only_when_asked_for() -> None:
    assert SERVICES["standin"]["profiles"] == ["standin"]
    assert SERVICES["worker"]["depends_on"]["standin"]["required"] is False
    environment = dict(
        line.split("=", 1) for line in (ROOT / "deploy/standin.env").read_text().splitlines() if "=" in line[1:]
    )
    assert environment["COMPOSE_PROFILES"] == "standin"
    assert environment["ANTHROPIC_BASE_URL"] == f"http://standin:{SERVICES['standin']['command'][-1]}"


@pytest.mark.parametrize("service", OURS)
def test_our_processes_get_no_rights_they_do_not_need(service: str) -> None:
    settings = SERVICES[service]
    assert settings["read_only"] is True
    assert settings["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in settings["security_opt"]
    assert settings["pids_limit"] > 0
    assert settings["mem_limit"]
    assert [mount.split(":")[0] for mount in settings["tmpfs"]] == ["/tmp"]
    assert not {"privileged", "cap_add", "network_mode", "user", "pid"} & settings.keys()


def test_artifacts_are_in_a_named_volume_and_no_secret_is_in_this_file() -> None:
    worker = SERVICES["worker"]
    assert worker["volumes"] == ["artifacts:/data"]
    secrets = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "SUPERVISOR_MODEL")
    assert {name: worker["environment"][name] for name in secrets} == dict.fromkeys(secrets)


def test_the_worker_gets_the_time_to_drain() -> None:
    grace = timedelta(seconds=int(SERVICES["worker"]["stop_grace_period"].removesuffix("s")))
    assert grace > limits.GRACEFUL_SHUTDOWN


def test_only_temporal_reaches_the_database() -> None:
    on_storage = {name for name, settings in SERVICES.items() if "storage" in settings.get("networks", [])}
    assert on_storage == {"postgresql", "schema", "server"}
    assert "ports" not in SERVICES["postgresql"]


def test_mounted_files_exist() -> None:
    mounts = [mount.split(":") for settings in SERVICES.values() for mount in settings.get("volumes", [])]
    files = [(source, options) for source, _, *options in mounts if source.startswith("./")]
    assert len(files) == 3
    for source, options in files:
        assert (ROOT / source).is_file(), source
        assert options == ["ro"]
    assert SERVICES["server"]["environment"]["DYNAMIC_CONFIG_FILE_PATH"] in SERVICES["server"]["volumes"][0]


def test_the_image_runs_as_nobody_special_from_pinned_bases_with_the_locked_versions() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert bases
    assert all(re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", base) for base in bases), bases
    assert [line for line in lines if line.startswith("USER ")] == ["USER supervisor"]
    assert any("uv sync --locked --no-dev" in line for line in lines)


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
    async with EmbeddedServer(cache=tmp_path, shared=False, headless=True) as info:
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
