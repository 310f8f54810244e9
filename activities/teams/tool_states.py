"""States of tools and roles: what a run's recipes say of them."""

from typing import Any

from activities.files.values import VERSION
from activities.tools.documents import SearchDocuments
from activities.tools.tool import Tool
from temporal_supervisor.supervision.contract.team import Role
from temporal_supervisor.supervision.reuse.recipes import (
    ReadsFiles,
    RoleState,
    Stays,
    ToolState,
    sha256_of,
)


async def tool_state(tool: Tool[Any]) -> ToolState:
    """Returns the state of a tool as it is now; without readable data it counts as a live one."""
    try:
        version = await tool.version() if tool.version else ""
    except (ValueError, OSError):
        return ToolState(sha256=tool.name)
    content = {
        "name": tool.name,
        "description": tool.description,
        "schema": tool.provided or tool.schema(),
        "rights": [tool.reads, tool.returns, tool.effects, tool.approve, tool.targets, tool.server],
        "version": version,
        "reading": VERSION if tool.catalogue else 0,
    }
    return ToolState(sha256=sha256_of(content), stays=_stays(tool), reads=_reads(tool))


def _stays(tool: Tool[Any]) -> Stays:
    is_live = tool.outward or tool.pinned is not None or tool.provided is not None
    if tool.effects != "read" or is_live:
        return "never"
    if tool.own:
        return tool.stays or "never"
    return "always"


def _reads(tool: Tool[Any]) -> ReadsFiles:
    if tool.own:
        return "all" if tool.reads == "private" else "none"
    if tool.catalogue is None or tool.evidence == "listing":
        return "none"
    return "all" if tool.arguments is SearchDocuments else "named"


def role_state(role: Role, worker_models: list[str], tools: dict[str, ToolState]) -> RoleState:
    """Returns the state of a role; tools that are not known count as live ones."""
    return RoleState(
        prompt=role.system_prompt.strip(),
        grounding=role.grounding,
        output_schema=role.output_schema,
        asks=role.ask,
        efforts=role.effort.model_dump(mode="json") if role.effort else None,
        models=role.model or worker_models,
        capabilities=role.capabilities,
        tools={name: tools.get(name) or ToolState(sha256=name) for name in role.tools},
        is_agent=role.team is None and role.person is None,
    )
