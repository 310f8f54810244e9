"""Every rule of the table, by a reply that it reads and one that looks alike and stays as it is.

The replies are short forms of recorded ones, and of what the families' chat templates write.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from temporal_supervisor.supervision.replies.loose_form import read_form
from temporal_supervisor.supervision.replies.loose_json import first_json, first_value
from temporal_supervisor.supervision.replies.rules import RULES
from temporal_supervisor.supervision.replies.thinking import without_thinking
from temporal_supervisor.supervision.replies.written_calls import Call, MadeCall, first_call, tool_named

OFFERED: dict[str, Any] = {
    "query_data": {"required": ["sql"], "properties": {"sql": {"type": "string"}}},
    "list_tables": {"properties": {"table": {"type": "string"}}},
    "read_document": {"required": ["document_id"], "properties": {"document_id": {}, "place": {}}},
    "finish": {"required": ["finding", "outcome"], "properties": {"finding": {}, "outcome": {}}},
}
QUERY = Call("query_data", {"sql": "SELECT 1"})
CALL = '{"name": "query_data", "arguments": {"sql": "SELECT 1"}}'


def call(text: str) -> Any:
    found = first_call(text, OFFERED)
    return found and found.call


def value(text: str) -> Any:
    try:
        return first_json(text)
    except ValueError:
        return None


class Items(BaseModel):
    subtasks: list[dict[str, str]]
    note: str = ""


class Lists(BaseModel):
    one: list[str] = []
    two: list[str] = []


def listed(text: str) -> Any:
    return read_form(Items, first_value(text)).subtasks


def ambiguous(text: str) -> Any:
    with pytest.raises(ValueError):
        read_form(Lists, json.loads(text))


Reader = Callable[[str], Any]
READ: list[tuple[str, Reader, str, Any]] = [
    ("a call in tags", call, f"I look.<tool_call>\n{CALL}\n</tool_call>", QUERY),
    ("a call in tags", call, f"<tools>\n{CALL}\n</tools>", QUERY),
    ("a call in tags", call, f"<|tool_call|>[{CALL}]", QUERY),
    ("a call after [TOOL_CALLS]", call, f"[TOOL_CALLS][{CALL}]", QUERY),
    ("a call after [TOOL_CALLS]", call, '[TOOL_CALLS]query_data[ARGS]{"sql": "SELECT 1"}', QUERY),
    (
        "a call after <|python_tag|>",
        call,
        '<|python_tag|>{"name": "query_data", "parameters": {"sql": "SELECT 1"}}',
        QUERY,
    ),
    ("a call in <function=name>", call, '<function=query_data>{"sql": "SELECT 1"}</function>', QUERY),
    (
        "a call in <function=name>",
        call,
        "<tool_call>\n<function=query_data>\n<parameter=sql>\nSELECT 1\n</parameter>\n</function>\n</tool_call>",
        QUERY,
    ),
    ("a call in Python", call, '```tool_code\nprint(query_data(sql="SELECT 1"))\n```', QUERY),
    ("a call in Python", call, "[query_data(sql='SELECT 1')]", QUERY),
    ("a call as JSON", call, CALL, QUERY),
    ("a call as JSON", call, f"```\n{CALL}\n```\n\nHowever, the query failed.", QUERY),
    ("a call as JSON", call, f"### Step 1: List\n\n```json\n{CALL}\n```\n\n### Results\n| 7770000 |", QUERY),
    ("a call as JSON", call, 'Steps:\n{"name": "list_tables"}\n' + CALL, Call("list_tables", {})),
    ("a call as JSON", call, '{"name": "query_data", "arguments": "{\\"sql\\": \\"SELECT 1\\"}"}', QUERY),
    ("a call as JSON", call, '{"name": "query_data", "arguments": "SELECT 1"}', QUERY),
    ("a call as JSON", call, '{"name": "query_data", "sql": "SELECT 1"}', QUERY),
    ("a call as JSON", call, '{"query_data": {"sql": "SELECT 1"}}', QUERY),
    ("a call as JSON", call, '{"type": "function", "function": ' + CALL + "}", QUERY),
    ("a call as JSON", call, '{"name": "query_data", "arguments": {"sql": "SELECT 1"})\n```\n1 = 31.67%', QUERY),
    ("a block of SQL", call, "The correct query should be:\n\n```sql\nSELECT 1\n```\nI will correct the call.", QUERY),
    (
        "a block of SQL",
        call,
        "SELECT Year FROM t_204 WHERE \"Men's Division\" = 'Tasmania'",
        Call("query_data", {"sql": "SELECT Year FROM t_204 WHERE \"Men's Division\" = 'Tasmania'"}),
    ),
    ("a name spelt otherwise", call, CALL.replace("query_data", "functions.Query-Data:0"), QUERY),
    ("thinking in tags", without_thinking, "<think>\nor {2}?</think>\n\nNorway.", "Norway."),
    ("thinking in tags", without_thinking, "so it is Norway\n</think>\n\nNorway.", "Norway."),
    ("thinking in tags", without_thinking, "[THINK]hm[/THINK]Norway.", "Norway."),
    ("thinking in tags", without_thinking, "<think>and it never ends", ""),
    (
        "thinking in tags",
        without_thinking,
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Norway.<|return|>",
        "Norway.",
    ),
    ("JSON in a text", value, 'Here:\n```json\n{"a": "b"}\n```\nHow this team plans', {"a": "b"}),
    (
        "comments in JSON",
        value,
        '{"a": 1, // one\n "b": 2, # two\n /* and */ "c": "// no"}',
        {"a": 1, "b": 2, "c": "// no"},
    ),
    ("other quotes", value, "{'a': 'it's', 'b': [\"c\"]}", {"a": "it's", "b": ["c"]}),
    ("other quotes", value, "{“a”: “b”}", {"a": "b"}),
    ("other quotes", value, '{"sql": """SELECT "x"\nFROM t"""}', {"sql": 'SELECT "x"\nFROM t'}),
    ("Python's words", value, "{'a': True, 'b': None, 'c': False}", {"a": True, "b": None, "c": False}),
    ("a comma too many", value, '{"a": [1, 2, ], }', {"a": [1, 2]}),
    ("doubled braces", value, '{{"a": {{"b": 1}}}}', {"a": {"b": 1}}),
    ("doubled braces", value, '{{"a": {"b": 1}}} and more', {"a": {"b": 1}}),
    ("a lost end", value, '{"subtasks": [{"id": "t1"}', {"subtasks": [{"id": "t1"}]}),
    ("a lost end", value, '{"subtasks": [{"id": "t1"}}', {"subtasks": [{"id": "t1"}]}),
    ("an echoed schema", value, '{"$defs": {}, "required": ["a"]}\n\n{"a": 1}', {"a": 1}),
    ("an echoed schema", value, '{"$defs": {}, "required": ["a"]}, "a": [{"b": 1}\n]}', {"a": [{"b": 1}]}),
    ("a bare list", listed, '[{"id": "t1"}, {"id": "t2"}]', [{"id": "t1"}, {"id": "t2"}]),
]

LEFT: list[tuple[str, Reader, str, Any]] = [
    ("a call in tags", call, f"The page says: `<tool_call>{CALL}</tool_call>` marks a call.", None),
    ("a call in tags", call, '<tool_call>{"name": "send_mail", "arguments": {}}</tool_call>', None),
    ("a call after [TOOL_CALLS]", call, f"Mistral writes `[TOOL_CALLS][{CALL}]` before its calls.", None),
    ("a call after <|python_tag|>", call, "Llama writes <|python_tag|> before its calls.", None),
    ("a call in <function=name>", call, "<function=send_mail>{}</function>", None),
    ("a call in <function=name>", call, "<function=query_data>\n<parameter=sql>\nSELECT", None),
    ("a call in Python", call, "The function query_data(sql) takes a query.", None),
    ("a call in Python", call, "[query_data](sql.md) is described there.", None),
    ("a call as JSON", call, f"The log has `{CALL}` twice.", None),
    ("a call as JSON", call, f"> {CALL}\n\nThat is what the page shows.", None),
    ("a call as JSON", call, '{"rows": [' + CALL + "]}", None),
    ("a call as JSON", call, '{"name": "query_data", "calls": 200, "status": "ok"}', None),
    ("a call as JSON", call, '[{"name": "Query", "share": 0.2}, {"name": "Data", "share": 0.8}]', None),
    ("a call as JSON", call, '{"finding": "23.599 years", "outcome": "done"}', None),
    ("a block of SQL", call, "```sql\n\n```", None),
    ("a block of SQL", call, "Select the years from the list of winners.", None),
    ("a block of SQL", call, "SELECT year FROM t; the result is 2001", None),
    ("a block of SQL", call, "SQL has SELECT and WITH.\n```\nSELECT 1\n```", None),
    ("a name spelt otherwise", call, CALL.replace("query_data", "query"), None),
    ("thinking in tags", without_thinking, "The tag <think> opens\nand `</think>` ends it.", ...),
    ("thinking in tags", without_thinking, "I think. <think> is Qwen's tag\n</think>\nends it.", ...),
    ("JSON in a text", value, "as {said} before", None),
    ("comments in JSON", value, '{"a": 1 / 2}', None),
    ("other quotes", value, "{'a': 'cut", None),
    ("Python's words", value, "{'a': Maybe}", None),
    ("a comma too many", value, '{"a": [1,, 2]}', None),
    ("doubled braces", value, "{{name}}", None),
    ("a lost end", value, '{"a": "b", "c": 12', None),
    ("a lost end", value, '{"a": "b", "c": ', None),
    ("an echoed schema", value, '{"type": "object", "required": []}', ...),
    ("an echoed schema", value, '{"$defs": {}, "properties": {}}', None),
    ("a bare list", ambiguous, '["x"]', None),
]


@pytest.mark.parametrize(
    ("rule", "reader", "text", "meant"), READ, ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_reply_is_read(rule: str, reader: Reader, text: str, meant: Any) -> None:
    assert reader(text) == meant


@pytest.mark.parametrize(
    ("rule", "reader", "text", "left"), LEFT, ids=lambda part: part if isinstance(part, str) else ""
)
def test_what_looks_alike_stays_as_it_is(rule: str, reader: Reader, text: str, left: Any) -> None:
    same = json.loads(text) if reader is value and left is ... else text
    assert reader(text) == (same if left is ... else left)


def test_every_rule_has_a_reply_and_one_that_looks_alike() -> None:
    names = {rule.name for rule in RULES}
    assert {name for name, *_ in READ} == names == {name for name, *_ in LEFT}


@pytest.mark.parametrize(
    "text",
    [
        f"The query was {CALL[:0]}this one, and it returned 23.599 years for Rwanda in 1992:\n\n{CALL}",
        "Life expectancy was 23.599 years.\n\nThe query:\n```sql\nSELECT  1;\n```",
        "Life expectancy was 23.599 years, by a query such as\n```sql\nSELECT 1 FROM t\n```",
        "The highest is Norway.\n```sql\nSELECT 2\n```\nThis query returns it.",
    ],
)
def test_a_finding_may_cite_what_was_asked(text: str) -> None:
    assert first_call(text, OFFERED, [MadeCall(QUERY, True)]) is None


def test_a_call_made_again_is_a_call() -> None:
    found = first_call(f"{CALL}\nThe value is 23.599 years.", OFFERED, [MadeCall(QUERY, True)])
    assert found is not None
    assert found.call == QUERY


def test_a_block_of_sql_is_a_query_again_after_one_that_failed() -> None:
    text = "There is an error. The correct query should be:\n```sql\nSELECT 2\n```\nI will correct the call."
    found = first_call(text, OFFERED, [MadeCall(QUERY, False)])
    assert found is not None
    assert found.call == Call("query_data", {"sql": "SELECT 2"})


def test_a_new_query_that_was_asked_for_is_a_call_whatever_follows_it() -> None:
    """What follows was written before its output was seen."""
    text = "```sql\nSELECT 2\n```\nThe team won 16 medals."
    made = [MadeCall(QUERY, True)]
    found = first_call(text, OFFERED, made, asked_for_sql=True)
    assert found is not None
    assert found.call == Call("query_data", {"sql": "SELECT 2"})
    assert first_call(text, OFFERED, made) is None

    again = text.replace("SELECT 2", QUERY.arguments["sql"])
    assert first_call(again, OFFERED, made, asked_for_sql=True) is None
    alone = f"```sql\n{QUERY.arguments['sql']}\n```"
    repeated = first_call(alone, OFFERED, made, asked_for_sql=True)
    assert repeated is not None, "its author hears that it was made before"


def test_names_that_mean_two_tools_mean_none() -> None:
    assert tool_named("query", {"query_tool": {}, "Query": {}}) is None
    assert tool_named("query_tool", {"query_tool": {}, "Query": {}}) == "query_tool"
