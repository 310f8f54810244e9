"""The facts that the page shows of a run, beside those that commands print of it."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from temporal_supervisor.console.base.terminal import duration
from temporal_supervisor.console.view.event_lines import event_line
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import Status, TraceEvent
from temporal_supervisor.supervision.contract.usage import Usage
from tests.console.conftest import Cli
from tests.console.page_driver import Reader
from tests.waiting import until

_READ = """() => {
  const text = (node) => (node ? node.textContent.trim().replace(/\\s+/g, " ") : "");
  const all = (what, make) => [...document.querySelectorAll(what)].map(make);
  const at = (node, what) => node.querySelector(what)?.dateTime ?? null;
  const values = (node) => [...node.querySelectorAll("data")].map((data) => Number(data.value));
  return {
    goal: text(document.querySelector("h1")),
    glance: Object.fromEntries(all(".glance > div", (box) => {
      const small = box.querySelector("small");
      const main = [...box.querySelector("dd").childNodes].filter((node) => node !== small);
      const times = [...box.querySelectorAll("time")].map((time) => time.dateTime);
      const said = main.map(text).join("").trim();
      return [text(box.querySelector("dt")), { said, small: text(small), times, values: values(box) }];
    })),
    rows: all("#tree li", (row) => ({
      id: text(row.querySelector(".name a")), role: text(row.querySelector(".role")),
      state: text(row.querySelector(".state")), doing: text(row.querySelector(".doing")),
      began: at(row, ".took time"), spent: text(row.querySelector(".spent")), tokens: values(row),
      turn: text(row.querySelector(".took")).match(/turn (\\d+)/)?.[1] ?? "0",
    })),
    cards: all("article.card", (card) => ({
      kind: text(card.querySelector(".kind")), id: text(card.querySelector(".facts code")),
      subtask: text(card.querySelector("h3 small")), asked: text(card.querySelector(".asks, .asked")),
      times: [...card.querySelectorAll(".facts time")].map((time) => time.dateTime),
      commands: [...card.querySelectorAll(".commands code")].map(text),
    })),
    events: all("#events li", (item) => [text(item.querySelector("strong")), text(item.querySelector("span"))]),
    answer: document.querySelector(".answer")?.innerText ?? "",
    subtasks: all(".subtask > summary", (row) => ({
      id: text(row.querySelector("strong")), role: text(row.querySelector(".role")),
      state: text(row.querySelector(".state")), what: text(row.querySelector(".what")),
    })),
    spend: all("[aria-label^='Spend by'] tbody tr", (row) => [...row.cells].map(text)),
    course: all(".course li", (item) => text(item.querySelector("span"))),
    claims: all("tr[id^=e]", (row) => text(row.cells[0].firstChild)),
    warnings: all("#head .warn, section[aria-labelledby=course] .warn", text),
  };
}"""


async def read_page(reader: Reader) -> dict[str, Any]:
    """Returns the facts on the page that is open."""
    return dict(await reader.page.evaluate(_READ))


async def same_while_open(reader: Reader, cli: Cli, run_id: str) -> None:
    """Fails if the page of an open run, at which nothing happens, and the commands differ."""
    told, calls = await _events(cli, run_id)

    async def has_settled() -> bool:
        events = Counter((subject, text) for subject, text in (await read_page(reader))["events"])
        return not Counter(told) - events

    await until(has_settled, 30)
    shown = await read_page(reader)
    events = Counter((subject, text) for subject, text in shown["events"])
    # a call that waits has no event yet, and an output is in the store once a turn has read it
    assert not Counter(told) - events
    assert {(subject, text.split()[0]) for subject, text in events - Counter(told)} <= calls
    printed = await cli.json("status", run_id)
    status = Status.model_validate({name: printed[name] for name in Status.model_fields if name in printed})
    assert shown["goal"] == status.goal
    assert shown["glance"] == dict(_glance(status, printed))
    assert [_without_doing(row) for row in shown["rows"]] == list(_rows(status))
    waiting = [row["doing"] for row in shown["rows"] if row["state"] == "waiting"]
    assert waiting == [row.description for row in status.subtasks if row.state == "waiting"]
    assert shown["warnings"] == status.warnings
    assert shown["cards"] == [_card(item) async for item in _waits(cli, run_id)]


async def same_at_the_end(reader: Reader, cli: Cli, run_id: str) -> None:
    """Fails if the page of a run that has ended and the commands differ."""
    shown = await read_page(reader)
    printed = await cli.json("result", run_id)
    result = RunResult.model_validate({name: printed[name] for name in RunResult.model_fields if name in printed})
    assert _words(shown["answer"]) == _words(result.answer)
    status = await cli.json("status", run_id)
    assert shown["goal"] == status["goal"]
    assert Usage.model_validate(status["usage"]) == result.usage
    claims = (await cli.json("verify", run_id))["claims"]
    assert {name: fact["said"] for name, fact in shown["glance"].items()} == {
        "Status": printed["status"],
        "Claims checked": _checked(claims),
        "Confidence": _confidence(result, claims),
        "Time": duration(result.timing.wall_seconds, digits=1),
        "Cost": money(result.usage.usd),
    }
    small = shown["glance"]["Cost"]["small"]
    assert re.findall(r"\d+", small) == [str(result.usage.model_calls), str(result.usage.tool_calls)]
    assert Counter(shown["claims"]) == Counter(claim["text"] for claim in claims)
    own = [(row.id, row.role, row.state) for row in result.subtasks]
    assert [(row["id"], row["role"], row["state"]) for row in shown["subtasks"]] == own
    for row, report in zip(shown["subtasks"], result.subtasks, strict=True):
        assert " ".join(report.description.split()).startswith(row["what"].removesuffix("…"))
    assert shown["spend"] == [*_spend(result, "role"), *_spend(result, "model")]
    assert shown["warnings"] == result.warnings
    trace = [event_line(TraceEvent.model_validate(event)).text for event in await cli.json("trace", run_id)]
    missing = Counter(shown["course"]) - Counter(" ".join(text.split()) for text in trace)
    assert not missing


def _glance(status: Status, printed: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the fields at the head of an open run's page, as `status` has them."""

    def fact(said: str, small: str, times: Sequence[str] = (), values: Sequence[int] = ()) -> dict[str, Any]:
        return {"said": said, "small": small, "times": [*times], "values": [*values]}

    flags = "waits for a person" if status.flags.waiting_person else ""
    yield "Phase", fact(status.phase, flags)
    counts, limits = status.counts, status.limits
    yield "Subtasks", fact(f"{counts.completed} of {counts.total} done", f"{counts.running} running")
    assert limits.budget_tokens is not None
    tokens = [status.usage.tokens, limits.budget_tokens]
    used, most = [f"{count:,}" for count in tokens]
    yield "Tokens", fact(used, f"of {most}", values=tokens)
    yield "Cost", fact(money(status.usage.usd), f"of {money(limits.budget_usd)}")
    yield "Time", fact(*_any_text(), times=[printed["started_at"], status.deadline_at])


