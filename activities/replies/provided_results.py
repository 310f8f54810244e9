"""What replies have of tools that the provider ran: pages found or fetched, and the passages that were cited.

The text of a search's pages is encrypted and for the provider alone: of it only cited passages can be read.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from activities.model.conversation import Entry
from activities.model.port import Json
from supervision.base import limits
from supervision.base.text import clean, one_line


class ProvidedResult(NamedTuple):
    """The result of one call: as a text, and its pages with the day on which they were fetched."""

    text: str
    sources: list[str]
    is_error: bool = False


class ProvidedResults:
    """The results in a conversation, by the calls that asked for them."""

    def __init__(self, chain: Iterable[Entry]) -> None:
        self._results: dict[str, tuple[Any, str]] = {}
        self._cited = defaultdict[str, dict[str, None]](dict)  # passages by URL, or by title where they have no URL
        for entry in chain:
            for block in entry.reply.content:
                if block.get("type") in ("web_search_tool_result", "web_fetch_tool_result"):
                    self._results[str(block.get("tool_use_id"))] = block.get("content"), (entry.at or "")[:10]
                for cited in _dicts(block.get("citations")):
                    page = str(cited.get("url") or cited.get("document_title"))
                    self._cited[page][str(cited.get("cited_text"))] = None

    def of(self, call: Json) -> ProvidedResult | None:
        """Returns the result of a call; None if it has none."""
        if (found := self._results.get(str(call.get("id")))) is None:
            return None
        content, day = found
        pages = list(_dicts(content if isinstance(content, list) else [content]))
        if failed := [str(page.get("error_code")) for page in pages if "error_code" in page]:
            return ProvidedResult(f"The provider's tool failed: {', '.join(failed)}.", [], is_error=True)
        shown, cited, sources = list[str](), list[str](), list[str]()
        for page in pages:
            document = next(_dicts([page.get("content")]), page)
            named = (page.get("url"), document.get("title"))
            url, title = (one_line(clean(str(text or "")), limits.SOURCE_BYTES) for text in named)
            passages = [passage for name in named for passage in self._cited.get(str(name), {})]
            fetched = f"fetched on {str(page.get('retrieved_at') or day)[:10]}"
            age = one_line(clean(str(page.get("page_age") or "")), limits.LINE_BYTES)
            dated = f"of {age}, {fetched}" if age else fetched
            source = next(_dicts([document.get("source")]), {})
            text = str(source.get("data")) if source.get("type") == "text" else ""
            shown.append(
                "\n".join(filter(None, [f"{title}: {url} ({dated})", text, *(f'"{each}"' for each in passages)]))
            )
            (cited if passages else sources).append(f"{url} ({dated})")
        return ProvidedResult("\n\n".join(shown) or "Nothing was found.", cited or sources)


def _dicts(values: object) -> Iterator[Json]:
    """Yields the objects of a list: an endpoint may send anything."""
    yield from (value for value in (values if isinstance(values, list) else []) if isinstance(value, dict))
