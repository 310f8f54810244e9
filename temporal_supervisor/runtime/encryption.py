"""Encryption of the texts of runs: AES-256-GCM with a random nonce (NIST SP 800-38D).

Keys are in a file with a line `name base64` for each. The first one encrypts, all of them decrypt:
a new key is added at the bottom in every process, then moved to the top. SP 800-38D allows some 4
billion encryptions by one key.
"""

import base64
import os
import re
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from temporal_supervisor.supervision.base.store_keys import SEALED
from temporal_supervisor.supervision.base.trust import unshared

_KEY_BYTES = 32
_NONCE_BYTES = 12
_NAME = re.compile(r"[A-Za-z0-9._-]{1,32}")
_HOW = (
    "write a line `NAME KEY` for each key, "
    'as `echo "2026-11 $(openssl rand -base64 32)"` prints one'
)


class Keys:
    """Keys of 32 bytes by name; the first one encrypts.

    `place` binds an encrypted text to the place where it is stored.
    """

    def __init__(self, keys: dict[str, bytes]) -> None:
        self.names = list(keys)
        self._ciphers = {name: AESGCM(key) for name, key in keys.items()}

    def seal(self, data: bytes, place: str = "") -> bytes:
        """Returns the encrypted data."""
        name = self.names[0]
        nonce = os.urandom(_NONCE_BYTES)
        head = SEALED + bytes([len(name)]) + name.encode()
        return head + nonce + self._ciphers[name].encrypt(nonce, data, head + place.encode())

    def open(self, sealed: bytes, place: str = "") -> bytes:
        """Returns the decrypted content.

        Raises LookupError without its key, and ValueError if its data or place was changed.
        """
        start = len(SEALED) + 1  # of the name, behind its length
        name_bytes = sealed[start - 1] if len(sealed) >= start else 0
        end = start + name_bytes
        if not sealed.startswith(SEALED) or len(sealed) < end + _NONCE_BYTES:
            raise ValueError("it is not encrypted, as it should be")

        name = sealed[start:end].decode("ascii", "replace")
        if name not in self._ciphers:
            helps = "add that key to the file of SUPERVISOR_KEYS_FILE"
            raise LookupError(f"it is encrypted with key '{name}': {helps}")
        head = sealed[:end]
        nonce = sealed[end : end + _NONCE_BYTES]
        text = sealed[end + _NONCE_BYTES :]
        try:
            return self._ciphers[name].decrypt(nonce, text, head + place.encode())
        except InvalidTag:
            raise ValueError(f"it is not what was encrypted with key '{name}'") from None


def read_keys(file: Path) -> Keys:
    """Returns the keys in a file.

    Raises ValueError if the file can't be read, or is readable for others.
    """
    unread = f"SUPERVISOR_KEYS_FILE {file} can't be read"
    try:
        unshared(file, file.stat(), os.getuid())
        lines = [line.split() for line in file.read_text(encoding="ascii").splitlines()]
    except UnicodeDecodeError:
        raise ValueError(f"{unread}: it is no text in ASCII") from None
    except OSError as error:
        raise ValueError(f"{unread}: {error.strerror}") from None

    keys: dict[str, bytes] = {}
    for number, words in enumerate(lines, 1):
        if not words or words[0].startswith("#"):
            continue
        # the words are not shown: one of them is a secret
        wrong = f"SUPERVISOR_KEYS_FILE, line {number}, is no key of 32 bytes with its own name"
        try:
            name, text = words
            key = base64.b64decode(text, validate=True)
        except ValueError:
            raise ValueError(f"{wrong}: {_HOW}") from None
        if len(key) != _KEY_BYTES or not _NAME.fullmatch(name) or name in keys:
            raise ValueError(f"{wrong}: {_HOW}")
        keys[name] = key
    if not keys:
        raise ValueError(f"SUPERVISOR_KEYS_FILE {file} holds no key: {_HOW}")
    return Keys(keys)
