"""Removal of prompt parts that a model repeats before its reply.

Small models begin with the subtask that they were given.
"""

import re

from temporal_supervisor.supervision.base.prompt_marks import DATA, GOAL, ITEM, SUBTASK

_GIVEN = (GOAL, SUBTASK, ITEM, DATA)
_ECHO = re.compile(rf"\s*+<(?P<tag>{'|'.join(_GIVEN)})>\n.*?\n</(?P=tag)>", re.DOTALL)


def without_echo(text: str) -> str:
    """Returns a text without leading prompt tags; a text of nothing else stays as it is."""
    rest = text
    for _ in _GIVEN:  # each stands in a prompt once
        if (echo := _ECHO.match(rest)) is None:
            break
        rest = rest[echo.end() :]
    return rest.strip() or text
