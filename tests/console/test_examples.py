"""The examples as their page has them: an answer holds facts of its files, and each figure leads to where it stands."""

import csv
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.files.manifest import MANIFEST_TYPE, DataFile, put_files
from temporal_supervisor.runtime.settings import Settings
from tests.console.conftest import ROOT, Cli, Model
from tests.contracts import REQUEST, clerk_reads_each
from tests.serving import store_of
from tests.workflow.runs import Lab

EXAMPLES = ROOT / "examples"
COMMANDS = dict(re.findall(r"run --data examples/(\w+)/(.*)", (EXAMPLES / "README.md").read_text()))


async def answered(cli: Cli, name: str) -> dict[str, Any]:
    """Returns the result of an example's run, all claims of which lead to a tool's output."""
    words = shlex.split(f"run --data examples/{name}/{COMMANDS[name]}")
    paths = [str(ROOT / word) if word.startswith("examples/") else word for word in words]
    paths = [word for word in paths if word not in ("--id", "contracts")]
    result: dict[str, Any] = json.loads(await cli.out(*paths, "--id", f"example-{name}", "--json"))
    assert (result["unsupported"], result["confidence"]) == ([], None)
    claims = (await cli.json("verify", f"example-{name}"))["claims"]
    assert claims
    assert [claim for claim in claims if claim["problem"] or not leads(claim)] == []
    return result


def leads(claim: dict[str, Any]) -> bool:
    """Whether a claim leads to where it stands; a page that is cited leads to the finding."""
    places = ("findings", "outputs", "elsewhere") if claim["kind"] == "citation" else ("outputs", "elsewhere")
    return any(claim[place] for place in places)


def rows(name: str) -> list[dict[str, str]]:
    with Path(EXAMPLES, name, "expected.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def sources(result: dict[str, Any]) -> set[str]:
    return {source for subtask in result["subtasks"] for source in (subtask["finding"] or {}).get("sources", [])}


def test_the_facts_of_the_page_are_those_of_the_data() -> None:
    south = [row for row in rows("shop") if row["region"] == "South"]
    page = (EXAMPLES / "README.md").read_text()
    assert all(f"{float(row['revenue_eur']):,.2f}" in page for row in south)


async def test_the_shops_question_needs_a_model_and_one_on_its_notes_does_not(cli: Cli) -> None:
    words = shlex.split(COMMANDS["shop"])
    folder = str(EXAMPLES / "shop" / words[0])
    done = await cli("run", "--data", folder, *words[1:])
    assert done.code == 1
    assert "This needs a model" in done.err
    asked = "What happened to deliveries to the South in 2025, and why do office chairs come back?"
    result = json.loads(await cli.out("run", "--data", folder, "--json", asked))
    assert "insolvency on 14 July 2025" in result["answer"]
    assert "notes/carriers.md" in sources(result)


async def test_the_contracts_name_their_pages(cli: Cli) -> None:
    result = await answered(cli, "contracts")
    found = re.findall(r"\[(\d\d [^\]]+?\.pdf) (p\. \d)\]", result["answer"])
    expected = {row["file"]: row for row in rows("contracts")}
    assert found
    assert all(file in expected for file, _page in found)
    words = {"1": "one", "2": "two", "3": "three", "6": "six", "12": "twelve"}
    for file, _page in found:
        row = expected[file]
        cap = f"EUR {int(row['liability_cap_eur']):,}" if row["liability_cap_eur"] else "is not limited"
        stated = [line for line in result["answer"].splitlines() if f"{row['supplier']} Ltd." in line]
        assert all(cap in line for line in stated if "negligence" in line)
        notices = re.findall(rf"{row['supplier']} Ltd\..{{0,200}}? by (\w+) months", result["answer"])
        assert set(notices) <= {words[row["notice_months"]]}


@pytest.mark.long
async def test_the_contracts_are_a_full_table_with_a_model_that_reads(
    lab: Lab, client: Client, settings: Settings
) -> None:
    files = [DataFile(path.name, path) for path in sorted((EXAMPLES / "contracts/data").iterdir())]
    store = await store_of(client, settings.artifacts_url)
    attached = {"name": "files", "ref": await put_files(store, files), "media_type": MANIFEST_TYPE}
    lab.play(clerk_reads_each(len(files)))
    result = await lab.run(**REQUEST, attachments=[attached])
    assert (result.status, result.gaps, result.unsupported) == ("completed", [], [])
    (table,) = result.artifacts
    made = list(csv.DictReader(io.StringIO((await store.get(table.ref)).decode(), newline="")))
    facts = ("file", "supplier", "annual_fee_eur", "notice_months", "liability_cap_eur")
    assert [{name: row[name] for name in facts} for row in made] == [
        {name: row[name] for name in facts} for row in rows("contracts")
    ]
    for row in made:
        places = (row["annual_place"], row["notice_place"], row["liability_place"])
        assert places == (
            ("p. 1", "p. 2", "p. 2") if row["file"].endswith(".pdf") else ("1 Fees", "3 Term and notice", "2 Liability")
        )
        assert all(row[f"{term}_quotation"].endswith(".") for term in ("annual", "notice", "liability"))


async def test_the_suppliers_stand_beside_the_policy(cli: Cli) -> None:
    result = await answered(cli, "suppliers")
    assert "ISO 9001 certificate that is valid on 1 July 2026" in result["answer"]
    assert "policy.md" in sources(result)
    told = [line for line in result["answer"].splitlines() if " Ltd." in line]
    table = (EXAMPLES / "suppliers/data/suppliers.csv").read_text("cp1252")
    for line in told:
        supplier, value = re.findall(r"(\w+ Ltd\.).* (\d+)", line)[0]
        assert any(supplier in row and value in row.split(";") for row in table.splitlines()), line


async def test_the_team_that_asks_people_loads(alone: Cli) -> None:
    done = await alone.with_environ(SUPERVISOR_TEAMS_DIR=str(EXAMPLES / "teams"))("teams", "purchasing")
    assert done.code == 0, done.err
    assert "write_order" in done.out


async def test_teams_say_which_role_takes_a_goal_without_a_run(alone: Cli, standin: Model) -> None:
    fixed = await alone("teams", "experts", "--ask", "Which symptoms are dangerous?")
    assert (fixed.code, fixed.out.splitlines()[0]) == (0, "medical  (a fixed route, no model is asked)")
    assert "label: Medical expert" in fixed.out
    person = await alone.json("teams", "support", "--ask", "It lost data of mine")
    assert (person["role"], person["person"], person["model"]) == ("escalator", "second-line@acme.example", None)
    assert "set ANTHROPIC_API_KEY" in await alone.refused("teams", "support", "--ask", "My login is locked")
    assert (await alone("teams", "--ask", "My login is locked")).code == 2

    asking = alone.with_environ(ANTHROPIC_BASE_URL=standin.url, SUPERVISOR_MODEL="standin")
    before = await asking.json("list")
    chosen = await asking("teams", "support", "--check", "--ask", "A problem: the login is locked")
    assert chosen.out.startswith("troubleshooter  (the planner's choice, claude-")
    assert "fallback: escalator" in chosen.out
    assert await asking.json("list") == before
