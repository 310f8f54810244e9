"""The two streams of a command: results on standard output, everything else on standard error."""

import sys

from pydantic import BaseModel, JsonValue
from rich.console import Console

from console.view.safe_text import safe, safe_json


def console(*, stderr: bool = False) -> Console:
    """A rich console of a stream. Strings of ours only: foreign text goes in as `Text` or Markdown."""
    made = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not made.is_terminal:
        made = Console(stderr=stderr, markup=False, highlight=False, emoji=False, width=400, color_system=None)
    return made


def tell(text: str) -> None:
    """Text on standard output, made safe, with a line break."""
    sys.stdout.write(safe(text) + "\n")
    sys.stdout.flush()


def tell_json(value: BaseModel | JsonValue) -> None:
    """A value as JSON on standard output."""
    plain: JsonValue = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    sys.stdout.write(safe_json(plain) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """Text on standard error, made safe, with a line break."""
    sys.stderr.write(safe(text) + "\n")
    sys.stderr.flush()
