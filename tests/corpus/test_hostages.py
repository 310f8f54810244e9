"""Texts that may take a parser for ever: the event loop stays free, the next question is answered, the end is typed."""

import json
import time
from collections.abc import Awaitable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.replies import answer_schema
from activities.replies.answer_schema import check_schema, problems, sendable
from activities.tools.sql.sql_tools import SQL_CHARS
from activities.tools.tool import ToolMisuse
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import SupervisionError
from tests.activity.files.made_tables import tables_of

LOOP_CPU = 0.5  # seconds of the event loop's thread for one hostage; it only waits for its child

# prefix, unit, suffix: the unit as often as the longest query allows
SHAPES = """
SELECT * FROM t| JOIN t|
SELECT * FROM t| JOIN (SELECT 1) x|
SELECT * FROM |(SELECT * FROM |t
SELECT |(|1
SELECT |{'a': |1
SELECT |NOT |1
SELECT |1 + |1
SELECT |x -> (|1
SELECT |CASE WHEN |1
SELECT |CAST(1 AS STRUCT(a |INT
SELECT |1 IN (|1
SELECT |sum(x) OVER (PARTITION BY |1
SELECT 1| UNION SELECT 1|
SELECT 1 WHERE |(1 = 1 AND |1
WITH |a AS (WITH |b AS (SELECT 1) SELECT 1
SELECT * FROM t |PIVOT (sum(a) FOR b IN (1)) |
VALUES |(1), |(1)
SELECT |/*|1
SELECT |"|1
|;|
""".strip().splitlines()
# an hour for the parser
BITES = "SELECT * FROM t" + " JOIN t" * 20 + " WHERE 0 < 1" + " + (SELECT DISTINCT ON (a) a FROM t)" * 20


def texts() -> list[str]:
    made = []
    for shape in SHAPES:
        parts = shape.split("|")
        prefix, unit, suffix = parts[0], "|".join(parts[1:-1]), parts[-1]
        for times in (20, (SQL_CHARS - len(prefix + suffix)) // len(unit)):
            made.append(prefix + unit * times + suffix)
    return made


async def captive(work: Awaitable[Any]) -> tuple[Any, float]:
    """What `work` gives or raises, and the CPU time that the event loop's thread spent on it."""
    began = time.thread_time()
    try:
        outcome = await work
    except (ToolMisuse, SupervisionError) as error:
        outcome = error
    return outcome, time.thread_time() - began


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "queries",
    [pytest.param(texts()[1::2], id="longest"), pytest.param(texts()[::2], id="short", marks=pytest.mark.long)],
)
async def test_no_query_holds_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queries: list[str]
) -> None:
    monkeypatch.setattr(limits, "SQL_TIMEOUT", timedelta(milliseconds=400))
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    store = await tables_of(tmp_path / "t.csv")
    for sql in queries:
        _, spent = await captive(store.query(sql))
        assert spent < LOOP_CPU, sql[:80]
    outcome, spent = await captive(store.query(BITES))
    assert spent < LOOP_CPU
    assert "longer than" in str(outcome)
    monkeypatch.undo()  # a new process may take its time to start
    assert (await store.query("SELECT a FROM t"))["rows"] == [["1"]]


def doubling(word: str, depth: int) -> dict[str, Any]:
    parts: dict[str, Any] = {f"d{i}": {word: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{depth}": {}}}


def nested(word: str, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {word: [schema] if word.endswith("Of") else schema}
    return schema


def anchored(characters: int, levels: int = 3, fields: int = 12) -> dict[str, Any]:
    """A schema that refers to anchors a thousand times, and is long: whoever looks for each one reads all of it."""
    parts: dict[str, Any] = {}
    for level in range(levels):
        named = {str(number): {"$ref": f"#a{level + 1}"} for number in range(fields)}
        parts[f"a{level}"] = {"$anchor": f"a{level}", "type": "object", "properties": named}
    parts[f"a{levels}"] = {"$anchor": f"a{levels}", "type": "null"}
    schema: dict[str, Any] = {"type": "object", "properties": {"r": {"$ref": "#a0"}}, "$defs": parts}
    filler = (characters - len(json.dumps(schema))) // len("{}, ")
    parts["z"] = {"allOf": [{}] * max(0, filler - 10)}
    return schema


SCHEMAS = [
    anchored(limits.ANSWER_SCHEMA_BYTES),
    *(doubling(word, depth) for word in ("allOf", "anyOf", "oneOf", "prefixItems") for depth in (10, 20, 60)),
    *(nested(word, depth) for word in ("items", "not", "allOf", "anyOf", "contains", "if") for depth in (10, 60, 500)),
    {"$defs": {f"d{i}": {"$ref": f"#/$defs/d{(i + 1) % 50}"} for i in range(50)}, "$ref": "#/$defs/d0"},
    {"allOf": [{"$ref": "#"}]},
    {"$dynamicRef": "#", "$dynamicAnchor": "a"},
    {"uniqueItems": True, "items": {"uniqueItems": True}},
    {"additionalProperties": {"$ref": "#"}, "anyOf": [{"required": [str(i)]} for i in range(400)]},
]
PATTERNS = [
    "(a+)+$",
    "(a|a)*$",
    "(a*)*b",
    "(.*a){20}$",
    "(a|aa)+$",
    "^(([a-z])+.)+[A-Z]$",
    "(?:a?){40}a{40}",
    "(x+x+)+y",
]
VALUES: list[Any] = ["a" * 50 + "!", "x" * 50, [[]] * 200, {"a": {"a": {}}}, list(range(3000)), None]


@pytest.mark.timeout(300)
async def test_no_answer_schema_holds_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_schema, "_TIME", timedelta(milliseconds=400))
    late = 0
    for schema in [*SCHEMAS, *({"type": "string", "pattern": pattern} for pattern in PATTERNS)]:
        outcome, spent = await captive(check_schema(schema, "run"))
        for value in VALUES if outcome is None else []:
            outcome, more = await captive(problems(schema, value, "run"))
            spent += more
            late += "can't be checked" in str(outcome)
        if not isinstance(outcome, SupervisionError):
            began = time.thread_time()
            await sendable(schema, "run")
            spent += time.thread_time() - began
        assert spent < LOOP_CPU, str(schema)[:80]
    assert late >= 3
    assert await problems({"type": "string"}, "a", "run") == []
