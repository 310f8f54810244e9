"""Replies as a fault or the token limit changes them."""

import json
import secrets
from typing import Any

from standin.brain import Reply, text_block
from standin.faults import Fault
from standin.memory import tokens
from standin.request import Json

_REFUSED = {"type": "refusal", "category": None, "explanation": "scripted"}


def scripted(fault: Fault) -> Reply | None:
    """The reply that a fault dictates, None when it dictates none."""
    if fault.reply is not None:
        return _verbatim(fault.reply)
    if fault.reply_text is not None:
        return Reply([text_block(fault.reply_text)])
    if fault.reply_json is not None:
        return Reply([text_block(json.dumps(fault.reply_json, ensure_ascii=False))])
    return None


def altered(reply: Reply, fault: Fault) -> Reply:
    """The reply with the fault's stop reason: a refusal says nothing, `max_tokens` only the first half."""
    if fault.stop_reason is None:
        return reply
    if fault.stop_reason == "refusal":
        return Reply([], "refusal", fault.stop_details or _REFUSED)
    if fault.stop_reason == "max_tokens":
        return limited(reply, max(1, output_tokens(reply) // 2))
    return Reply(reply.content, fault.stop_reason, fault.stop_details, reply.usage)


def limited(reply: Reply, max_tokens: int) -> Reply:
    """The reply cut to `max_tokens`; a cut tool call keeps the beginning of its JSON, as on the wire."""
    if output_tokens(reply) <= max_tokens:
        return reply
    room, kept = max_tokens * 4, list[Json]()
    for block in reply.content:
        text = _text_of(block)
        if len(text) <= room:
            kept.append(block)
            room -= len(text)
            continue
        if room > 0 and block["type"] == "text":
            kept.append({**block, "text": text[:room]})
        elif room > 0 and block["type"] == "tool_use":
            kept.append({**block, "input": {}, "_cut_json": text[:room]})
        break
    return Reply(kept, "max_tokens", usage=reply.usage)


def output_tokens(reply: Reply) -> int:
    """About how many tokens the content has."""
    return sum(tokens(len(_text_of(block))) for block in reply.content)


def _text_of(block: Json) -> str:
    if block["type"] == "tool_use":
        return str(block.get("_cut_json") or json.dumps(block["input"], ensure_ascii=False))
    return str(block.get("text") or block.get("thinking") or "")


def _verbatim(reply: Json | str | Any) -> Reply:
    if isinstance(reply, str):
        return Reply([text_block(reply)])
    if "reply_text" in reply:
        return Reply([text_block(str(reply["reply_text"]))])
    if "reply_json" in reply:
        return Reply([text_block(json.dumps(reply["reply_json"], ensure_ascii=False))])
    content = [_with_id(block) for block in reply.get("content", [])]
    calls = any(block.get("type") == "tool_use" for block in content)
    stop = reply.get("stop_reason", "tool_use" if calls else "end_turn")
    return Reply(content, stop, reply.get("stop_details"), reply.get("usage"))


def _with_id(block: Json) -> Json:
    needs = block.get("type") == "tool_use" and not block.get("id")
    return {**block, "id": f"toolu_{secrets.token_hex(12)}", "input": block.get("input", {})} if needs else block
