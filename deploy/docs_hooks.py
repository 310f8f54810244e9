"""Changes that `make docs` makes in the pages: links to files beside docs/ become their names."""

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]\n]+)\]\(((?:\.\./)+[^)\s#]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Returns the text of a page with links that stay inside of the site."""
    folder = posixpath.dirname(page.file.src_uri)

    def named(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        if target.startswith("docs/"):
            return link[0]
        return (
            f"`{target}`"
            if link[1].strip("`") in (target, posixpath.basename(target))
            else f"{link[1]} (`{target}`)"
        )

    return _LINK.sub(named, markdown)
