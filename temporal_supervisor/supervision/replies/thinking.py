"""Thinking that a model writes into its text, because its server has no blocks for it, is not the reply."""

import re

_TAGS = ("think", "thinking", "thought", "reasoning")  # Qwen, DeepSeek; others
_OPENED = re.compile(r"\A\s*+(?:<(think|thinking|thought|reasoning)>|\[THINK\])")  # Mistral's Magistral has brackets
_CLOSED_ALONE = re.compile(r"^[ \t]*+</(?:think|thinking|thought|reasoning)>[ \t]*+$", re.MULTILINE)
_FINAL = "<|channel|>final<|message|>"  # gpt-oss: the channel that is for the reader
_MARKS = re.compile(r"<\|(?:return|end|start|message|channel)\|>")
_THOUGHTS = 20  # one after the other at the beginning


def without_thinking(text: str) -> str:
    """Returns a text without what its model thinks in it: nothing, if the thinking never ends.

    A tag counts at the beginning alone, or where its end stands on a line of its own and no beginning before it, as
    templates that write the beginning into the prompt have it: a text about such tags stays as it is.
    """
    if _FINAL in text:
        return _MARKS.sub("", text.rpartition(_FINAL)[2]).strip()
    for _ in range(_THOUGHTS):
        opened = _OPENED.match(text)
        if opened is None:
            break
        closing = f"</{opened[1]}>" if opened[1] else "[/THINK]"
        _, closed, rest = text[opened.end() :].partition(closing)
        text = rest.lstrip() if closed else ""
    closed_alone = _CLOSED_ALONE.search(text)
    if closed_alone and not any(f"<{tag}>" in text[: closed_alone.start()] for tag in _TAGS):
        return text[closed_alone.end() :].lstrip()
    return text
