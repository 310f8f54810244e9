"""The tool that hands files over to the user: a Markdown document, or a program as it is.

No file that it makes contacts another host when it is opened. In Markdown, which viewers render,
unsupported links become text. A program is kept as written, because no viewer follows its links;
files that a browser, an office program or a notebook would open are kept as plain text, with an
ending that shows it.
"""

import re
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field

from activities.tools.tool import Arguments, NewArtifact, Tool, ToolContext, ToolOutput
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import clean, one_line, size, slug
from temporal_supervisor.supervision.results.shown_links import without_links

_MARKDOWN = "text/markdown"
_PLAIN = "text/plain"
_TYPES = {
    ".md": _MARKDOWN,
    ".txt": _PLAIN,
    ".py": "text/x-python",
    ".js": "text/javascript",
    ".ts": "text/x-typescript",
    ".tsx": "text/x-typescript",
    ".jsx": "text/javascript",
    ".css": "text/css",
    ".sql": "application/sql",
    ".sh": "text/x-shellscript",
    ".json": "application/json",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".ini": _PLAIN,
    ".go": "text/x-go",
    ".rs": "text/x-rust",
    ".c": "text/x-c",
    ".h": "text/x-c",
    ".cpp": "text/x-c++",
    ".java": "text/x-java",
    ".kt": "text/x-kotlin",
    ".rb": "text/x-ruby",
    ".r": "text/x-r",
}
"""The media types of files by their endings: of programs and settings, which one opens to read."""

_ENDINGS = {media_type: ending for ending, media_type in reversed(_TYPES.items())}
_NAME_CHARS = 100
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_FENCED = re.compile(r"\s*```[^\n`]*\n(?P<inside>.*?)\n?```\s*", re.DOTALL)


class FormatDocument(Arguments):
    """A document, or a file of another kind."""

    title: Annotated[str, Field(min_length=1, max_length=limits.SENTENCE_BYTES)]
    body: Annotated[
        str,
        Field(
            min_length=1,
            description="Markdown, each section with a heading (##); of another file all of it.",
        ),
    ]
    file_name: Annotated[
        str | None,
        Field(
            max_length=_NAME_CHARS,
            description='Such as "primes.py", without folders. None is a Markdown document.',
        ),
    ] = None
    media_type: Annotated[
        str | None,
        Field(
            max_length=_NAME_CHARS,
            description='Such as "text/x-python", where the ending of file_name does not say it.',
        ),
    ] = None


async def _format(arguments: FormatDocument, context: ToolContext) -> ToolOutput:
    known = await context.links() if context.links else set()
    shown = without_links(clean(arguments.title), known)
    title = one_line(shown, limits.SENTENCE_BYTES).lstrip("# ")
    name, media_type = _name_and_type(arguments.file_name or "", arguments.media_type or "", title)
    if media_type != _MARKDOWN:
        return _program(name, media_type, arguments.body)
    text = f"# {title}\n\n{without_links(clean(arguments.body), known).strip()}\n"
    return ToolOutput(text, artifacts=[NewArtifact(name, media_type, text.encode())])


def _name_and_type(file_name: str, media_type: str, title: str) -> tuple[str, str]:
    """Returns the name and the media type of a file.

    Each is derived from the other, or from the title, where it is missing.
    """
    media_type = media_type.partition(";")[0].strip().casefold()
    given = _NOT_IN_NAMES.sub("-", PurePosixPath(file_name.replace("\\", "/")).name).strip("-.")
    has_words = any(character.isascii() and character.isalnum() for character in title)
    titled = slug(title) if has_words else "document"
    if not given:
        return (
            f"{titled}{_ENDINGS.get(media_type, '.md')}",
            media_type if media_type in _ENDINGS else _MARKDOWN,
        )
    by_name = _TYPES.get(PurePosixPath(given).suffix.casefold())
    if by_name is None:
        return f"{given}.txt", _PLAIN
    is_rendered = _MARKDOWN in (by_name, media_type)
    return given, by_name if is_rendered or media_type not in _ENDINGS else media_type


def _program(name: str, media_type: str, body: str) -> ToolOutput:
    """Returns a file with its content as written, without a fence around it."""
    fenced = _FENCED.fullmatch(body)
    content = clean(fenced["inside"] if fenced else body).strip("\n") + "\n"
    said = f"stored for the user as {name} ({media_type}, {size(content):,} bytes)"
    return ToolOutput(said, artifacts=[NewArtifact(name, media_type, content.encode())])


_DOCUMENT = (
    "Stores a file for the user. Without a file_name it is a Markdown document, made of a title "
    "and a text, and the result is the document as it was stored. With one, body is the whole "
    "file, such as a program."
)
DOCUMENT_FORMAT = Tool(
    "format_document",
    _DOCUMENT,
    FormatDocument,
    _format,
    reads="public",
    evidence="nothing",
)
