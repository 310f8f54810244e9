"""A question of own files, from the command to the evidence, and a team over them."""

import re
from pathlib import Path

import pytest

from tests.console.conftest import ROOT, Cli

RUN = "own-1"
DATA = str(ROOT / "examples/shop/data")
QUESTION = "What happened to deliveries to the South in 2025, and why do office chairs come back?"


@pytest.fixture(scope="module")
async def asked(served: dict[str, str], place: Path) -> tuple[Cli, str]:
    """Commands where run `own-1` has completed, and what it printed."""
    cli = Cli(served, place)
    return cli, await cli.out("run", "--data", DATA, "--id", RUN, QUESTION)


async def test_the_readme_shows_lines_of_this_run(asked: tuple[Cli, str]) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    command, *sample = page.split("<!-- sample: own files -->\n```\n")[1].split("```")[0].splitlines()
    assert command == f'$ temporal-supervisor run --data examples/shop/data "{QUESTION}"'
    shown = re.findall(r"^(?:- .*\[notes/|completed: |_An extract).*", asked[1], re.MULTILINE)
    assert sorted(sample) == sorted(shown)


async def test_evidence_opens_by_what_verify_prints(asked: tuple[Cli, str]) -> None:
    cli, _ = asked
    verified = await cli("verify", RUN)
    assert any(line.startswith("“") and "14 July 2025" in line for line in verified.out.splitlines())
    printed = re.search(r"→ ([0-9a-f]{8})$", verified.out, re.MULTILINE)
    assert printed
    assert await cli.out("artifact", printed[1], "--run", RUN)
    assert (await cli("artifact", "00000000", "--run", RUN)).code == 1


async def test_prompts_and_replies_can_be_read(asked: tuple[Cli, str]) -> None:
    cli, _ = asked
    shown = await cli("trace", RUN, "--full", "t1")
    assert "You are the " in shown.out
    assert "── user: tool_result" in shown.out
    assert re.search(r"^━━ .* turn\.1 · .* · \d{4}-\d\d-\d\dT[\d:]{8} UTC$", shown.out, re.MULTILINE)
    calls = await cli.json("trace", RUN, "--full", "all")
    assert {"plan", "review", "synthesis", "turn"} <= {call["step"].partition(".")[0] for call in calls}
    assert "it has plan, review" in await cli.refused("trace", RUN, "--full", "t9", code=2)


async def test_the_answer_is_a_file(asked: tuple[Cli, str], tmp_path: Path) -> None:
    cli, printed = asked
    assert (await cli("result", RUN, "-o", str(tmp_path / "answer.md"))).code == 0
    assert (tmp_path / "answer.md").read_text().strip() in printed
    assert "the answer has no JSON" in await cli.refused("result", RUN, "-o", str(tmp_path / "table.csv"), code=2)


async def test_a_team_over_a_folder_is_written_and_names_what_it_cannot_read(alone: Cli, tmp_path: Path) -> None:
    cli = alone.with_environ(SUPERVISOR_TEAMS_DIR=str(tmp_path))
    await cli.out("teams", "new", "shop", "--data", DATA)
    assert (await cli("teams", "new", "shop", "--data", DATA)).code == 1
    whole = await cli("teams", "shop")
    assert (whole.code, whole.err) == (0, "")
    assert "table umsatzziele" in whole.out
    (tmp_path / "shop/data/late.pdf").write_bytes(b"broken")
    broken = await cli("teams")
    assert broken.code == 1
    assert "✘ shop: late.pdf: it is no PDF" in broken.out
    assert "data: 2 tables, 2 documents" in (await cli("teams", "--check")).out
    (tmp_path / "shop/data/later.pdf").write_bytes(b"broken, too")
    rows = {row["name"]: row for row in await cli.json("doctor")}
    assert rows["team shop"]["text"].startswith("late.pdf")
    assert rows["team shop"]["text"].endswith("; and 1 more file")
    await cli.out("teams", "new", "notes", "--data", f"{DATA}/notes")
    assert "analyst" not in (tmp_path / "notes/team.toml").read_text()
    (tmp_path / "twice/a").mkdir(parents=True)
    for same in ("a/b.csv", "a-b.csv"):
        (tmp_path / "twice" / same).write_text("n,m\n1,2\n")
    assert "and 2 files into" in (await cli("teams", "new", "both", "--data", str(tmp_path / "twice"))).err
    assert re.findall(r"table (\w+) \(", (await cli("teams", "both")).out) == ["b", "a_b"]
    assert (await cli("teams", "new", "Bad Name", "--data", DATA)).code == 2


async def test_a_folder_shows_its_tables_and_documents(cli: Cli, tmp_path: Path) -> None:
    shop = await cli.out("inspect", DATA)
    assert "orders 2025.csv: table orders_2025, 543 rows" in shop
    assert '"Net Amount (EUR)" DOUBLE: 39.5 to 2490' in shop
    assert "  ! Ziel (€): decimal commas are read as numbers" in shop
    assert shop.splitlines()[-1] == "2 tables with 551 rows, 2 documents"
    (tmp_path / "a.pdf").write_bytes(b"broken")
    listed = await cli.json("inspect", str(tmp_path))
    assert [report["problem"].startswith("it is no PDF") for report in listed] == [True]
    none = await cli("inspect", str(tmp_path / "none"))
    assert (none.code, f"there is no file or folder {tmp_path / 'none'}" in none.err) == (2, True)
