"""Code in a text, told from words: code claims nothing, but an answer in a fence is an answer."""

import re

_FENCED = re.compile(r"^[ \t]*```[^\n]*\n?(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`[^`\n]++`")
_LETTER = re.compile(r"[^\W\d_]")  # a figure alone stays a figure
# A figure in backticks: "`12.5 km/h`", "`-3 %`"; not "`max_wind`".
_FIGURE_WITH_WORDS = re.compile(
    r"`\s?[-+−~≈$€£]?\s?\d[\d.,]*+(?:\s?[^\W\d_]{1,20}+(?:/[^\W\d_]{1,20}+)?|\s?%){0,4}\s?`"
)

# The beginning of a query: "SELECT a", "with b as (...)"; not "selection".
_QUERY = re.compile(
    r"(?:\s|--[^\n]*\n)*(?:select|with|insert|update|delete|create|explain|describe|show|pragma)\b", re.IGNORECASE
)
_QUERY_PART = re.compile(r"\b(?:from|as\s*\(|into|set|table|values|tables|limit)\b|\bselect\b", re.IGNORECASE)
# "import re", "def a(b):", "print(a)", "a = [1]", "$ make"; not "a = 3".
_CODE_LINE = re.compile(
    r"\s*(?:import |from \w+ import|def |class |return\b|for \w+ in |if .*:$|print\(|//|\$ |>>> "
    r"|[a-z_]\w*(?:\.\w+)*\s?=[^=\n\"'(\[{]*[\"'(\[{]|[a-z_]\w*(?:\.\w+)*\()"
)
_BRACKETS = re.compile(r"\s*+[{}\[\])(,;]*+\s*+")  # a line of them alone is of a program or of JSON
_MOST_LINE = 400  # signs of a line that are looked at


def without_code(text: str) -> str:
    """Returns a text with blanks in place of its code: fences of queries and programs, and names in backticks.

    Fences of words, tables or JSON lose their marks alone.
    """
    if "`" not in text:
        return text
    text = _FENCED.sub(_blank_fence, text)
    return _INLINE.sub(lambda match: match[0] if _is_figure(match[0]) else _blank(match[0]), text)


def is_code(text: str) -> bool:
    """True for a query, and for lines of which half look like those of a program."""
    if _QUERY.match(text):
        return bool(_QUERY_PART.search(text))
    lines = [line for line in text.splitlines() if not _BRACKETS.fullmatch(line)]
    looking = [line for line in lines if _CODE_LINE.match(line[:_MOST_LINE])]
    return bool(lines) and 2 * len(looking) >= len(lines)


def _blank_fence(match: re.Match[str]) -> str:
    inside = match[1]
    if not inside.strip() or is_code(inside):
        return _blank(match[0])
    before, after = match.start(1) - match.start(), match.end() - match.end(1)
    return f"{_blank(match[0][:before])}{inside}{_blank(match[0][len(match[0]) - after :])}"


def _is_figure(code: str) -> bool:
    return not _LETTER.search(code) or bool(_FIGURE_WITH_WORDS.fullmatch(code))


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
