"""The credentials of a process, replaced in what an endpoint sends: none is stored or shown."""

import base64
import json
from collections.abc import Iterable, Iterator

_LEAST = 12  # letters: a shorter one may be a word, as the keys of endpoints without any are


class Credentials:
    """The credentials that calls are made with, as they are and in base64."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms = {form for secret in secrets if len(secret) >= _LEAST for form in _forms(secret)}

    def withheld(self, text: str) -> str:
        """Returns a text, or JSON, with "[secret]" in place of each credential."""
        for form in self._forms:
            text = text.replace(form, "[secret]")
        return text


NO_CREDENTIALS = Credentials()


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    for before in range(3):  # base64 of a longer text, in which the secret begins at any of three places
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(bytes(before) + secret.encode()).decode()
            yield whole[-(-before * 4 // 3) : (before + len(secret)) * 4 // 3]  # others depend on the neighbours
