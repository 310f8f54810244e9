"""`web_fetch` returns the text of a page of the web."""

import re
import tempfile
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any
from urllib.parse import urldefrag

from pydantic import Field

from activities.bounded.child_processes import BoundExceeded, ChildProcesses, Failed
from activities.bounded.fair_pool import PLACES
from activities.tools.files import FolderFiles
from activities.tools.tool import Arguments, Tool, ToolContext, ToolMisuse, ToolOutput, ToolSource
from activities.tools.web.web_rules import NotFetched, Site, site_of, sites_of
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import clean, one_line
from temporal_supervisor.supervision.contract.base import StrictModel

_MODULE = "activities.tools.web.web_process"
_FETCH_TIME = timedelta(seconds=15)  # with all its redirects, and the time to make text of it
_ORPHAN_SECONDS = 20.0
_LINE = PLACES.line(4)
_MEMORY = 256 * 1024 * 1024  # for the PDF of 2 MiB that takes most
_FILE_BYTES = 32 * 1024 * 1024
_HOSTS = 100
_URL_CHARS = 2000
_URL_ENDS = r"""[.,;:!?*_'")\]}]{0,4}(?:[\s<>"'`#\\|]|\Z)"""


class WebOptions(StrictModel):
    """Options: the hosts whose pages may be fetched; with `private` they may be private ones."""

    hosts: Annotated[list[str], Field(max_length=_HOSTS)] = []
    private: bool = False


class WebFetch(Arguments):
    """One page."""

    url: Annotated[
        str,
        Field(min_length=1, max_length=_URL_CHARS, description="The whole URL, with https://."),
    ]


class WebTools(ToolSource):
    """The tools that fetch pages, which are public and untrusted.

    A fetch has no effects only by a rule, because a URL that a model makes up could carry data away
    in its query. So only two kinds of URLs are fetched: URLs that occur exactly in a brief or an
    attachment without untrusted text, and URLs of hosts that the team's file names. Those hosts may
    learn what is asked of them.
    """

    def __init__(self, files: FolderFiles, tools: dict[str, str], options: WebOptions) -> None:
        self._tools = tools
        self._options = options
        self._sites: list[Site] = []
        self._hosts = ", ".join(options.hosts) or "none"
        self._children = ChildProcesses(
            _MODULE,
            _LINE,
            _MEMORY,
            seconds=_ORPHAN_SECONDS,
            file_bytes=_FILE_BYTES,
        )

    async def open(self) -> list[Tool[Any]]:
        """Returns the tools. Raises ValueError for an invalid host."""
        for host in self._options.hosts:
            try:
                self._sites += sites_of(host)
            except NotFetched as error:
                raise ValueError(f"options.hosts: '{host}': {error}") from None
        description = (
            "Returns the text of a page of the web: HTML, plain text, JSON or PDF. Its URL has to "
            "stand exactly so in your subtask or in an attachment of it, or to be of one of these "
            f"hosts: {self._hosts}."
        )
        return [
            Tool(
                name,
                description,
                WebFetch,
                self._fetch,
                outside=True,
                reads="public",
                returns="untrusted",
            )
            for name in self._tools
        ]

    async def _fetch(self, arguments: WebFetch, context: ToolContext) -> ToolOutput:
        url = urldefrag(arguments.url.strip()).url
        try:
            site = site_of(url)
            why = None if site in self._sites else await _unnamed(url, context)
            if why:
                hosts = f"none of the hosts that the team lists: {self._hosts}"
                raise NotFetched(f"{why}, and below {hosts}")
        except NotFetched as refused:
            raise _misuse(url, str(refused)) from None
        fetch = partial(self._page, url, site, context.run_id)
        if context.once is None:
            return await fetch()
        return await context.once(f"web page {url}", fetch)

    async def _page(self, url: str, site: Site, run_id: str) -> ToolOutput:
        """Fetches the page now, and returns it. Raises ToolMisuse."""
        try:
            with tempfile.TemporaryDirectory(prefix="supervisor-page-") as folder:
                asked = (url, self._sites, self._options.private, folder)
                page = await self._children.call(run_id, _FETCH_TIME, "fetch", *asked)
        except (NotFetched, BoundExceeded, Failed) as error:
            problem = error.text if isinstance(error, Failed) else str(error)
            raise _misuse(url, problem) from None
        day = datetime.now(UTC).date().isoformat()
        final = page["url"]
        led = f", which led to {final}" if final != url else ""
        text = f"{url}{led}, fetched on {day}:\n\n{page['text']}"
        return ToolOutput(text, [f"{final} (fetched on {day})"])


def _misuse(url: str, problem: str) -> ToolMisuse:
    return ToolMisuse(f"{url} is not fetched: {one_line(clean(problem), limits.PARAGRAPH_BYTES)}")


async def _unnamed(url: str, context: ToolContext) -> str | None:
    """Returns the reason why a URL does not count as named by the subtask, None if it does."""
    if not url.startswith("https://"):
        return "it does not begin with https://"
    for read in (context.brief, *context.attachments.values()):
        text = await read() if read else ""
        if text is None:
            return "the brief, in which it might stand, holds untrusted text"
        if stands_in(url, text):
            return None
    return "it stands, exactly so, neither in the subtask nor in an attachment"


def stands_in(url: str, text: str) -> bool:
    """True if the text contains exactly this URL, not only a longer one that begins with it."""
    return re.search(re.escape(url) + _URL_ENDS, text) is not None
