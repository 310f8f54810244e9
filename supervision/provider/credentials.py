"""Finding a credential in what an endpoint sends: nothing that holds one is stored or shown."""

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Any

from supervision import limits

_PUBLIC = re.compile(r"sk-ant-(?:[a-z]+\d\d-)?")  # every key of the provider begins so
_WINDOW = limits.SECRET_WINDOW
_STEP = 5
_GRAM = _WINDOW - _STEP + 1  # every run of _WINDOW letters holds a whole gram that begins at a multiple of _STEP


class Credentials:
    """The credentials of a process, as they are, reversed, in hex and in base64.

    A run of `limits.SECRET_WINDOW` letters of one counts as the credential, so parts are found, too. The public
    beginning of the provider's keys does not count, and shorter credentials are replaced in errors only.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._literal = [secret for secret in secrets if secret]
        forms = {form for secret in self._literal for form in _forms(_PUBLIC.sub("", secret, count=1))}
        self._windows = {form[i : i + _WINDOW] for form in forms for i in range(len(form) - _WINDOW + 1)}
        self._grams = {window[i : i + _GRAM] for window in self._windows for i in range(_STEP)}

    def are_in(self, value: Any) -> bool:
        """True if a credential, or a part of one, is anywhere in this JSON value, also across its strings."""
        return bool(self._windows) and self._are_in_text("".join(_strings(value)))

    def withheld(self, text: str) -> str:
        """Returns `text` without credentials; nothing of it when a part or another form of one is in it."""
        for secret in self._literal:
            text = text.replace(secret, "[secret]")
        return "[withheld: it holds the credential]" if self.are_in(text) else text

    def _are_in_text(self, text: str) -> bool:
        for i in range(0, len(text), _STEP):
            if text[i : i + _GRAM] in self._grams:
                near = range(i - _STEP + 1, i + 1)  # no text from before the beginning is as long as a window
                if any(text[start : start + _WINDOW] in self._windows for start in near):
                    return True
        return False


NO_CREDENTIALS = Credentials()


def _forms(secret: str) -> Iterator[str]:
    data = secret.encode("utf-8", "replace")
    yield secret
    yield secret[::-1]
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):  # base64 of a longer text, in which the secret begins at any of three places
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(bytes(before) + data).decode()
            yield whole[-(-before * 4 // 3) : (before + len(data)) * 4 // 3]  # others depend on the neighbours


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [part for pair in reversed(value.items()) for part in reversed(pair)]
        elif isinstance(value, list):
            waiting += reversed(value)
