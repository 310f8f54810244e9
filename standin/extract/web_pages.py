"""The web of the stand-in: the documents of the default team as pages, found by their words, cited by sentences."""

import base64
import secrets
from functools import cache
from pathlib import Path

from standin.extract import prompt_parts
from standin.extract.words import key_lines, key_stems, key_words, shared
from standin.server.api_request import ApiRequest, Json
from supervision.base import prompt_marks as marks

_FOLDER = Path(__file__).parents[2] / "teams" / "default" / "documents"
_SITE = "https://pages.example/"  # a reserved name
_FOUND = 3
_CITED = 3  # sentences of a page
_WORDS = 10  # of a query


def looked_up(request: ApiRequest) -> list[Json]:
    """Returns the blocks of a search, or of a page fetched by its URL, and what they say; nothing the second time."""
    begun = any(block.get("type") == "server_tool_use" for m in request.messages for block in m["content"])
    if begun or not request.provided:
        return []
    subtask = prompt_parts.focus(prompt_parts.block(request.prompt, marks.SUBTASK) or request.user_text)
    named = next((url for url in _pages() if url in subtask), None)
    if "web_fetch" in request.provided and named:
        return _ran("web_fetch", {"url": named}, _fetched(named), [named], subtask)
    if "web_search" not in request.provided:
        return []
    wanted = key_stems(subtask)
    best = sorted(_pages(), key=lambda url: -len(shared(wanted, _pages()[url])))[:_FOUND]
    hits = [{"type": "web_search_result", "url": url, "title": _title(url), "page_age": None} for url in best]
    content = [
        hit | {"encrypted_content": base64.b64encode(_pages()[str(hit["url"])].encode()).decode()} for hit in hits
    ]
    query = " ".join([word for word in key_words(subtask) if not word.isdigit()][:_WORDS])
    return _ran("web_search", {"query": query}, content, best, subtask)


def _ran(tool: str, arguments: Json, content: Json | list[Json], urls: list[str], question: str) -> list[Json]:
    number = f"srvtoolu_{secrets.token_hex(12)}"
    return [
        {"type": "server_tool_use", "id": number, "name": tool, "input": arguments},
        {"type": f"{tool}_tool_result", "tool_use_id": number, "content": content},
        *(_cited(tool, url, line) for url in urls for line in key_lines(_pages()[url], question, _CITED)),
    ]


def _cited(tool: str, url: str, line: str) -> Json:
    """Returns a sentence of a page as text, with the citation of its tool."""
    citation: Json = {"type": "web_search_result_location", "url": url, "title": _title(url), "encrypted_index": "0"}
    if tool == "web_fetch":
        at = max(0, _pages()[url].find(line))
        place = {"document_index": 0, "start_char_index": at, "end_char_index": at + len(line)}
        citation = {"type": "char_location", "document_title": _title(url), **place}
    return {"type": "text", "text": f"{line}\n", "citations": [citation | {"cited_text": line}]}


def _fetched(url: str) -> Json:
    source = {"type": "text", "media_type": "text/plain", "data": _pages()[url]}
    document = {"type": "document", "title": _title(url), "source": source, "citations": {"enabled": True}}
    return {"type": "web_fetch_result", "url": url, "retrieved_at": None, "content": document}


def _title(url: str) -> str:
    return _pages()[url].partition("\n")[0].strip("# ")


@cache
def _pages() -> dict[str, str]:
    """The texts of the pages by their URLs."""
    return {_SITE + file.stem: file.read_text(encoding="utf-8") for file in sorted(_FOLDER.glob("*.md"))}
