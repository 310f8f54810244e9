"""People decide: a plan at the terminal and from another one, the inbox, and what is refused."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from temporal_supervisor import waiting
from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.base.terminal import Rows
from temporal_supervisor.console.commands.people_commands import (
    decision_report,
    inbox_report,
    reply_report,
    show_report,
)
from temporal_supervisor.console.view.plan_view import PlanPage, failure_outcomes
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.contract.plan import Estimate, Plan, Range, Shares, Subtask
from temporal_supervisor.supervision.contract.status import Asked, RunLimits, Status, Wait
from tests.console.conftest import GOAL, ROOT, Cli
from tests.console.test_hints import hints, run_as_printed
from tests.scripted_model import Reply, Step, plan, script, text, tools
from tests.waiting import until
from tests.workflow.runs import Caller, Lab
from tests.workflow.subtasks.test_people import asking

LIMITS = RunLimits(max_subtasks=9, max_parallel=9, max_turns=9, deadline_seconds=9, budget_usd=5)
EDITS = """#!/bin/sh
n=$(cat "$0.n" 2>/dev/null || echo 0)
echo $((n+1)) > "$0.n"
case $n in
0) sed -i '1s/{/{,/' "$1";;
1) sed -i '1s/{,/{/; s/"role": "analyst"/"role": "analist"/' "$1";;
2) sed -i 's/"role": "analist"/"role": "auto"/; s/"capabilities": \\[\\]/"capabilities": ["flight"]/' "$1";;
3) sed -i 's/\\["flight"\\]/[]/; s/"role": "auto"/"role": "analyst"/; s/"description": "/&In Rwanda: /' "$1";;
esac
"""


@pytest.mark.parametrize(
    ("graph", "success", "said"),
    [
        ({"t1": [], "t2": []}, "any", {"t1 t2": "the answer names the gap"}),
        ({"t1": []}, "any", {"t1": "the run fails"}),
        ({"t1": [], "t2": []}, "all", {"t1 t2": "the run fails (success: all)"}),
        (
            {"t1": [], "t2": [], "t3": ["t1", "t2"], "t4": ["t1"]},
            "1/2",
            {"t1": "t4 can't begin; the answer names the gap", "t2 t3 t4": "the answer names the gap"},
        ),
        (
            {"t3": ["t2"], "t2": ["t1"], "t1": []},
            "2/3",
            {"t3": "the answer names the gap", "t2 t1": "the run fails (success: 2/3)"},
        ),
    ],
)
def test_what_happens_if_a_subtask_fails_follows_from_the_graph(
    graph: dict[str, list[str]], success: str, said: dict[str, str]
) -> None:
    plan = Plan(subtasks=[Subtask(id=name, description="Pears", depends_on=after) for name, after in graph.items()])
    shown = {" ".join(names): what for names, what in failure_outcomes(plan, success).items()}
    assert shown == said


def test_an_estimate_stands_with_each_subtask_and_for_all() -> None:
    def shares(of: str, *numbers: float) -> Shares:
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        calls, tokens, usd, seconds = (Range(low=low, high=high) for low, high in pairs)
        return Shares(id=of, calls=calls, tokens=tokens, usd=usd, seconds=seconds)

    estimate = Estimate(
        parts=[shares("t1", 2, 4, 900, 16_400, 0.02, 0.04, 20, 50), shares("supervisor", 2, 2, 1e6, 2e6, 1, 1, 9, 9)],
        total=shares("total", 8, 14, 30_000, 50_000, 0.17, 0.32, 60, 180),
        samples=23,
        held=18,
        of=20,
    )
    wait = Wait(id="plan.1", kind="plan", workflow_id="r", since="2026-01-01T00:00:00+00:00")
    status = Status(goal="g", team="t", phase="approval", limits=LIMITS, deadline_at=wait.since)
    plan = Plan(subtasks=[Subtask(id="t1", description="Pears of\u202e garden 1", role="finder")])
    rows = [str(row) for row in PlanPage("r", plan, status, Asked(wait=wait, estimate=estimate)).rows()]
    assert "    2-4 calls, 900-16k tokens, $0.02-$0.04, 20 s-50 s" in rows
    assert "the supervisor's own work: 2 calls, 1.0M-2.0M tokens, $1.00, 9 s" in rows
    total = "in all 8-14 calls, 30k-50k tokens, $0.17-$0.32, 0:01:00-0:03:00 (from 23 runs like it; "
    assert f"{total}18 of the last 20 estimates held)" in rows
    assert rows[-1] == "never above the budget: $5.00"


@pytest.fixture
async def left(cli: Cli, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A run of this test's own, whose plan waits; it is cancelled at the end."""
    run_id = f"people-{request.node.name[5:40].replace('_', '-')}"
    done = await cli("run", "--approve-plan", "--id", run_id, GOAL)
    assert done.code == 5, done.err
    yield run_id
    await cli("cancel", run_id)


