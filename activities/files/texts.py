"""Text files in any encoding, read as UTF-8."""

import codecs
from functools import partial
from pathlib import Path

CHUNK = 1 << 20
_CONTROLS = bytes({*range(9), *range(14, 32)} - {27})
_TEXT_SHARE = 0.95  # of a text's first bytes at least are no control characters


class Unreadable(Exception):
    """A file that can't be read; the message gives its owner the reason."""


def as_utf8(path: Path, out: Path) -> Path:
    """Returns the file itself if it is UTF-8, else a copy in UTF-8. Raises Unreadable if binary."""
    with path.open("rb") as file:
        start = file.read(4096)
    encoding = _encoding(path, start)
    if encoding == "utf-8" and not start.startswith(codecs.BOM_UTF8) and b"\0" not in start:
        return path
    copy = out / "utf8.csv"
    with (
        path.open("r", encoding=encoding, errors="replace", newline="") as source,
        copy.open("w", encoding="utf-8", newline="") as target,
    ):
        while chunk := source.read(CHUNK):
            target.write(chunk.replace("\0", ""))
    return copy


def _encoding(path: Path, start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if start.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if len(start.translate(None, _CONTROLS)) < len(start) * _TEXT_SHARE:
        raise Unreadable("it is no text: it holds binary data")
    with path.open("rb") as file:
        try:
            for _ in codecs.iterdecode(iter(partial(file.read, CHUNK), b""), "utf-8"):
                pass
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"
