"""The wheel: exactly our packages and mains, usable from any folder, alone in its environment."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.serving import address_of, own_server
from tests.shown.examples import EXAMPLES, Example
from tests.shown.playing import lacks, named, place

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"workflows", "activities", "temporal_supervisor"}
MAINS = {"worker_main.py", "starter.py"}


def run(*words: str | Path, cwd: Path, **variables: str) -> CompletedProcess[str]:
    """A command that sees nothing of this checkout's environment."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(words, cwd=cwd, env=environment | variables, capture_output=True, text=True, timeout=100)


def uv(*words: str | Path, cwd: Path, **variables: str) -> str:
    """uv's output; out of its cache, where the set-up left everything, else from the registry."""
    program = shutil.which("uv") or ROOT / ".uv/bin/uv"
    done = run(program, "--offline", *words, cwd=cwd, **variables)
    if done.returncode != 0:
        done = run(program, *words, cwd=cwd, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--wheel", "--out-dir", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


def lend_compiled(site: Path) -> None:
    """Puts the compiled modules of this environment beside their sources; Python passes over those of other ones.

    Without them the first commands of a new environment would compile thousands of modules, for half a minute.
    """
    own = Path(sysconfig.get_path("purelib"))
    for folder, names, _ in os.walk(own):
        there = site / Path(folder).relative_to(own)
        names[:] = [name for name in names if name == "__pycache__" or (there / name).is_dir()]
        if "__pycache__" in names:
            names.remove("__pycache__")
            shutil.copytree(Path(folder, "__pycache__"), there / "__pycache__", dirs_exist_ok=True)


def install(venv: Path, wheel: Path) -> Path:
    """A new environment with the wheel and the locked versions of what it needs; its folder of commands."""
    uv("venv", "--python", sys.executable, venv, cwd=ROOT)
    pinned = venv / "requirements.txt"
    pinned.write_text(uv("export", "--locked", "--no-dev", "--no-emit-project", "--no-hashes", cwd=ROOT))
    uv("pip", "install", "-r", pinned, wheel, cwd=ROOT, VIRTUAL_ENV=str(venv))
    (site,) = venv.glob("lib/python*/site-packages")
    lend_compiled(site)
    return venv / "bin"


@pytest.fixture(scope="module")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("alone") / "venv", wheel)


def test_the_wheel_holds_every_file_of_our_packages_and_nothing_else(wheel: Path) -> None:
    """Team files and their data are no Python, and as needed."""
    held = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.split("/")[0] for name in held}
    assert {name for name in tops if not name.endswith(".dist-info")} == PACKAGES | MAINS
    files = {path.relative_to(ROOT).as_posix() for name in PACKAGES for path in (ROOT / name).rglob("*")}
    expected = {name for name in files if "__pycache__" not in name and (ROOT / name).is_file()}
    expected |= {
        f"temporal_supervisor/{path.relative_to(ROOT).as_posix()}"
        for folder in ("teams", "docs", "examples")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "temporal_supervisor/teams/almanac/team.toml" in expected
    assert "temporal_supervisor/teams/study/goals.toml" in expected
    typed = {f"{name}/py.typed" for name in ("temporal_supervisor", "activities")}
    expected.discard("workflows/ruff.toml")  # rules for those who change the code
    assert (expected | typed) - held == set()


@pytest.mark.parametrize(
    "command",
    [["temporal-supervisor", "--help"], ["python", "-m", "temporal_supervisor.standin", "--help"]],
    ids=" ".join,
)
def test_the_installed_commands_work_from_another_folder(commands: Path, command: list[str], tmp_path: Path) -> None:
    done = run(commands / command[0], *command[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()


@contextlib.asynccontextmanager
async def process(*words: str | Path, ready: str, cwd: Path, **variables: str) -> AsyncIterator[str]:
    """A program that runs meanwhile; gives the line with which it says that it is `ready`."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    started = await asyncio.create_subprocess_exec(
        *words, cwd=cwd, env=environment | variables, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert started.stdout is not None
    said = b""
    try:
        async with asyncio.timeout(60):
            while ready.encode() not in said:
                line = await started.stdout.readline()
                assert line, said.decode()
                said += line
        yield said.decode()
    finally:
        started.terminate()
        await started.communicate()


@pytest.mark.long
async def test_the_examples_for_python_run_from_the_wheel(commands: Path, tmp_path: Path) -> None:
    """Tools, a team's tests, a program, a Worker of one's own and a child: in an environment with nothing else."""
    python, folder = commands / "python", tmp_path / "examples" / "python"
    written = await asyncio.to_thread(run, commands / "temporal-supervisor", "examples", "python", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    tested = await asyncio.to_thread(run, python, "-m", "unittest", "test_library", cwd=folder)
    assert tested.returncode == 0, tested.stderr
    question = "On which shelf is Emma?"
    own_worker = (python, "own_worker.py", "--standin")
    async with own_server() as server:
        variables = {
            "TEMPORAL_ADDRESS": address_of(server),
            "SUPERVISOR_TEAMS_DIR": str(folder),
            "SUPERVISOR_ARTIFACTS_URL": str(tmp_path / "artifacts"),
        }
        async with process(*own_worker, ready="serving", cwd=folder, **variables):
            for words, first in [((python, "ask.py", question), ""), ((*own_worker, question), "Dear reader,")]:
                done = await asyncio.to_thread(run, *words, cwd=folder, **variables)
                assert (done.returncode, "shelf 3" in done.stdout) == (0, True), done.stderr
                assert done.stdout.startswith(first)


COMMON_NAMES = ("workflows", "activities", "supervision", "runtime", "console", "standin", "teams")


def test_a_program_beside_folders_of_common_names_imports_the_client_package(commands: Path, tmp_path: Path) -> None:
    for name in COMMON_NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("mine = True\n")
    names = ", ".join(COMMON_NAMES)
    lines = [
        "import temporal_supervisor",
        "loaded = [getattr(temporal_supervisor, name) for name in temporal_supervisor.__all__]",
        f"import {names}",
        f"print(all(package.mine for package in ({names})))",
    ]
    (tmp_path / "program.py").write_text("\n".join(lines))
    done = run(commands / "python", "program.py", cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


USUAL = ("project",)
"""An example of a team inside a team with files."""


@pytest.mark.parametrize(
    "played",
    [
        pytest.param([named(name) for name in USUAL], id="some"),
        pytest.param(EXAMPLES, id="all", marks=pytest.mark.long),
    ],
)
async def test_from_an_empty_folder_an_example_of_the_pattern_is_one_command(
    commands: Path, tmp_path: Path, played: Sequence[Example]
) -> None:
    async with place(commands / "temporal-supervisor", tmp_path) as there:
        for example in played:
            assert lacks(example, await there.play(example)) == [], example.name
        assert list(there.folder.iterdir()) == [], "a command left something in the folder"
        saved = await there.show("artifacts", "project", "--save", "todo")
        assert (saved.code, {file.name for file in (there.folder / "todo").iterdir()}) == (0, {"server.py", "todos.js"})
        listed = await there.show("teams")
        lines = listed.text.splitlines()
        fits_a_screen = len(lines) <= 24 and max(map(len, lines)) <= 80
        assert (listed.code, fits_a_screen) == (0, True), listed.text
