"""The command `inspect` on the examples, whose columns and notes are known."""

from pathlib import Path

from tests.console.conftest import ROOT, Cli


async def test_a_folder_shows_its_tables_and_documents(cli: Cli, tmp_path: Path) -> None:
    shop = await cli("inspect", str(ROOT / "examples/shop/data"))
    assert shop.code == 0
    assert "orders 2025.csv: table orders_2025, 543 rows" in shop.out
    assert '"Net Amount (EUR)" DOUBLE: 39.5 to 2490' in shop.out
    assert "  ! Ziel (€): decimal commas are read as numbers" in shop.out
    assert shop.out.splitlines()[-1] == "2 tables with 551 rows, 2 documents"
    (tmp_path / "a.pdf").write_bytes(b"broken")
    listed = await cli.json("inspect", str(tmp_path))
    assert [report["problem"].startswith("it is no PDF") for report in listed] == [True]
    none = await cli("inspect", str(tmp_path / "none"))
    assert (none.code, f"there is no {tmp_path / 'none'}" in none.err) == (2, True)
