"""The tools that the provider runs itself within a model call: web search and web fetch."""

import re
from typing import Annotated, Any

from pydantic import Field

from activities.tools.files import FolderFiles
from activities.tools.tool import Arguments, Tool, ToolContext, ToolMisuse, ToolSource
from temporal_supervisor.supervision.contract.base import StrictModel, matching

_USES = 5  # of one reply: each search costs a cent, and its results thousands of tokens
_MOST_USES = 20
_DOMAINS = 100
_DOMAIN = re.compile(r"\A[^\s:/.]++\.[^\s:]++\Z")
_DOMAIN_RULE = "a domain without https://, such as example.com or example.com/docs"
_Domain = Annotated[str, matching(_DOMAIN, _DOMAIN_RULE)]
_PAGE_TOKENS = 20_000  # of one fetched page: every later turn reads it again

_TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "web_search": (
        "Searches the web: pages, their dates, and the passages that answer the question.",
        {"type": "web_search_20250305"},
    ),
    "web_fetch": (
        "Returns a page of the web or a PDF by its URL, which has to stand in the conversation.",
        {
            "type": "web_fetch_20250910",
            "citations": {"enabled": True},
            "max_content_tokens": _PAGE_TOKENS,
        },
    ),
}


class ProviderOptions(StrictModel):
    """Options: the uses within one reply, and the domains that the tool may visit."""

    max_uses: Annotated[int, Field(ge=1, le=_MOST_USES)] = _USES
    allowed_domains: Annotated[list[_Domain], Field(max_length=_DOMAINS)] = []


class ProviderTools(ToolSource):
    """The source of such a tool, which goes to the web, or to `allowed_domains` only.

    Its results are untrusted.
    """

    def __init__(self, files: FolderFiles, tools: dict[str, str], options: ProviderOptions) -> None:
        [(self._name, self._kind)] = tools.items()
        self._options = options

    async def open(self) -> list[Tool[Any]]:
        """Returns the tool. Raises ValueError if its name is not the provider's."""
        name = self._kind.removeprefix("provider_")
        if self._name != name:
            raise ValueError(f'models know this tool by another name: write name = "{name}"')
        options = self._options.model_dump(exclude_defaults=True)
        description, definition = _TOOLS[name]
        return [
            Tool(
                name,
                description,
                Arguments,
                _refuse,
                reads="public",
                returns="untrusted",
                effects="outward",
                targets={key: value for key, value in options.items() if key == "allowed_domains"},
                provided={**definition, "name": name, "max_uses": _USES, **options},
            )
        ]


async def _refuse(arguments: Arguments, context: ToolContext) -> None:
    elsewhere = "The provider of the model runs this tool, within the model's reply."
    raise ToolMisuse(f"{elsewhere} It was not called.")
