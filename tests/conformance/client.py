"""The client of MCP tools as the conformance suite starts it: pins what a server offers, and calls each tool.

Usage: `python tests/conformance/client.py URL`. For some tools the suite gives the arguments, in the environment.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))

from activities.tools.mcp.mcp_servers import McpConnection, McpTools
from activities.tools.mcp.pins import write_pins
from activities.tools.secrets import Secrets
from activities.tools.tool import ToolContext, ToolMisuse
from temporal_supervisor.supervision.contract.team import McpServer, McpTool, server_tool


async def main(url: str) -> None:
    """Calls every tool of the server as a team does that lists it."""
    suite = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as name:
        folder, server = Path(name), McpServer(url=url)
        connection = McpConnection(folder, server, Secrets(), 1024)
        offered = {tool.name: tool for tool in await connection.tools()}
        write_pins(folder, {"tested": offered})
        given: dict[str, list[dict[str, Any]]] = {
            "add_numbers": [{"a": 2, "b": 3}],
            "json_schema_echo": [{"schema": tool.input_schema} for tool in offered.values()][:1],
            "lookup_user": [{"id": "7"}],
            "valid_tool": [{"region": "north"}],
        }
        for call in suite.get("toolCalls", []):
            given.setdefault(call["name"], []).append(call["arguments"])
        listed = {tool: McpTool(effects="read", approve="always") for tool in offered}
        connection = McpConnection(folder, server.model_copy(update={"tools": listed}), Secrets(), 1024)
        source = McpTools("tested", connection)
        tools = {tool.name: tool for tool in await source.open()}
        for name in offered:
            tool = tools[server_tool("tested", name)]
            for arguments in given.get(name, [{}]):
                try:
                    output = await tool.run(arguments, ToolContext(pinned=tool.pinned))
                    if output.asks:  # the form has defaults for all fields but those of this reply
                        context = ToolContext(pinned=tool.pinned, replies={output.asks: '{"age": 30}'})
                        output = await tool.run(arguments, context)
                    print(f"{name}: {output.text}")
                except ToolMisuse as error:
                    print(f"{name}: {error}")


asyncio.run(main(sys.argv[-1]))
