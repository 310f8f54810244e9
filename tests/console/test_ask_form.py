"""The form to ask: names, sizes and folders that are taken, and the estimate."""

from pathlib import Path

import pytest

from temporal_supervisor.console.base.command import CommandFailed
from temporal_supervisor.console.page.ask_form import (
    MOST_FILE_BYTES,
    check_sizes,
    estimate_words,
    folder_below,
    folders_below,
    safe_name,
)
from temporal_supervisor.supervision.planning.estimate import CandidateUsage, RunSample


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("orders.csv", "orders.csv"),
        ("../../etc/orders.csv", "orders.csv"),
        ("C:\\temp\\Büro.xlsx", "Büro.xlsx"),
    ],
)
def test_a_file_keeps_the_last_part_of_its_name(given: str, name: str) -> None:
    assert safe_name(given) == name


@pytest.mark.parametrize("given", ["", "..", "a/..", ".env", "~$open.xlsx", "a\0b", "a/"])
def test_names_of_no_file_are_refused(given: str) -> None:
    if given == "a/":  # its last part is a name
        assert safe_name(given) == "a"
        return
    with pytest.raises(CommandFailed):
        safe_name(given)


def test_files_have_a_size_each_and_in_all() -> None:
    check_sizes([("a", MOST_FILE_BYTES)] * 10)
    with pytest.raises(CommandFailed, match=r"big\.csv: 100 MiB"):
        check_sizes([("small.csv", 1), ("big.csv", MOST_FILE_BYTES + 1)])
    with pytest.raises(CommandFailed, match="11 files"):
        check_sizes([("a", MOST_FILE_BYTES)] * 11)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one below it, hidden ones, and links to what is outside and inside."""
    (tmp_path / "outside").mkdir()
    top = tmp_path / "root"
    (top / "shop" / "data").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / "out").symlink_to(tmp_path / "outside")
    (top / "in").symlink_to(top / "shop")
    (top / "loop").symlink_to(top / "loop")
    (top / "file.csv").write_text("a")
    return top


def test_folders_below_the_root_may_be_named(root: Path) -> None:
    assert folder_below(root, "shop/data") == (root / "shop" / "data").resolve()
    assert folder_below(root, "in") == (root / "shop").resolve()
    assert folders_below(root) == ["in", "in/data", "shop", "shop/data"]


@pytest.mark.parametrize(
    "given",
    ["..", "../outside", "out", "/etc", ".git", "shop/../..", "file.csv", "nothing", "a\0", "loop"],
)
def test_no_other_folder_may_be_named(root: Path, given: str) -> None:
    with pytest.raises(CommandFailed, match="no folder"):
        folder_below(root, given)


def test_without_a_root_no_folder_may_be_named(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="--data-root"):
        folder_below(None, str(tmp_path))


def sample(calls: float, usd: float | None, seconds: float) -> RunSample:
    return RunSample(parts=[], rest=CandidateUsage(), total=CandidateUsage(calls=calls, usd=usd, seconds=seconds))


def test_an_estimate_is_what_earlier_runs_took() -> None:
    assert "No run of team files" in estimate_words("files", [])
    one = estimate_words("files", [sample(4, 0.02, 30)])
    assert one == "The last run of team files took 4 model calls, $0.0200, 30 s."
    several = [sample(10, 0.5, 90), sample(4, 0.02, 30), sample(6, None, 45)]
    said = estimate_words("files", several)
    assert "last 3 runs" in said
    assert "4 to 10 model calls, $0.0200 to $0.50" in said
    assert "cost unknown" in estimate_words("files", [sample(4, None, 30)])
