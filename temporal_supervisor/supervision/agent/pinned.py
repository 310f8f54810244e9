"""The pinned definition of an MCP server's tool."""

import hashlib
import json
from typing import Any

from temporal_supervisor.supervision.contract.base import Model


class Pinned(Model):
    """The definition of a server's tool, as models read it."""

    name: str
    description: str = ""
    input_schema: dict[str, Any]

    @property
    def sha256(self) -> str:
        """The hash of the definition, as sorted-key compact UTF-8 JSON."""
        text = json.dumps(
            self.model_dump(),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        )
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
