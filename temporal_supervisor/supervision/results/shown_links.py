"""Images and links in texts of models, which could send data to another host in their URLs.

An image is requested as soon as it is shown, so none is kept. A link needs a click: it is kept if
exactly its URL appeared in a text that was read. Everything else becomes text with its host. No
Markdown is parsed: each place where an image, a link or a tag could begin is either known or broken
by a space.
"""

import re
from collections.abc import Set
from functools import partial
from urllib.parse import urlsplit

from pydantic import JsonValue

_URL = r"(?:[a-z][a-z0-9+.-]{1,20}://|www\.)"
_DESTINATION = r"[^()\s<>]{0,2000}(?:\([^()\s<>]{0,200}\)[^()\s<>]{0,2000})?"
_TITLE = r"(?:\s\"[^\"\n]{0,300}\")?"
_MARKUP = re.compile(
    rf"!\[(?P<alt>[^\[\]]{{0,300}})\]\(<?(?P<image>{_DESTINATION})>?{_TITLE}\)"
    rf"|\[(?P<words>[^\[\]]{{0,300}})\]\(<?(?P<link>{_DESTINATION})>?{_TITLE}\)"
    rf"|<(?P<pointed>{_URL}[^\s<>]{{1,2000}})>"
    rf"|(?<![a-z0-9])(?P<bare>{_URL}[^\s<]{{1,2000}})"
    r"|(?P<plain_tag></?(?!(?:style|script|svg|math)\b)[a-z][a-z0-9-]{0,20}\s?/?>)"
    r"|(?P<tag><)(?=[a-z/!?])"
    r"|(?P<image_begun>!)(?=\[)"
    r"|(?P<link_begun>\])(?=\()"
    # What follows is a destination by its signs, or a word that is alone or has a title behind it.
    r"|(?P<label>\])(?=:\s{0,9}(?:\S{0,30}[/\\&:?]|\S{1,2000}[ \t]{0,9}(?:$|[\"'(])))",
    re.IGNORECASE | re.MULTILINE,
)
_IMAGE = re.compile(
    r"!\[([^\[\]]{0,300})\]\(([^()\s]{0,2000})(?:\s[^()\n]{0,300})?\)|!(?=\[)|<(?=img\b)",
    re.IGNORECASE,
)
_STANDING = re.compile(rf"(?<![a-z0-9]){_URL}[^\s<>\"'`|\\^{{}}]{{1,2000}}", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{1,20}:", re.IGNORECASE)
_NO_NAME = re.compile(r"[^\w.-]")
_AFTER = ".,;:!?*_~'\"`|"
_CLOSING = {")": "(", "]": "["}


def addresses_in(*texts: str) -> set[str]:
    """Returns the URLs in texts, in the form in which `without_links` compares them."""
    return {_compared(_parted(match[0])[0]) for text in texts for match in _STANDING.finditer(text)}


def without_links(text: str, known: Set[str]) -> str:
    """Returns the text with images, and links whose URL is not `known`, as text with hosts."""
    return _MARKUP.sub(partial(_as_text, known), text)


def without_images(value: JsonValue) -> JsonValue:
    """Returns a JSON value with the images in its texts as text; URLs in it are data."""
    if isinstance(value, str):
        return _IMAGE.sub(_image, value)
    if isinstance(value, list):
        return [without_images(part) for part in value]
    if isinstance(value, dict):
        return {name: without_images(part) for name, part in value.items()}
    return value


def without_own_links(text: str) -> str:
    """Returns a text by people or code without its images; its links are kept."""
    return without_links(text, addresses_in(text))


def _as_text(known: Set[str], match: re.Match[str]) -> str:
    kind, written = str(match.lastgroup), match[0]
    if kind == "image":
        return _named("image", _host(match["image"]))
    if kind == "link":
        return _link(known, match)
    if kind == "pointed":
        return written if _compared(match["pointed"]) in known else _host(match["pointed"])
    if kind == "bare":
        url, rest = _parted(written)
        return written if _compared(url) in known else f"{_host(url)}{rest}"
    if kind == "plain_tag":
        return written
    return f"{written} "  # what could begin here no longer does


def _link(known: Set[str], match: re.Match[str]) -> str:
    words, url = match["words"], match["link"]
    if _compared(url) in known or url.startswith("#"):
        return match[0]
    words = without_links(words, known)
    if host := _host(url):
        return words if words.strip() == host else f"{words} ({host})"
    return words if _SCHEME.match(url) else f"[{words}] ({url})"


def _image(match: re.Match[str]) -> str:
    return f"{match[0]} " if match[2] is None else _named("image", _host(match[2]))


def _named(what: str, host: str) -> str:
    return f"[{what}: {host}]" if host else f"[{what}]"


def _host(url: str) -> str:
    """Returns the host of a URL in a form that is not shown as a link; empty if it has none."""
    is_bare = "//" not in url and url.lower().startswith("www.")
    try:
        host = urlsplit(f"//{url}" if is_bare else url).hostname or ""
    except ValueError:
        return ""
    return _NO_NAME.sub("", host).removeprefix("www.")


def _parted(written: str) -> tuple[str, str]:
    """Returns the URL at the beginning of a word, and the punctuation after it."""
    end = len(written)
    while end and (written[end - 1] in _AFTER or _is_unopened(written[:end])):
        end -= 1
    return written[:end], written[end:]


def _is_unopened(written: str) -> bool:
    opening = _CLOSING.get(written[-1])
    return opening is not None and written.count(opening) < written.count(written[-1])


def _compared(url: str) -> str:
    # Upper and lower case differ: in a path that a model may choose from, each letter would carry a
    # bit.
    return url.rstrip("/")
