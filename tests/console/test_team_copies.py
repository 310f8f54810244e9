"""Ready teams as newcomers meet them: a list on a screen, and copies to change."""

from pathlib import Path

from tests.console.conftest import Cli


async def test_the_list_fits_a_screen_and_says_what_to_ask(alone: Cli) -> None:
    lines = (await alone.out("teams")).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines[: lines.index("")])) < 80  # what follows are commands, which are never cut
    assert any(line.startswith("general ") and line.endswith("Why do octopuses have three hearts?") for line in lines)
    assert "researcher (generalist): web_search, web_fetch" in await alone.out("teams", "general")


async def test_a_team_is_copied_with_the_teams_inside_and_its_copy_counts(alone: Cli, tmp_path: Path) -> None:
    cli = alone.with_environ(SUPERVISOR_TEAMS_DIR=str(tmp_path))
    await cli.out("teams", "copy", "study")
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "study",
        "study-analysis",
        "study-report",
        "study-research",
    ]
    assert (tmp_path / "study" / "data" / "notes" / "carriers.md").is_file()
    file = tmp_path / "study" / "team.toml"
    file.write_text(file.read_text().replace("A study over", "My study over"))
    assert "My study over" in await cli.out("teams", "study")
    assert "exists already" in await cli.refused("teams", "copy", "study")
    assert "there is no team 'nobody'" in await cli.refused("teams", "copy", "nobody", code=2)
    assert "teams copy NAME" in await cli.refused("teams", "copy", code=2)
