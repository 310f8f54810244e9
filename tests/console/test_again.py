"""Asking on, repeating a run and changing one thing, by commands."""

import json
import sys
from pathlib import Path

from tests.console.conftest import Cli, Model
from tests.console.test_pruning import _open, _stored, own, pruning

__all__ = ["own", "pruning"]

GOAL = "How did life expectancy in Japan change from 1952 to 2007?"
"""All of it can be looked up: no subtask fails with the stand-in."""


async def test_what_cannot_be_repeated_or_changed_is_refused_in_a_sentence(cli: Cli, tmp_path: Path) -> None:
    assert (await cli("run", GOAL, "--id", "refused-1")).code == 0
    options = {
        ("fork", "refused-1"): 'say what changes: --edit, --plan FILE, --change t3 "..."',
        ("fork", "refused-1", "--role", "analyst"): "--role and --model go together",
        ("fork", "refused-1", "--change", "t99", "Look it up"): "the plan has no subtask 't99'",
        ("rerun", "refused-1", "--failed", "--data", str(tmp_path)): "--failed and --data exclude each other",
    }
    for command, sentence in options.items():
        assert sentence in (await cli.refused(*command, code=2)), command
    for command in (("rerun", "no-such-run"), ("run", GOAL, "--after", "no-such-run")):
        assert "there is no run 'no-such-run'" in (await cli.refused(*command)), command


async def test_a_run_is_repeated_changed_in_one_place_and_asked_on(cli: Cli, standin: Model, tmp_path: Path) -> None:
    assert (await cli("run", GOAL, "--id", "again-1")).code == 0
    again = await cli("rerun", "again-1", "--id", "again-2")
    assert again.code == 0, again.err
    assert "builds on again-1: t1 from again-1/t1" in again.out
    assert "this saved " in again.out
    first, second = [await cli.json("result", run_id) for run_id in ("again-1", "again-2")]
    assert second["answer"] == first["answer"]
    assert all(report["reused"]["run_id"] == "again-1" for report in second["subtasks"])
    assert second["usage"]["model_calls"] < first["usage"]["model_calls"]
    assert "builds on again-1" in (await cli.out("status", "again-2"))
    assert "↳ again-2 builds on again-1" in (await cli.out("list"))
    words = "How did life expectancy in Japan change from 1957 to 2007?"
    forked = await cli("fork", "again-1", "--change", "t1", words, "--id", "again-3", "--json")
    done = {report["id"]: "reused" in report for report in json.loads(forked.out)["subtasks"]}
    assert done["t1"] is False
    page = tmp_path / "report.html"
    assert (await cli("report", "again-3", "-o", str(page))).code == 0
    assert "What changed since" in page.read_text()
    assert "builds on again-1" in page.read_text()
    asked = await cli("run", words, "--after", "again-1", "--id", "again-4")
    assert "builds on again-1" in asked.out, asked.err


async def test_a_plan_is_changed_in_an_editor_or_comes_from_a_file(cli: Cli, tmp_path: Path) -> None:
    assert (await cli("run", GOAL, "--id", "edited-1")).code == 0
    words = "How did life expectancy in Japan change from 1957 to 2007?"
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import json, pathlib, sys\n"
        "file = pathlib.Path(sys.argv[2])\n"
        "plan = json.loads(file.read_text())\n"
        "plan['subtasks'][0][sys.argv[1]] = " + repr(words) + "\n"
        "file.write_text(json.dumps(plan))\n"
    )

    def editing(field: str) -> Cli:
        return cli.with_environ(EDITOR=f"{sys.executable} {editor} {field}", VISUAL="")

    kept = Path(cli.environ["SUPERVISOR_CACHE_DIR"], "fork-of-edited-1.json")
    failed = await editing("role")("fork", "edited-1", "--edit", "--id", "edited-2")
    assert failed.code == 1
    assert "InvalidPlan" in failed.err
    assert "the plan is kept as you changed it: " in failed.err
    assert json.loads(kept.read_text())["subtasks"][0]["role"] == words
    kept.unlink()
    forked = await editing("description")("fork", "edited-1", "--edit", "--id", "edited-3", "--json")
    made = {report["id"]: report for report in json.loads(forked.out)["subtasks"]}
    assert made["t1"]["description"] == words
    assert "reused" not in made["t1"]
    assert not kept.exists()
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(await cli.json("plan", "edited-3")))
    again = await cli("fork", "edited-3", "--plan", str(plan), "--id", "edited-4", "--json")
    before = {report["id"] for report in made.values() if report["state"] == "completed"}
    taken = {report["id"] for report in json.loads(again.out)["subtasks"] if "reused" in report}
    assert "t1" in taken & before, "what is in the file is what was done"


async def test_of_a_plan_with_another_model_for_a_role_the_work_of_that_role_is_done_again(cli: Cli) -> None:
    assert (await cli("run", GOAL, "--id", "models-1")).code == 0
    first = await cli.json("result", "models-1")
    role = first["subtasks"][0]["role"]
    forked = await cli.json("fork", "models-1", "--role", role, "--model", "claude-haiku-4-5", "--id", "models-2")
    again = {report["id"] for report in forked["subtasks"] if report["role"] == role}
    assert {report["id"] for report in forked["subtasks"] if "reused" not in report} >= again
    assert {report["model"] for report in forked["subtasks"] if report["id"] in again} == {"claude-haiku-4-5"}
    unknown = await cli("fork", "models-1", "--role", f"{role}s", "--model", "claude-haiku-4-5", "--id", "models-3")
    assert unknown.code == 1
    assert f"has no role '{role}s'" in unknown.err


async def test_a_plan_of_ones_own_names_findings_of_the_run_that_it_builds_on(cli: Cli, tmp_path: Path) -> None:
    assert (await cli("run", GOAL, "--id", "named-1")).code == 0
    role = (await cli.json("result", "named-1"))["subtasks"][0]["role"]
    words = "How did life expectancy in Japan change from 1957 to 2007?"
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"subtasks": [{"id": "t1", "description": words, "role": role, "depends_on": ["named-1/t1"]}]})
    )
    done = await cli("run", words, "--after", "named-1", "--plan", str(plan), "--id", "named-2", "--json")
    result = json.loads(done.out)
    assert [report["id"] for report in result["subtasks"]][:2] == ["earlier-t1", "t1"]
    assert result["subtasks"][0]["reused"]["run_id"] == "named-1"


async def test_pruning_and_deleting_name_open_runs_that_build_on_one(pruning: Cli, own: Path, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"goal": GOAL, "reuse_from": ["ended-1"]}))
    await _open(pruning, "builds-1", "--request", str(request))
    _stored(own, "ended-1")
    listed = await pruning("prune", "--older-than", "30d")
    assert "run 'ended-1' is built on by open runs: 'builds-1'" in listed.err
    deleted = await pruning("delete", "ended-1", "--yes")
    assert "run 'ended-1' is built on by open runs: 'builds-1'" in deleted.err
    assert deleted.code == 0
