"""The story of an attempt that failed: the calls that it made, how each ended, and its last words."""

from typing import Any

from activities.model.conversation import ConversationStore, Entry
from activities.model.port import Json
from activities.replies.tool_uses import ToolUse, read_tool_uses
from supervision import limits
from supervision.prompt_marks import FINISH_TOOL
from supervision.text import cut, one_line


async def attempt_story(conversations: ConversationStore, head: str) -> str:
    """Returns one line for each tool call of the conversation at `head`, with its outcome, and the last words."""
    chain = await conversations.chain(head)
    uses = [use for use in await read_tool_uses(conversations, chain) if use.name != FINISH_TOOL]
    lines = [_line(use) for use in uses[-limits.ATTEMPT_CALLS_SHOWN :]]
    words = _last_words(chain)
    return "\n".join([*lines, *([f"Its last words: {words}"] if words else [])])


def _line(use: ToolUse) -> str:
    call = one_line(f"{use.name}({use.arguments})", limits.EVIDENCE_BYTES)
    if use.output is None:
        return f"{call}: not run"
    preview = one_line(use.output, limits.EVIDENCE_BYTES)
    return f"{call}: error: {preview}" if use.is_error else f"{call}: {preview}"


def _last_words(chain: list[Entry]) -> str:
    """Returns the last text that the model wrote, or the summary of its conclusion."""
    for entry in reversed(chain):
        for block in reversed(entry.reply.content):
            text = block.get("text") if block.get("type") == "text" else concluded(block)
            if isinstance(text, str) and text.strip():
                return cut(text.strip(), limits.LAST_WORDS_BYTES)
    return ""


def concluded(block: Json) -> object:
    """Returns what a call of `finish` says; None for other blocks."""
    arguments: Any = block.get("input")
    finished = block.get("type") == "tool_use" and block.get("name") == FINISH_TOOL and isinstance(arguments, dict)
    return (arguments.get("summary") or arguments.get("finding")) if finished else None
