"""The command `tool`: a tool tried without a run, as a worker agent of its team would call it."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from console.command import BAD_INPUT, DONE, FAILED, CommandFailed
from console.commands.mcp_commands import team_files
from console.hints import hint
from console.run.request_options import read_text_file
from console.terminal import print_err, print_json, print_out
from runtime.settings import Settings
from supervision.base import limits
from supervision.base.text import did_you_mean
from supervision.contract.team import Role


async def try_tool(settings: Settings, name: str, arguments: str | None, attach: list[Path]) -> int:
    """Runs the tool `TEAM/TOOL` in this process and prints its output; without arguments its schema."""
    # these load the tools' libraries: 0.3 s for one command only
    from activities.tools.tool import ToolContext

    team_name, _, tool_name = name.partition("/")
    if not tool_name:
        example = hint("tool", "default/calculate")
        raise CommandFailed(BAD_INPUT, f"'{name}' names no tool: write TEAM/TOOL, as in {example}")
    files = team_files(settings)
    toolbox = (await files.load(team_name)).toolbox
    tool = toolbox.get(tool_name)
    if tool is None:
        known = toolbox.names()
        guess = f"{did_you_mean(tool_name, known)}; it has: {', '.join(known)}"
        raise CommandFailed(BAD_INPUT, f"team '{team_name}' has no tool '{tool_name}'{guess}")
    if arguments is None:
        print_json({"name": tool.name, "description": tool.description, "input_schema": tool.schema()})
        return DONE
    context = ToolContext(
        attachments={path.name: _reader(path) for path in attach},
        idempotency_key=hashlib.sha256(arguments.encode()).hexdigest(),
        run_id="tried-by-hand",
    )
    role = Role(name="operator", description="Tries a tool.", system_prompt="-", tools=[tool.name])
    ran = await toolbox.run(role, tool.name, _parsed(arguments), context)
    await files.close()
    if ran.is_error:
        print_err(f"the tool failed: {ran.text}")
        return FAILED
    print_out(ran.text)
    if ran.sources:
        print_err(f"sources: {', '.join(ran.sources)}")
    for artifact in ran.artifacts:
        print_err(f"artifact {artifact.name} ({artifact.media_type}, {len(artifact.data):,} bytes)")
    if len(ran.text) > limits.TOOL_OUTPUT_CHARS:
        print_err(f"a worker agent sees the first {limits.TOOL_OUTPUT_CHARS:,} characters, and more by read_output")
    return DONE


def _parsed(arguments: str) -> dict[str, Any]:
    try:
        value = json.loads(arguments)
    except ValueError as error:
        raise CommandFailed(BAD_INPUT, f"the arguments are no JSON: {error}") from error
    if not isinstance(value, dict):
        raise CommandFailed(BAD_INPUT, 'the arguments must be an object such as {"title": "emma"}')
    return value


def _reader(path: Path) -> Callable[[], Awaitable[str]]:
    text = read_text_file(path).decode("utf-8-sig")

    async def read() -> str:
        return text

    return read