async def test_without_a_terminal_a_plan_is_left_waiting_with_the_commands_that_decide(cli: Cli) -> None:
    cli = cli.with_environ(PATH=os.pathsep.join([str(ROOT / ".venv/bin"), cli.environ["PATH"]]))
    done = await cli("run", "--approve-plan", "--id", "people-commands", GOAL)
    assert done.code == 5
    assert "plan 1: 3 subtasks" in done.out
    assert "if t1, t2 or t3 fails: the answer names the gap" in done.out
    assert "never above the budget: $5.00 or 1,000,000 tokens" in done.out
    ways = {word: hints(line) for word, _, line in (row.partition(": ") for row in done.out.splitlines()[-4:])}
    assert [*ways] == ["approve", "edit", "change", "reject"]
    code, out = await run_as_printed(cli, ways["edit"][0])
    assert (code, out) == (0, "")
    assert Plan.model_validate_json((cli.folder / "plan.json").read_text()).revision == 1
    code, out = await run_as_printed(cli, ways["approve"][0])
    assert (code, out) == (0, "approved plan.1 of run people-commands\n")
    assert (await cli("result", "people-commands", "--wait")).code == 0


async def test_a_plan_of_a_thousand_subtasks_is_shown_whole_and_can_be_approved(cli: Cli) -> None:
    """A run has their descriptions shortened: a decision about what nobody saw would be none."""
    words = "Find out what the book of the garden says about tree {}, and of how many pears."
    subtasks = [{"id": f"t{n}", "description": words.format(n), "role": "analyst"} for n in range(1, 1001)]
    (cli.folder / "large.json").write_text(json.dumps({"subtasks": subtasks}))
    asked = ("run", GOAL, "--approve-plan", "--plan", "large.json", "--max-subtasks", "1000")
    assert (await cli(*asked, "--id", "people-large")).code == 5
    shown = await cli("show", "people-large", "plan.1")
    assert [line.strip() for line in shown.out.splitlines() if "Find out" in line] == [
        words.format(n) for n in range(1, 1001)
    ]
    written = await cli.json("plan", "people-large")
    assert [subtask["description"] for subtask in written["subtasks"]] == [each["description"] for each in subtasks]
    approved = await cli("approve", "people-large", "plan.1")
    assert approved.out == "approved plan.1 of run people-large\n"
    await cli("cancel", "people-large")


async def test_the_inbox_lists_what_waits_and_show_has_all_of_it(cli: Cli) -> None:
    (cli.folder / "owned.json").write_text(json.dumps({"goal": GOAL, "metadata": {"owner": "ann"}}))
    assert (await cli("run", "--approve-plan", "--request", "owned.json", "--id", "people-owned")).code == 5
    shown = await cli.json("inbox", "--owner", "ann")
    assert [(item["run_id"], item["id"], item["kind"]) for item in shown] == [("people-owned", "plan.1", "plan")]
    assert await cli.json("inbox", "--owner", "bob") == []
    lines = (await cli("inbox")).out.splitlines()
    assert lines[0].split() == ["since", "run", "id", "what", "is", "asked", "until"]
    assert any("owned plan.1 plan: 3 subtasks, " in line and line.endswith("(7 days left)") for line in lines)
    listed = await cli.json("list", "--waiting", "--owner", "ann")
    assert [row["run_id"] for row in listed] == ["people-owned"]
    whole = await cli("show", "people-owned", "plan.1")
    assert "a decision on the plan: people-owned plan.1" in whole.out
    assert "t3 (writer, required, after t1, t2)" in whole.out
    shown = (await cli.json("show", "people-owned", "plan.1"))["estimate"]["total"]["seconds"]
    assert shown == {end: float(f"{number:.4g}") for end, number in shown.items()}
    status = (await cli("status", "people-owned")).out
    assert "approve people-owned plan.1`" in " ".join(status.split())
    levels = [row["level"] for row in await cli.json("doctor") if "'people-owned'" in row["text"]]
    assert levels == ["warning"]  # a person who has time is no alarm
    await cli("cancel", "people-owned")
    assert await cli.json("inbox", "--owner", "ann") == []


