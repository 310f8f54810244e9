"""The forms of an MCP server: arguments by a schema, questions to a person, results with files."""

import base64
import contextlib
import hashlib
import json
import re
from typing import Any

import mcp_types as types
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import validator_for
from referencing import Registry

from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.text import clean, one_line

_QUESTION_CHARS = 200  # of a question and of its fields each: a person reads them in a list
_CHOICES, _CHOICE_CHARS = 20, 100
_COMPLAINT_CHARS = 600
_TEXT_CHARS = 400_000  # of one result: the toolbox keeps half of it
_FILES = 20  # of one result


def complaint_about(schema: JsonObject, arguments: Any) -> str | None:
    """Returns the fault of arguments by a schema; None if they fit."""
    if not isinstance(arguments, dict):
        return "they must be an object"
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
        error = best_match(kind(schema, registry=Registry()).iter_errors(arguments))
    except SchemaError as broken:
        return f"the schema of this tool is broken: {one_line(broken.message, _COMPLAINT_CHARS)}"
    if error is None:
        return None
    where, why = ".".join(map(str, error.absolute_path)), one_line(error.message, _COMPLAINT_CHARS)
    return f"{where}: {why}" if where else why


class Elicitation:
    """A server's question to a person: a message, and the schema of the answer's fields."""

    def __init__(self, message: str, schema: JsonObject) -> None:
        self._schema = schema
        self._fields: dict[str, JsonObject] = schema.get("properties", {})
        content = json.dumps([message, schema], sort_keys=True)
        self.key = hashlib.sha256(content.encode()).hexdigest()
        self._defaults: JsonObject = {}
        for name, field in self._fields.items():
            if "default" in field:
                self._defaults[name] = field["default"]
        needed = [name for name in self._fields if name not in self._defaults]
        self._open = needed or [*self._fields]

        wanted = ", ".join(f"{name} ({self._form(name)})" for name in self._fields)
        form = f"Reply as JSON with: {wanted}" if len(self._fields) > 1 else ""
        parts = [one_line(message, _QUESTION_CHARS), one_line(clean(form), _QUESTION_CHARS)]
        self.text = " ".join(parts).strip()
        only: JsonObject = self._fields[self._open[0]] if len(self._open) == 1 else {}
        choices = only.get("enum", [])[:_CHOICES]
        self.choices = [one_line(clean(str(choice)), _CHOICE_CHARS) for choice in choices]

    def _form(self, name: str) -> str:
        usual = f", else {json.dumps(self._defaults[name])}" if name in self._defaults else ""
        return f"{self._fields[name].get('type', 'text')}{usual}"

    def content(self, reply: str) -> JsonObject | None:
        """Returns the object in a reply, completed with defaults; None if it does not fit.

        If one field is open, its value alone is enough.
        """
        try:
            value = json.loads(reply)
        except ValueError:
            value = reply.strip()
        if len(self._open) == 1 and not isinstance(value, dict):
            [name] = self._open
            value = {name: reply.strip() if self._fields[name].get("type") == "string" else value}
        value = {**self._defaults, **value} if self._fields and isinstance(value, dict) else {}
        return value if complaint_about(self._schema, value) is None else None


def result_json(result: types.CallToolResult, tool: str, secrets: list[str]) -> JsonObject:
    """Returns `text`, `files` and `is_error` of a result; links are not followed.

    The secrets are removed from the files; from the text they are removed later.
    """
    files: list[JsonObject] = []

    def block_text(block: types.ContentBlock) -> str:
        if isinstance(block, types.TextContent):
            return block.text
        if isinstance(block, types.ImageContent | types.AudioContent):
            return keep_file(block.data, block.mime_type)
        if isinstance(block, types.ResourceLink):
            return f"[link: {block.name}, {block.uri}]"
        resource = block.resource
        if isinstance(resource, types.TextResourceContents):
            return f"{resource.uri}:\n{resource.text}"
        return keep_file(resource.blob, resource.mime_type, str(resource.uri).rpartition("/")[2])

    def keep_file(data: str, media_type: str | None, name: str = "") -> str:
        raw = base64.b64decode(data, validate=True)
        for secret in secrets:
            raw = raw.replace(secret.encode(), b"[secret]")
        kind = media_type or "application/octet-stream"
        ending = re.sub(r"[^a-z0-9]", "", kind.rpartition("/")[2].partition("+")[0])
        name = name or f"{tool}-{len(files) + 1}.{ending}"
        files.append({"name": name, "media_type": kind, "data": base64.b64encode(raw).decode()})
        return f"[{kind}, {len(raw)} bytes, kept as the file {name}]"

    texts = [block_text(block) for block in result.content]
    structure = result.structured_content
    if structure is not None and not _repeats(structure, texts):
        texts.append(json.dumps(structure, ensure_ascii=False))
    return {
        "text": "\n\n".join(texts)[:_TEXT_CHARS],
        "files": files[:_FILES],
        "is_error": result.is_error,
    }


def _repeats(structure: Any, texts: list[str]) -> bool:
    """True if texts repeat the structure: servers send both, for clients that support only one."""
    if isinstance(structure, dict) and len(structure) == 1 and texts:
        [(name, value)] = structure.items()
        if name == "result" or (isinstance(value, str) and value.strip() == texts[0].strip()):
            return True  # so SDKs wrap what is no object, and servers a text
    with contextlib.suppress(ValueError, RecursionError):
        return len(texts) == 1 and bool(json.loads(texts[0]) == structure)
    return False
