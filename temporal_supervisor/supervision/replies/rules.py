"""The table of rules by which replies are read, each with its source.

`tests/unit/replies` has a reply that each rule reads, and a similar one that stays as it is.
Sources: "recorded" are replies of Qwen2.5-Coder-1.5B behind llama.cpp's server to this project's
own requests; the others are the families' own chat templates and the parsers of vLLM (docs.vllm.ai,
Tool Calling), which name these formats.
"""

from typing import NamedTuple


class Rule(NamedTuple):
    """A rule: its name, its source, and the module that applies it."""

    name: str
    source: str
    module: str


SQL_RULE = "a block of SQL"

RULES = (
    # Calls written as text, where the native channel is empty.
    Rule(
        "a call in tags",
        "Qwen 2.5 and 3, Hermes: <tool_call>; Qwen2.5-Coder: <tools>; Granite, Phi: <|tool_call|>",
        "written_calls",
    ),
    Rule(
        "a call after [TOOL_CALLS]",
        "Mistral: [TOOL_CALLS] and a list; "
        "since version 11 of its tokenizer a name, [ARGS] and JSON",
        "written_calls",
    ),
    Rule(
        "a call after <|python_tag|>",
        "Llama 3.1 and later: JSON with `parameters`, with the tag or without",
        "written_calls",
    ),
    Rule(
        "a call in <function=name>",
        "Llama 3.1: JSON inside; Qwen3-Coder: <parameter=name> inside",
        "written_calls",
    ),
    Rule(
        "a call in Python",
        "Gemma: ```tool_code; Llama 3.2 and 4: [name(argument=...)]",
        "written_calls",
    ),
    Rule(
        "a call as JSON",
        "recorded in 105 of 161 turns: plain, in fences, with braces doubled",
        "written_calls",
    ),
    Rule(SQL_RULE, "recorded: the query alone, in a fence or as the whole text", "written_calls"),
    Rule(
        "a name spelt otherwise",
        "Kimi: functions.name:0; others: case, dashes, _tool",
        "written_calls",
    ),
    # Thinking in the text.
    Rule(
        "thinking in tags",
        "DeepSeek R1, Qwen 3: <think>; Magistral: [THINK]; gpt-oss: channels",
        "thinking",
    ),
    # JSON.
    Rule("JSON in a text", "recorded: in a fence, before or after words", "loose_json"),
    Rule("comments in JSON", "models that know JSON5 and YAML", "loose_json"),
    Rule("other quotes", "Python's dicts, word processors", "loose_json"),
    Rule("Python's words", "True, False and None of Python's dicts", "loose_json"),
    Rule("a comma too many", "JSON5, JavaScript", "loose_json"),
    Rule("doubled braces", "recorded: braces as format strings write them", "loose_json"),
    Rule("a lost end", "recorded: a reply that ends before its last brackets", "loose_json"),
    Rule(
        "an echoed schema",
        "recorded in 2 of 44 plans: the schema, and then what fits it",
        "loose_json",
    ),
    # Forms.
    Rule("a bare list", "small models: the list that a form has one of", "loose_form"),
)
