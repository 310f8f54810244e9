"""The file for a bug report: what is planted as a secret or as content is not in it, what helps is."""

import json
from pathlib import Path

from pydantic import SecretStr
from temporalio.client import Client

from temporal_supervisor.console.base.check_rows import CheckRow
from temporal_supervisor.console.report.bug_report import bundle, shareable_rows, shareable_settings
from temporal_supervisor.runtime.settings import Settings

PLANTED = "planted-7f3a"


def settings_with_secrets(tmp_path: Path) -> Settings:
    """Settings in which each text is a secret, or says something of a user."""
    given = {
        "ANTHROPIC_API_KEY": SecretStr(f"sk-{PLANTED}"),
        "ANTHROPIC_BASE_URL": f"https://{PLANTED}:pass@{PLANTED}.example/{PLANTED}?key={PLANTED}",
        "SUPERVISOR_MODEL_EXTRA": json.dumps({"metadata": PLANTED}),
        "artifacts_url": f"s3://{PLANTED}/folder",
        "teams_dir": tmp_path / PLANTED,
        "notify": f"curl https://{PLANTED}.example",
        "mcp_token": PLANTED,
        "model_calls": 4,
        "worker_model": "claude-haiku-5-5",
    }
    return Settings(_env_file=None, **given)  # type: ignore[arg-type]


def test_settings_are_told_without_what_they_hold(tmp_path: Path) -> None:
    told = shareable_settings(settings_with_secrets(tmp_path))
    assert PLANTED not in json.dumps(told)
    assert (told["model_calls"], told["worker_model"]) == (4, ["claude-haiku-5-5"])
    assert (told["anthropic_api_key"], told["anthropic_base_url"]) == ("set", "https://a host")


def test_lines_about_runs_and_teams_are_counted() -> None:
    rows = [
        CheckRow("problem", "open run", f"'{PLANTED}': t1 waits for a decision ({PLANTED})"),
        CheckRow("warning", f"team {PLANTED}", f"line 3: {PLANTED}"),
        CheckRow("ok", "queue supervisor", "runs are served by 17@planted-7f3a (polled 2 s ago)"),
        CheckRow("ok", "artifact store", f"/home/{PLANTED}/artifacts, id ab"),
    ]
    told = shareable_rows(rows)
    assert PLANTED not in json.dumps(told)
    assert {"level": "problem", "name": "open runs", "text": "1 such"} in told
    assert {"level": "warning", "name": "teams", "text": "1 such"} in told
    assert ("ok", "artifact store") in {(row["level"], row["name"]) for row in told}


async def test_runs_are_told_by_a_hash_of_their_ids(client: Client, tmp_path: Path) -> None:
    handle = await client.start_workflow("SupervisorWorkflow", id=f"{PLANTED}-run", task_queue="nobody-polls-this")
    made = await bundle(settings_with_secrets(tmp_path), [], client)
    await handle.terminate()
    assert PLANTED not in json.dumps(made)
    assert "running" in {run["state"] for run in made["runs"]}
    assert made["versions"]["temporalio"]
