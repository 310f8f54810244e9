"""Replies as a fault dictates or changes them."""

from dataclasses import replace

from standin.server.api_reply import ApiReply, json_reply, limited, output_tokens, text_reply, tool_block
from standin.server.api_request import Json
from standin.server.faults import Fault

_REFUSED = {"type": "refusal", "category": None, "explanation": "scripted"}


def scripted(fault: Fault) -> ApiReply | None:
    """Returns the reply that a fault dictates, None if it dictates none."""
    if isinstance(fault.reply, str):
        return text_reply(fault.reply)
    if fault.reply is not None:
        return _verbatim(fault.reply)
    if fault.reply_text is not None:
        return text_reply(fault.reply_text)
    return json_reply(fault.reply_json) if fault.reply_json is not None else None


def altered(reply: ApiReply, fault: Fault) -> ApiReply:
    """Returns the reply with the fault's stop reason: a refusal is empty, `max_tokens` keeps the first half."""
    if fault.stop_reason is None:
        return reply
    if fault.stop_reason == "refusal":
        return ApiReply([], "refusal", fault.stop_details or _REFUSED)
    if fault.stop_reason == "max_tokens":
        return limited(reply, max(1, output_tokens(reply) // 2))
    return replace(reply, stop_reason=fault.stop_reason, stop_details=fault.stop_details)


def _verbatim(reply: Json) -> ApiReply:
    if "reply_text" in reply:
        return text_reply(str(reply["reply_text"]))
    if "reply_json" in reply:
        return json_reply(reply["reply_json"])
    content = [_with_id(block) for block in reply.get("content", [])]
    calls = any(block.get("type") == "tool_use" for block in content)
    stop = reply.get("stop_reason", "tool_use" if calls else "end_turn")
    return ApiReply(content, stop, reply.get("stop_details"), reply.get("usage"))


def _with_id(block: Json) -> Json:
    needs = block.get("type") == "tool_use" and not block.get("id")
    return {**tool_block(block["name"], block.get("input", {})), **block} if needs else block