async def test_a_run_that_another_workflow_starts_is_a_run_as_any(cli: Cli, place: Path) -> None:
    client = await Client.connect(cli.environ["TEMPORAL_ADDRESS"])
    async with Worker(client, task_queue="monday", workflows=[Caller]):
        given = ["monday-run", {"goal": GOAL, "approve_plan": True}]
        monday = await client.start_workflow(Caller.run, args=given, id="monday", task_queue="monday")

        async def asks() -> bool:
            return "monday-run" in [item["run_id"] for item in await cli.json("inbox")]

        await until(asks, 30)
        assert "monday-run" in [row["run_id"] for row in await cli.json("list", "--waiting")]
        assert (await cli("approve", "monday-run", "plan.1")).code == 0
        await monday.result()
    assert "waits run=monday-run subtask=plan.1 kind=plan" in (place / "worker-0.log").read_text()
    refused = await cli.refused("delete", "monday", "--yes")
    assert refused == "error: 'monday' is a Caller, not a run: name the run's id"

    async def deleted() -> bool:
        return "is deleting 4 workflows" in (await cli("delete", "monday-run", "--yes")).err

    await until(deleted, 20)
    await monday.describe()


async def test_at_a_terminal_a_plan_is_changed_edited_and_approved(cli: Cli, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text(EDITS)
    editor.chmod(0o755)
    cli = cli.with_environ(EDITOR=str(editor))
    async with cli.terminal("run", "--approve-plan", "--id", "people-tty", GOAL, columns=100, rows=40) as terminal:
        prompt = "leave it q: "
        await terminal.until(prompt)
        terminal.type("c only Rwanda\n")
        await terminal.until("plan 2: 3 subtasks")
        for number, problem in enumerate(["is not JSON", "did you mean 'analyst'?", "flight"], 3):
            await until(lambda seen=number - 1: terminal.text.count(prompt) == seen)
            terminal.type("e\n")
            await terminal.until(problem)
        await until(lambda: terminal.text.count(prompt) == 5)
        terminal.type("e\n")
        text = await terminal.whole()
    assert "completed: 3/3 subtasks" in text
    plan = Plan.model_validate_json((await cli("plan", "people-tty", "--json")).out)
    assert all(subtask.description.startswith("In Rwanda: ") for subtask in plan.subtasks)


async def test_a_plan_that_waits_is_in_the_report_and_a_decision_from_elsewhere_ends_the_prompt(cli: Cli) -> None:
    async with cli.terminal("run", "--approve-plan", "--id", "people-else", GOAL, columns=100, rows=40) as terminal:
        await terminal.until("leave it q: ")
        assert (await cli("report", "people-else", "-o", "waits.html")).code == 0
        assert "plan.1 waits for a decision on the plan" in (cli.folder / "waits.html").read_text(encoding="utf-8")
        assert (await cli("approve", "people-else", "plan.1")).code == 0
        await terminal.until("the plan no longer waits")
        assert "completed: 3/3 subtasks" in await terminal.whole()


async def test_a_plan_is_left_at_a_terminal_and_changed_from_elsewhere(cli: Cli) -> None:
    cli = cli.with_environ(EDITOR="truncate -s 1")
    async with cli.terminal("run", "--approve-plan", "--id", "people-left", GOAL) as terminal:
        await terminal.until("leave it q: ")
        terminal.type("e\n")
        await until(lambda: terminal.text.count("leave it q: ") == 2)
        terminal.type("q\n")
        assert await terminal.ended() == 5
    assert (cli.folder / "plan-of-people-left.json").read_text() == "{"
    assert (
        await cli("reply", "people-left", "plan.1", "Only Rwanda")
    ).out == "asked for changes of plan.1 of run people-left\n"
    await cli.until("people-left", lambda status: "plan.2" in [wait["id"] for wait in status["waiting"]])
    assert "what does: plan.2" in await cli.refused("approve", "people-left", "plan.1")
    await cli("cancel", "people-left")
    assert "has ended (cancelled)" in await cli.refused("approve", "people-left", "plan.2")


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["approve", "RUN", "plan.9"], 1, "nothing with the id 'plan.9' waits for a person; what does: plan.1"),
        (["approve", "t3/1:4.0"], 1, "nothing with the id 't3/1:4.0' waits for a person; what does: "),
        (["approve", "nobody", "plan.1"], 1, "there is no run 'nobody'"),
        (["show", "a", "b", "c"], 2, "as ID or RUN ID"),
        (["approve", "RUN", "b", "c"], 1, "nothing with the id 'b' waits for a person"),
        (["reply", "RUN", "plan.1", "x" * 100_000], 2, "comment: has 100000 bytes, at most 4096 are allowed"),
        (["approve", "RUN", "plan.1", "--plan", "ring.json"], 2, "in a circle: a -> b -> a"),
        (["approve", "RUN", "plan.1", "--plan", "field.json"], 2, "colour"),
        (["approve", "RUN", "plan.1", "--plan", "huge.json"], 2, "huge.json is larger than"),
        (["approve", "RUN", "plan.1", "--plan", "deep.json"], 2, "deep.json is not JSON"),
        (["extend", "RUN"], 2, "nothing to extend: give --deadline"),
        (["retry", "RUN", "t9"], 1, "the plan has no subtask 't9'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
async def test_what_can_not_be_is_refused_in_words(
    refusing: str, cli: Cli, words: list[str], code: int, expected: str
) -> None:
    done = await cli(*[refusing if word == "RUN" else word for word in words])
    assert (done.code, expected in done.sentence) == (code, True), done.err
    assert (await cli.json("status", refusing))["phase"] == "approval"


@pytest.fixture(scope="module")
async def refusing(served: dict[str, str], place: Path) -> AsyncIterator[str]:
    """A run whose plan waits, and files of plans that it does not take."""
    ring = [Subtask(id="a", description="Pears of garden 1", depends_on=["b"])]
    ring += [Subtask(id="b", description="Pears of garden 2", depends_on=["a"])]
    field = {"subtasks": [{"id": "a", "description": "Pears of garden 1", "colour": "red"}]}
    texts = {
        "ring.json": Plan(subtasks=ring).model_dump_json(),
        "field.json": json.dumps(field),
        "huge.json": '{"subtasks": ["' + "x" * 30_000_000 + '"]}',
        "deep.json": "[" * 200_000,
    }
    for name, content in texts.items():
        (place / name).write_text(content)
    cli = Cli(served, place)
    assert (await cli("run", "--approve-plan", "--id", "people-refusing", GOAL)).code == 5
    yield "people-refusing"
    await cli("cancel", "people-refusing")


async def test_an_id_in_several_runs_is_asked_back(cli: Cli, refusing: str, left: str) -> None:
    several = await cli.refused("show", "plan.1", code=2)
    assert "'plan.1' waits in several runs" in several
    assert (refusing in several, left in several) == (True, True)


async def test_without_a_worker_nothing_is_decided_and_that_is_said(alone: Cli) -> None:
    assert (await alone("run", GOAL, "--approve-plan", "--id", "waits-people", "--detach", "--queue-anyway")).code == 0
    decisions = (["approve", "waits-people", "plan.1"], ["steer", "waits-people", "Hurry"], ["resume", "waits-people"])
    extends = ["extend", "waits-people", "--budget-tokens", "5000000"]
    for done in await asyncio.gather(*(alone(*words) for words in (*decisions, extends))):
        assert (done.code, "the run waits for a Worker" in done.sentence) == (3, True), done.err
    listed = await alone("inbox")
    assert (listed.code, listed.out) == (0, "")


async def test_the_chat_of_the_documents_decides(cli: Cli, left: str, tmp_path: Path) -> None:
    file = tmp_path / "chat.py"
    file.write_text((ROOT / "docs/people.md").read_text().split("```python\n")[1].split("```")[0])
    chat = await asyncio.create_subprocess_exec(
        *(sys.executable, str(file)),
        env={**cli.environ, "PYTHONPATH": str(ROOT)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    replies = {
        "hello": "not done: not enough values",
        f"approve {left} plan.2": "not done: ",
        f"reply {left} plan.1": "needs a comment",
        f"approve {left} plan.1 looks good": "plan.1: approve",
        f"deny {left} plan.1": "'plan.1' is decided already: approve by chat",
    }
    said, _ = await asyncio.wait_for(chat.communicate("".join(f"{message}\n" for message in replies).encode()), 60)
    lines = said.decode().splitlines()
    assert f"answer: approve {left} plan.1" in lines
    rest = iter(lines)
    assert all(any(expected in line for line in rest) for expected in replies.values()), lines  # in this order
    assert chat.returncode == 0
    assert (await cli("result", left, "--wait")).code == 0


async def test_a_tool_call_and_a_question_are_shown_whole_and_decided(
    lab: Lab, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUPERVISOR_ARTIFACTS_URL", settings.artifacts_url)
    clause = {"finding": "The clause is on page four, below the fees.", "summary": "Page four."}
    concluded = tools(("finish", {"limitations": [], "confidence": 0.9, "outcome": "done", **clause}))

    def sending(step: Step) -> Reply:
        call = tools(("send", {"to": "bo\u0430rd\u202e", "words": "Sell"}))
        return call if step.number == 1 else text("It was not sent.")

    roles = {"t1": "sender", "t2": "asker", "t3": "counsel"}
    first = {"id": "t0", "role": "asker"}
    others = [
        {"id": subtask_id, "role": role, "after": ["t0"] * (role == "counsel")} for subtask_id, role in roles.items()
    ]
    lab.play(script(plan(first, *others), {"t0": lambda _: concluded, "t1": sending, "t2": asking}))
    client, run_id, handle = lab.client, lab.run_id, await lab.start(team="people")
    ids = {"t1/1:1.0": "tool", "t2/1:1.0": "question", "t3/1": "finding"}

    async def all_wait() -> bool:
        return {item.wait.id for item in await waiting(client, run_id)} == {*ids}

    await until(all_wait)
    access = Access(_client=client)
    inbox_data = cast("list[dict[str, str]]", (await inbox_report(access, None)).data)
    listed = {item["id"]: item["kind"] for item in inbox_data if item["run_id"] == run_id}
    assert listed == ids
    shown = {wait_id: "\n".join(map(str, await rows_of(access, run_id, wait_id))) for wait_id in ids}
    assert '"to": "bo\u0430rd<U+202E>"' in shown["t1/1:1.0"]
    assert "! looks like a Latin letter: U+0430 CYRILLIC SMALL LETTER A in bo\u0430rd" in shown["t1/1:1.0"]
    sha256 = next(item.wait.arguments_sha256 for item in await waiting(client, run_id) if item.wait.kind == "tool")
    assert f"SHA-256 of the arguments: {sha256}" in shown["t1/1:1.0"]
    assert "Which year is meant?" in shown["t2/1:1.0"]
    assert "choices: 2025 | 2026" in shown["t2/1:1.0"]
    assert "a person's finding: " in shown["t3/1"]
    assert "The clause is on page four, below the fees." in shown["t3/1"], "a summary is no finding"
    asked_by = [next(row for row in shown[wait_id].splitlines() if row.startswith("asked by")) for wait_id in ids]
    assert [row.partition(" since")[0] for row in asked_by] == [
        "asked by t1 (sender)", "asked by t2 (asker)", "asked by t3 (counsel)",
    ]  # fmt: skip
    assert "\ntool: send\n" in shown["t1/1:1.0"]
    for wait_id, word in [("t1/1:1.0", "reply"), ("t2/1:1.0", "approve"), ("t3/1", "deny")]:
        with pytest.raises(ValueError, match="does not fit, (approve or deny|reply) does"):
            await decision_report(access, [run_id, wait_id], word, "x", "ann")
    with pytest.raises(ValueError, match="at most 16384 are allowed"):
        await reply_report(access, [run_id, "t2/1:1.0", "x" * 1_000_000], "ann")
    await decision_report(access, [run_id, "t1/1:1.0"], "deny", "not to the board", "ann")
    await reply_report(access, [run_id, "t2/1:1.0", "2026"], "ann")
    await reply_report(access, [run_id, "t3/1", "The clause is void."], "ann")
    result = await handle.result()
    assert [subtask.state for subtask in result.subtasks] == ["completed"] * 4
    assert "not to the board" in lab.prompt("t1/1/turn.2")
    assert lab.prompt("t2/1/turn.2") == "2026"


async def rows_of(access: Access, run_id: str, wait_id: str) -> Rows:
    """The rows of `show`."""
    return (await show_report(access, [run_id, wait_id])).rows
