"""The brain of the bench's model: it costs next to nothing and does what markers in the texts say.

It answers the project's calls, and those of the floor:

    goal      [[bench n=10 t=2 run=r1 tool=lookup]]   n worker agents, t tool turns of each, and
                                                      the tool that they call; with then=7
                                                      seven more, each builds on all ten
    subtask   [[task i=3 n=10 t=2 run=r1 ...]]        written into the plan's descriptions
    finding   [[done i=3 n=10 run=r1]]                written into the worker agents' last messages
"""

import re
from collections.abc import Iterator

from temporal_supervisor.standin.extract.schema_fill import Filler
from temporal_supervisor.standin.server.api_reply import (
    ApiReply,
    json_reply,
    text_reply,
    tool_block,
)
from temporal_supervisor.standin.server.api_request import ApiRequest
from temporal_supervisor.supervision.base.json_object import JsonObject

Fields = dict[str, str]

_MARKER = re.compile(r"\[\[(bench|task|done)\s+([^\[\]]*)\]\]")
_USAGE = {"input_tokens": 100, "output_tokens": 50}


def think(request: ApiRequest) -> ApiReply:
    """Returns what the markers say."""
    reply = _reply(request)
    return ApiReply(reply.content, reply.stop_reason, usage=_USAGE)


def _reply(request: ApiRequest) -> ApiReply:
    text = request.prompt
    bench = next(markers(text, "bench"), None)
    if bench and request.schema:
        filler = Filler(request.schema)
        made = {"answer": _answer(text, bench)} if "answer" in filler.properties() else _plan(bench)
        return json_reply(filler.fill(made))
    if bench:  # the floor's answer has no schema
        return text_reply(_answer(text, bench))
    task = next(markers(text, "task"))
    if request.turns < int(task["t"]):
        query = {"query": f"q{task['i']}.{request.turns}"}
        return ApiReply([tool_block(task["tool"], query)], "tool_use")
    return text_reply(
        f"Answer of part {task['i']}. [[done i={task['i']} n={task['n']} run={task['run']}]]"
    )


def markers(text: str, kind: str) -> Iterator[Fields]:
    """Yields the fields of all markers of that kind, in order."""
    for marker, fields in _MARKER.findall(text):
        if marker == kind:
            yield dict(field.split("=", 1) for field in fields.split())


def _plan(bench: Fields) -> JsonObject:
    """A plan in the project's words and in the floor's: a schema takes what it has."""
    fields = " ".join(f"{key}={value}" for key, value in bench.items())
    first = [f"t{i}" for i in range(1, int(bench["n"]) + 1)]
    subtasks = []
    for i in range(1, _parts(bench) + 1):
        text = f"Do part {i} of the job. [[task i={i} {fields}]]"
        after = first if i > len(first) else []
        subtasks.append(
            {"id": f"t{i}", "description": text, "objective": text, "depends_on": after}
        )
    return {"subtasks": subtasks, "tasks": subtasks}


def _parts(bench: Fields) -> int:
    return int(bench["n"]) + int(bench.get("then", 0))


def _answer(text: str, bench: Fields) -> str:
    done = {fields["i"] for fields in markers(text, "done")}
    return f"Synthesis of {len(done)}/{_parts(bench)}: " + " ".join(
        f"part{i}" for i in sorted(done, key=int)
    )
