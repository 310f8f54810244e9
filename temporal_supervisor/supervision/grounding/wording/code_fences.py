"""Code in a text, told from words: code claims nothing, but an answer in a fence is an answer."""

import re

from temporal_supervisor.supervision.base.text import blanks_for

# A fence and what is in it: "```sql ... ```"; one that never ends is one up to the text's end.
_FENCED = re.compile(r"^[ \t]*```[^\n]*\n?(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`[^`\n]++`")  # "`max_wind`"
_LETTER = re.compile(r"[^\W\d_]")
# A figure in backticks: "`12.5 km/h`", "`-3 %`"; not "`max_wind`".
_FIGURE_WITH_WORDS = re.compile(
    r"`\s?[-+−~≈$€£]?\s?\d[\d.,]*+(?:\s?[^\W\d_]{1,20}+(?:/[^\W\d_]{1,20}+)?|\s?%){0,4}\s?`"
)

# The beginning of a query: "SELECT a", "with b as (...)"; not "selection".
_QUERY = re.compile(
    r"(?:\s|--[^\n]*\n)*"
    r"(?:select|with|insert|update|delete|create|explain|describe|show|pragma)\b",
    re.IGNORECASE,
)
# A word that follows in any query: "from", "as (b", "limit"; a sentence may begin with "Show".
_QUERY_PART = re.compile(
    r"\b(?:from|as\s*\(|into|set|table|values|tables|limit)\b|\bselect\b",
    re.IGNORECASE,
)
# "import re", "def a(b):", "print(a)", "a = [1]", "$ make"; not "a = 3".
_CODE_LINE = re.compile(
    r"\s*(?:import |from \w+ import|def |class |return\b|for \w+ in |if .*:$|print\(|//|\$ |>>> "
    r"|[a-z_]\w*(?:\.\w+)*\s?=[^=\n\"'(\[{]*[\"'(\[{]|[a-z_]\w*(?:\.\w+)*\()"
)
_BRACKETS = re.compile(r"\s*+[{}\[\])(,;]*+\s*+")  # a line of them alone is of a program or of JSON
_MOST_LINE = 400  # signs of a line that are looked at


def without_code(text: str) -> str:
    """Returns a text with blanks in place of its code.

    Code are fences of queries and programs, and names in backticks. Fences of words, tables or JSON
    lose their marks alone.
    """
    if "`" not in text:
        return text
    return _INLINE.sub(_without_inline, _FENCED.sub(_without_fence, text))


def is_code(text: str) -> bool:
    """True for a query, and for lines of which half look like those of a program."""
    if _QUERY.match(text):
        return bool(_QUERY_PART.search(text))
    lines = [line for line in text.splitlines() if not _BRACKETS.fullmatch(line)]
    looking = [line for line in lines if _CODE_LINE.match(line[:_MOST_LINE])]
    return bool(lines) and 2 * len(looking) >= len(lines)


def _without_fence(fence: re.Match[str]) -> str:
    """Returns blanks for a fence of code; of any other fence the words, without its marks."""
    inside = fence[1]
    if not inside.strip() or is_code(inside):
        return blanks_for(fence[0])
    opening = fence.string[fence.start() : fence.start(1)]
    closing = fence.string[fence.end(1) : fence.end()]
    return f"{blanks_for(opening)}{inside}{blanks_for(closing)}"


def _without_inline(code: re.Match[str]) -> str:
    """Returns blanks for a name in backticks; a figure stays a figure."""
    is_figure = not _LETTER.search(code[0]) or _FIGURE_WITH_WORDS.fullmatch(code[0])
    return code[0] if is_figure else blanks_for(code[0])
