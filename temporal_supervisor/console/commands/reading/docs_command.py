"""The command `docs`: the documents of the installed version, without a network."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType

from temporal_supervisor.bundled import DOCUMENTS
from temporal_supervisor.console.base.command import BAD_INPUT, CommandFailed, hint
from temporal_supervisor.console.base.terminal import Report
from temporal_supervisor.supervision.base.text import did_you_mean

FIRST = "index"
_OF_FOLDER = "README.md"
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_NO_ANCHOR = re.compile(r"[^\w -]")


async def docs_report(
    page: Annotated[
        str,
        typer.Argument(metavar="PAGE", help="own-files, or its section own-files#every-monday"),
    ] = FIRST,
) -> Report:
    """Read the documents of this version, without a network; the first page lists the others."""
    name, _, anchor = page.partition("#")
    pages = _pages()
    found = name.removeprefix("docs/").removesuffix(".md").strip("/")
    if found not in pages:
        top = sorted(known for known in pages if "/" not in known)
        meant = did_you_mean(found, pages) or f"; there are: {', '.join(top)}"
        raise CommandFailed(BAD_INPUT, f"there is no page '{found}'{meant}")
    text = pages[found].read_text(encoding="utf-8")
    if anchor:
        text = _section(text, anchor, found)
    where = f"one page: {hint('docs', 'own-files')}; as files: {DOCUMENTS}"
    notes = [where] if page == FIRST else []
    return Report({"page": page, "text": text}, [_Rendered(text)], notes)


def _pages() -> dict[str, Path]:
    """Returns the file of each page by its name: `own-files`, `examples/octopus`.

    `examples` is the README of that folder.
    """
    files = {file.relative_to(DOCUMENTS): file for file in sorted(DOCUMENTS.rglob("*.md"))}
    named = {path.with_suffix("").as_posix(): file for path, file in files.items()}
    folders = {path for path in files if path.name == _OF_FOLDER}
    return named | {path.parent.as_posix(): files[path] for path in folders}


def _section(text: str, anchor: str, page: str) -> str:
    """Returns a heading and the text below it. Raises CommandFailed without such a heading."""
    # A comment in a script is no heading.
    without_blocks = _FENCED.sub(lambda block: " " * len(block[0]), text)
    headings = list(_HEADING.finditer(without_blocks))
    anchors = [_anchor(heading[2]) for heading in headings]
    if anchor not in anchors:
        meant = did_you_mean(anchor, anchors) or f"; there are: {', '.join(anchors)}"
        raise CommandFailed(BAD_INPUT, f"the page '{page}' has no section '{anchor}'{meant}")
    at = anchors.index(anchor)
    level = len(headings[at][1])
    later = (heading.start() for heading in headings[at + 1 :] if len(heading[1]) <= level)
    return text[headings[at].start() : next(later, len(text))].rstrip() + "\n"


def _anchor(heading: str) -> str:
    """Returns the anchor of a heading in links: `own-files` for `Own files`."""
    return _NO_ANCHOR.sub("", heading.lower()).replace(" ", "-")


@dataclass(frozen=True)
class _Rendered:
    """A page: rendered on a terminal, otherwise its Markdown."""

    text: str

    def renderables(self, screen: Console) -> Iterable[RenderableType]:
        """Yields the page."""
        # Links with their targets: that is what this command takes.
        if not screen.is_terminal:
            yield self.text.rstrip()
            return

        from rich.markdown import Markdown  # 0.1 s, for a terminal only

        yield Markdown(self.text, hyperlinks=False)
