"""Every command that a screen suggests is run as it is printed, and no screen cuts what it has to say."""

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from temporal_supervisor.console.base.command import access, hint
from tests.console.conftest import GOAL, ROOT, RUN, Cli, Model

_HINT = re.compile(r"`([^`]*(?:temporal-supervisor|starter\.py)\b[^`]*)`")
_OF_SHELLS = re.compile("[<>|&;]")  # a redirection, a pipe
_EVENT = re.compile(r"\d\d:\d\d:\d\d ")
_TREE = re.compile(r"^ *(?:└ )?[✔✘–■▶·] |^ {4,}")  # rows of the plan may be cut: `plan` has them whole


def hints(text: str) -> list[str]:
    """The commands that a screen suggests."""
    return _HINT.findall(text)


async def in_shell(cli: Cli, script: str) -> tuple[int, str]:
    """Runs a script, in the folder where a screen was shown."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", script),
        env=cli.environ,
        cwd=cli.folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode is not None
    return process.returncode, out.decode()


async def run_as_printed(cli: Cli, command: str) -> tuple[int, str]:
    """Runs a command of the program with the words that a shell reads in it, others in a shell."""
    if _OF_SHELLS.search(command):
        return await in_shell(cli, command)
    code, out = await in_shell(cli, f"printf '%s\\0' {command}")
    assert code == 0, out
    program, *words = out.split("\0")[:-1]
    if Path(program).name != "temporal-supervisor":
        return await in_shell(cli, command)
    is_there = shutil.which(program, path=cli.environ["PATH"]) or (cli.folder / program).is_file()
    assert is_there, command
    done = await cli(*words)
    return done.code, done.out + done.err


async def all_run(cli: Cli, text: str) -> list[str]:
    """Runs every hint of a screen; returns them."""
    printed = hints(text)
    for command in printed:
        code, out = await run_as_printed(cli, command)
        assert code in (0, 1, 4), (command, code, out)
        assert "Usage:" not in out, (command, out)
    return printed


async def test_the_hints_of_starting_leaving_and_reading_run_as_printed(read: Cli) -> None:
    started, taken = (["run", GOAL, "--id", run_id] for run_id in ("hints 2's", RUN))
    for words in ([*started, "--detach"], taken, ["status", "nobody"], ["cancel", RUN]):
        assert len(await all_run(read, (await read(*words)).err)) == 1, words
    nothing = await read("run")
    assert len(hints(nothing.err)) == 1
    code, out = await run_as_printed(read, hints(nothing.err)[0] + " --detach")
    assert code == 0, out
    await read("cancel", out.splitlines()[0])


async def test_the_hints_of_doctor_and_of_refusals_run_as_printed(alone: Cli) -> None:
    refused = await alone("run", GOAL)
    doctor = await alone("doctor")
    for text in (refused.err, doctor.out):
        (command, *_) = hints(" ".join(text.split()))
        code, out = await run_as_printed(alone, f"{command} --env-file nowhere")
        assert (code, out) == (2, "there is no file nowhere\n")


def test_hints_name_what_is_installed_and_repeat_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(ROOT)
    assert hint("status", "a b") == "`.venv/bin/temporal-supervisor status 'a b'`"
    assert hint("worker", "--pool", "east") == "`.venv/bin/temporal-supervisor worker --pool east`"
    assert (
        hint("worker", SUPERVISOR_BUILD_ID="0.3 a")
        == "`SUPERVISOR_BUILD_ID='0.3 a' .venv/bin/temporal-supervisor worker`"
    )
    monkeypatch.setenv("PATH", str(ROOT / ".venv" / "bin"))
    assert hint("list") == "`temporal-supervisor list`"
    monkeypatch.setattr(access, "address", "host:1")
    monkeypatch.setattr(access, "env_file", Path("my env"))
    assert hint("list") == "`temporal-supervisor --address host:1 --env-file 'my env' list`"


OF_A_RUN = ("status", "result", "plan", "artifacts", "trace", "verify", "follow")
SCREENS = ["list", "teams", "doctor", "result hints-failed", "-h", "run -h", *(f"{word} {RUN}" for word in OF_A_RUN)]
COLUMNS = 80


@pytest.fixture(scope="module")
async def failed(read: Cli, standin: Model) -> Cli:
    """The same, with a run that failed."""
    standin.fails("hints-failed*", status=401, message="bad key")
    assert (await read("run", GOAL, "--id", "hints-failed")).code == 1
    standin.usual()
    return read


@pytest.mark.parametrize("screen", SCREENS)
async def test_no_line_of_a_screen_is_cut(failed: Cli, screen: str) -> None:
    async with failed.terminal(*screen.split(), columns=COLUMNS, rows=40) as terminal:
        text = await terminal.whole()
    lines = [Text.from_ansi(line.rstrip("\r")).plain.rstrip() for line in text.split("\n")]
    assert any(lines)
    if screen == "list":
        assert max(map(cell_len, lines)) <= COLUMNS
        return  # goals are cut, nothing else; how wide a column is depends on the other runs of this server
    excused = screen.split()[0] in ("trace", "verify")  # their texts are shortened where they are noted
    cut = [line for line in lines if "…" in line and not excused and not _TREE.match(line) and not _EVENT.match(line)]
    assert cut == []


async def test_a_failed_run_says_so_on_every_screen(failed: Cli) -> None:
    for command in ("result", "follow"):
        done = await failed(command, "hints-failed")
        assert done.code == 1
        assert done.err.splitlines()[-1].startswith("failed: ProviderAuthentication: ")
    status = await failed("status", "hints-failed")
    assert "failed: ProviderAuthentication: " in status.out
    for command in ("result", "follow", "status"):
        shown = await failed.json(command, "hints-failed")
        assert (shown["state"], shown["error"]["type"]) == ("failed", "ProviderAuthentication")
        assert shown["run_id"] == "hints-failed"
    listed = await failed.json("list", "--state", "failed")
    assert ("hints-failed", "failed") in [(row["run_id"], row["state"]) for row in listed]
    assert GOAL in [row["goal"] for row in listed]


async def test_an_id_may_be_its_beginning_or_left_out(read: Cli) -> None:
    _, made = [(await read("run", GOAL, "--detach")).out.strip() for _ in range(2)]
    assert made.startswith("supervise-how-did-life-expectancy-in-rwanda")
    assert (await read("result", made, "--wait")).code == 0
    for words in ([], [made[:-1]], [made.rpartition("-")[2]]):
        assert json.loads(await read.out("status", *words, "--json"))["run_id"] == made
    assert "is the beginning of several runs: " in await read.refused("status", "supervise-how-did", code=2)
    assert (await read("cancel")).code == 2


async def test_the_python_of_the_documents_runs(read: Cli, tmp_path: Path) -> None:
    file = tmp_path / "run_a_goal.py"
    file.write_text((ROOT / "docs/operate.md").read_text().split("```python\n")[1].split("```")[0])
    code, out = await run_as_printed(read, f"{ROOT / '.venv/bin/python'} {file} example-1")
    assert code == 0, out
    assert "Iowa" in out


async def test_artifacts_are_saved_and_fetched(read: Cli, tmp_path: Path) -> None:
    (listed,) = await read.json("artifacts", RUN)
    assert (await read("artifacts", RUN, "--save", str(tmp_path / "out"))).code == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == [listed["name"]]
    ref = (await read("put", str(ROOT / "LICENSE"))).out.strip()
    assert (await read("artifact", ref)).out == (ROOT / "LICENSE").read_text()
    assert (await read("artifact", ref, "-o", str(tmp_path / "copy"))).code == 0
    assert (tmp_path / "copy").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert "exists already" in await read.refused("artifact", ref, "-o", str(tmp_path / "copy"))
