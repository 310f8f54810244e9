"""`inspect` shows how columns are read, `data.toml` and `--describe` override it, and `verify` names it."""

import tomllib
from pathlib import Path

import pytest

from temporal_supervisor.console.base.command import CommandFailed
from temporal_supervisor.console.run.described_files import check_description, reports_on, with_description
from temporal_supervisor.console.run.request_options import data_files
from tests.console.conftest import Cli

SALES = "Sales in thousand EUR\nregion;amount\nNorth;1.234,50\nSouth;26.474,00\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "sub").mkdir(parents=True)
    (folder / "sales.csv").write_text(SALES)
    (folder / "sub" / "fees.md").write_text(
        "# Fees\n\n|who|fee|\n|-|-|\n|a|1,200|\n|b|13,400|\n\n|x|y|\n|-|-|\n|c|2|\n"
    )
    return folder


async def test_each_column_shows_a_cell_beside_its_value_and_why(cli: Cli, folder: Path) -> None:
    shown = await cli.out("inspect", str(folder))
    assert "    above it: Sales in thousand EUR\n" in shown
    assert (
        "    amount DOUBLE: 1234.5 to 26474\n        '1.234,50' is 1234.5 (decimal commas are read as numbers" in shown
    )
    (sales, _) = await cli.json("inspect", str(folder))
    reading = sales["tables"][0]["columns"][1]["reading"]
    assert (reading["written"], reading["value"]) == ("1.234,50", "1234.5")
    assert reading["decision"]
    assert reading["why"]


async def test_a_first_description_changes_nothing_and_is_never_written_over(cli: Cli, folder: Path) -> None:
    before = await cli.json("inspect", str(folder))
    written = await cli("inspect", str(folder), "--write")
    target = folder / "data.toml"
    assert (written.code, f"wrote {target}" in written.err) == (0, True)
    text = target.read_text()
    said = tomllib.loads(text)
    assert list(said["tables"]) == ["sales.csv", "sub/fees.md/fees_1", "sub/fees.md/fees_2"]
    assert list(said["tables"]["sales.csv"]["columns"]) == ["region", "amount"]
    assert "# header = 2\n" in text
    assert "# type = \"number\"  # '1.234,50' is 1234.5" in text
    after = [report for report in await cli.json("inspect", str(folder)) if report["name"] != "data.toml"]
    assert after == before
    again = await cli("inspect", str(folder), "--write")
    assert (again.code, f"{target} exists already" in again.err) == (1, True)
    assert target.read_text() == text
    whole = await cli("inspect", str(folder / "sales.csv"), "--write")
    assert (whole.code, "--write needs one folder" in whole.err) == (2, True)


async def test_what_the_first_description_found_is_what_it_would_say(cli: Cli, folder: Path) -> None:
    """The lines that say how something is read say so in the form that is read back."""
    before = await cli.json("inspect", str(folder))
    await cli.out("inspect", str(folder), "--write")
    target = folder / "data.toml"
    found = ("# header", "# type", "# decimal", "# unit")
    lines = target.read_text().splitlines()
    target.write_text("\n".join(line.removeprefix("# ") if line.startswith(found) else line for line in lines))
    after = [report for report in await cli.json("inspect", str(folder)) if report["name"] != "data.toml"]
    kinds = [
        [(column["name"], column["type"], column.get("range"), column.get("values")) for column in table["columns"]]
        for reports in (before, after)
        for report in reports
        for table in report["tables"]
    ]
    assert kinds[: len(kinds) // 2] == kinds[len(kinds) // 2 :]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[tables."sale.csv"]\nheader = 1\n', "line 1: there is no table 'sale.csv', did you mean 'sales.csv'?"),
        ('[tables."sales.csv".columns.Amount]\nunit = "x"\n', "line 1: 'sales.csv' has no column 'Amount'"),
        ('[tables."sales.csv"]\nheadr = 1\n', "line 2: there is no field 'headr', did you mean 'header'?"),
        ("[tables\n", "line 1"),
    ],
)
async def test_a_wrong_description_is_refused_before_anything_starts(
    cli: Cli, folder: Path, text: str, complaint: str
) -> None:
    (folder / "data.toml").write_text(text)
    for command in (["inspect", str(folder)], ["run", "--data", str(folder), "How much?"]):
        refused = await cli(*command)
        assert refused.code == 2, command
        assert f"{folder / 'data.toml'}: " in refused.err
        assert complaint in refused.err


async def test_a_description_by_another_name_is_in_place_of_the_folders_own(folder: Path, tmp_path: Path) -> None:
    (folder / "data.toml").write_text("[tables\n")
    other = tmp_path / "mine.toml"
    other.write_text('[tables."sales.csv".columns.amount]\ntype = "text"\n')
    files = with_description(data_files([folder]), other)
    assert [file.path for file in files if file.name == "data.toml"] == [other]
    await check_description(files)
    (sales, *_) = [report for report in await reports_on(files) if report.name == "sales.csv"]
    assert sales.tables[0]["columns"][1]["type"] == "VARCHAR"
    with pytest.raises(CommandFailed, match="there is no file"):
        with_description(files, tmp_path / "none.toml")
    with pytest.raises(CommandFailed, match="name them with --data"):
        with_description([], other)


async def test_verify_and_report_name_the_reading_behind_a_figure(cli: Cli, folder: Path, tmp_path: Path) -> None:
    goal = "What is the total amount in the table sales?"
    ran = await cli("run", "--data", str(folder), "--id", "read-1", goal)
    assert ran.code == 0, ran.err
    verified = await cli("verify", "read-1")
    assert "      read sales.amount: '1.234,50' is 1234.5" in verified.out
    page = tmp_path / "report.html"
    await cli.out("report", "read-1", "-o", str(page))
    assert "read sales.amount: &#39;1.234,50&#39; is 1234.5" in page.read_text()