class _Any(str):
    """A text that is equal to each other one: a clock that goes on."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)


def _any_text() -> tuple[str, str]:
    return _Any(), _Any()


def _rows(status: Status) -> Iterator[dict[str, Any]]:
    for report in status.subtasks:
        usage = report.usage
        spent = f"{usage.tokens:,} tokens {money(usage.usd)}" if usage.tokens else ""
        yield {
            **{"id": report.id, "role": report.role, "state": report.state, "began": report.started_at},
            **{"spent": spent, "tokens": [usage.tokens] if usage.tokens else [], "turn": str(report.turns)},
        }


def _without_doing(row: dict[str, Any]) -> dict[str, Any]:
    return {name: fact for name, fact in row.items() if name != "doing"}


async def _waits(cli: Cli, run_id: str) -> Any:
    for item in await cli.json("inbox"):
        if item["run_id"] == run_id:
            yield item


def _card(item: dict[str, Any]) -> dict[str, Any]:
    """Returns a wait of a short question, as `inbox` has it, in the form of a card."""
    return {
        **{"kind": item["kind"], "id": item["id"], "subtask": item["subtask_id"]},
        "asked": item["prompt_preview"],
        "times": [item["since"], item["expires_at"]],
        "commands": [_Any()],
    }


async def _events(cli: Cli, run_id: str) -> tuple[list[tuple[str, str]], set[tuple[str, str]]]:
    """Returns subject and words of the events of `trace`, and those of calls with the tool alone."""
    printed = [TraceEvent.model_validate(event) for event in await cli.json("trace", run_id)]
    told, calls = [], set()
    for event in printed:
        shown = event_line(event)
        if event.type == "tool":
            calls.add((shown.subject, str(event.data["name"])))
        else:
            told.append((shown.subject, " ".join(shown.text.split())))
    return told, calls


def _words(text: str) -> list[str]:
    """Returns the words of a text, as Markdown or as it is shown."""
    return re.findall(r"[^\W_][\w.,%]*", re.sub("[_*]", " ", text))


def _checked(claims: list[dict[str, Any]]) -> str:
    if not claims:
        return "none"
    verified = sum(not claim["problem"] and not claim["recalled"] for claim in claims)
    return f"{verified} of {len(claims)} verified"


def _confidence(result: RunResult, claims: list[dict[str, Any]]) -> str:
    is_measured = result.confidence is not None and bool(claims)
    return f"{result.confidence:.0%}" if is_measured else "not measured"


def _spend(result: RunResult, name: str) -> list[list[str]]:
    sums: dict[str, Usage] = {}
    for row in result.spend:
        key = str(getattr(row, name))
        sums[key] = sums.get(key, Usage()) + row.usage
    rows = sorted(sums.items(), key=lambda item: (-(item[1].usd or 0), -item[1].tokens))
    return [[key, *_cells(usage)] for key, usage in rows]


def _cells(usage: Usage) -> list[str]:
    calls, read, written = (f"{count:,}" for count in (usage.model_calls, usage.prompt_tokens, usage.output_tokens))
    return [calls, read, f"{usage.cached_share:.0%}", written, money(usage.usd)]
