"""An MCP server made with the SDK: `python benign.py LEDGER` keeps notes, and gives back what the tests look for."""

import base64
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import anyio
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import ImageContent, TextContent
from pydantic import BaseModel, Field

LEDGER = Path(sys.argv[1])
server = MCPServer("benign")


class Where(BaseModel):
    shelf: int
    row: Annotated[int, Field(json_schema_extra={"default": 1})]  # for clients: the server has no default


def which_shelf() -> Elicit[Where]:
    return Elicit("On which shelf?", Where)


@server.tool()
def price(article: str) -> str:
    """Returns the price of an article."""
    return f"{article} costs 12 euros"


@server.tool()
async def note(text: str, context: Context[Any, Any], seconds: float = 0.0) -> str:
    """Writes a note into the ledger."""
    key = (context.request_context.meta or {}).get("temporal-supervisor/idempotency-key", "")
    with LEDGER.open("a") as file:
        file.write(json.dumps({"text": text, "key": key}) + "\n")
    await anyio.sleep(seconds)
    return "noted"


@server.tool()
async def slow(context: Context[Any, Any]) -> str:
    """Takes its time, and says how far it is."""
    for step in range(4):
        await context.report_progress(step, 4, f"step {step}")
        await anyio.sleep(0.6)
    return "done"


@server.tool(structured_output=False)
def leak() -> list[TextContent | ImageContent]:
    """Returns the environment, in several forms."""
    found = json.dumps(dict(os.environ))
    picture = base64.b64encode(b"PNG" + os.environ.get("SHOP_TOKEN", "").encode()).decode()
    return [
        TextContent(type="text", text=found),
        TextContent(type="text", text=base64.b64encode(found.encode()).decode()),
        ImageContent(type="image", data=picture, mime_type="image/png"),
    ]


@server.tool()
def stock(article: str) -> dict[str, int]:
    """Returns how many there are, as structure."""
    return {article: 3}


@server.tool()
def fails() -> str:
    """Fails, with the secret in its message."""
    raise ToolError(f"no access with {os.environ.get('SHOP_TOKEN')}")


@server.tool()
def put(article: str, where: Annotated[Where, Resolve(which_shelf)]) -> str:
    """Puts an article on a shelf, after it has asked which."""
    with LEDGER.with_suffix(".shelves").open("a") as file:
        file.write(f"{article} {where.shelf}\n")
    return f"{article} is on shelf {where.shelf}, row {where.row}"


@server.tool()
async def ask(where: Annotated[ElicitationResult[Where], Resolve(which_shelf)]) -> str:
    """Asks, and says how that went."""
    return f"the question was {'answered' if isinstance(where, AcceptedElicitation) else 'declined'}"


if __name__ == "__main__":
    server.run()
