"""The tool of the library: a plain function, and what models read of it."""

from typing import Annotated

from pydantic import Field

from temporal_supervisor import ToolMisuse, ToolOutput, tool

BOOKS = {"Emma": "shelf 3", "Middlemarch": "shelf 7", "Persuasion": "shelf 3"}


@tool
def find_books(
    title: Annotated[str, Field(min_length=1, max_length=100, description="A word of the title.")],
) -> ToolOutput:
    """Finds books of the library by a word of their title."""
    found = [f"{book}: {shelf}" for book, shelf in BOOKS.items() if title.lower() in book.lower()]
    if not found:
        raise ToolMisuse(f"no title holds '{title}'; the titles are: {', '.join(BOOKS)}")
    return ToolOutput("\n".join(found), sources=["catalogue"])


TOOLS = [find_books]
