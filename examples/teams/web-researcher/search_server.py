"""A web search for models whose provider has none: an MCP server that asks a SearXNG instance.

SEARCH_URL is the address of the instance, such as http://127.0.0.1:8080; its settings must allow
the format `json`. It keeps nothing, and opens no page: what it returns is what the search engines
show of each result.
"""

import json
import os
import urllib.error
import urllib.parse
import urllib.request

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

RESULTS = 8  # of a search: the first ones are worth a model's attention
EXCERPT_CHARS = 600
SECONDS = 20

server = MCPServer("search")


@server.tool()
def web_search(words: str) -> list[str]:
    """Searches the web by a few words. Each result has title, address, day if known and excerpt."""
    address = os.environ.get("SEARCH_URL", "").rstrip("/")
    if not address:
        raise ToolError("SEARCH_URL is not set: the operator has to name a SearXNG instance")
    query = urllib.parse.urlencode({"q": words, "format": "json"})
    try:
        with urllib.request.urlopen(f"{address}/search?{query}", timeout=SECONDS) as reply:
            found = json.load(reply)["results"]
    except (OSError, ValueError, KeyError) as error:
        raise ToolError(
            f"the search did not work ({error}): try again, or say that there was no search"
        ) from error
    return [_line(result) for result in found[:RESULTS]] or [f"nothing was found for: {words}"]


def _line(result: dict[str, str]) -> str:
    day = (result.get("publishedDate") or "")[:10]
    excerpt = " ".join((result.get("content") or "").split())[:EXCERPT_CHARS]
    parts = [result.get("title") or "", result.get("url") or "", day, excerpt]
    return " | ".join(part for part in parts if part)


if __name__ == "__main__":
    server.run()
