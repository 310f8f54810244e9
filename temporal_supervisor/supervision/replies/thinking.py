"""Removal of thinking that a model writes into its reply.

Servers without thinking blocks send it as a part of the text.
"""

import re

_TAGS = ("think", "thinking", "thought", "reasoning")  # Qwen, DeepSeek; others
_OPENED = re.compile(
    r"\A\s*+(?:<(think|thinking|thought|reasoning)>|\[THINK\])"
)  # Mistral's Magistral has brackets
_CLOSED_ALONE = re.compile(r"^[ \t]*+</(?:think|thinking|thought|reasoning)>[ \t]*+$", re.MULTILINE)
_FINAL = "<|channel|>final<|message|>"  # gpt-oss: the channel that is for the reader
_MARKS = re.compile(r"<\|(?:return|end|start|message|channel)\|>")
_THOUGHTS = 20  # one after the other at the beginning


def without_thinking(text: str) -> str:
    """Returns a text without the thinking in it; empty if the thinking never ends.

    Tags count only at the beginning of the text. An end tag on a line of its own, without a
    beginning before it, counts too, because some chat templates write the beginning into the
    prompt. A text about such tags stays as it is.
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
