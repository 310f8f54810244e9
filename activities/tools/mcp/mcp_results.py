"""What comes back from a call of an MCP tool, as text and files."""

import base64
import contextlib
import json
import re
from typing import Any

import mcp_types as types

_TEXT_CHARS = 400_000  # of one result: the toolbox keeps half of it
_FILES = 20  # of one result

Json = dict[str, Any]


class Shown:
    """The result of one call as it is written down. Its files are without the secrets; its text loses them later."""

    def __init__(self, tool: str, secrets: list[str]) -> None:
        self._tool = tool
        self._secrets = secrets
        self._files: list[Json] = []

    def of(self, result: types.CallToolResult) -> Json:
        """Returns `text`, `files` and `is_error`. Links are shown, not followed."""
        texts = [self._text(block) for block in result.content]
        if (structure := result.structured_content) is not None and not _repeats(structure, texts):
            texts.append(json.dumps(structure, ensure_ascii=False))
        return {"text": "\n\n".join(texts)[:_TEXT_CHARS], "files": self._files[:_FILES], "is_error": result.is_error}

    def _text(self, block: types.ContentBlock) -> str:
        if isinstance(block, types.TextContent):
            return block.text
        if isinstance(block, types.ImageContent | types.AudioContent):
            return self._kept(block.data, block.mime_type)
        if isinstance(block, types.ResourceLink):
            return f"[link: {block.name}, {block.uri}]"
        resource = block.resource
        if isinstance(resource, types.TextResourceContents):
            return f"{resource.uri}:\n{resource.text}"
        return self._kept(resource.blob, resource.mime_type, str(resource.uri).rpartition("/")[2])

    def _kept(self, data: str, media_type: str | None, name: str = "") -> str:
        raw = base64.b64decode(data, validate=True)
        for secret in self._secrets:
            raw = raw.replace(secret.encode(), b"[secret]")
        kind = media_type or "application/octet-stream"
        ending = re.sub(r"[^a-z0-9]", "", kind.rpartition("/")[2].partition("+")[0])
        name = name or f"{self._tool}-{len(self._files) + 1}.{ending}"
        self._files.append({"name": name, "media_type": kind, "data": base64.b64encode(raw).decode()})
        return f"[{kind}, {len(raw)} bytes, kept as the file {name}]"


def _repeats(structure: Any, texts: list[str]) -> bool:
    """True if texts say what the structure says: servers give both, for clients that know only one."""
    if isinstance(structure, dict) and len(structure) == 1 and texts:
        [(name, value)] = structure.items()
        if name == "result" or (isinstance(value, str) and value.strip() == texts[0].strip()):
            return True  # so SDKs wrap what is no object
    with contextlib.suppress(ValueError, RecursionError):
        return len(texts) == 1 and bool(json.loads(texts[0]) == structure)
    return False
