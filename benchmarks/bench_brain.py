"""The brain of the bench's model: it costs next to nothing and does what markers in the texts say.

`python benchmarks/bench_brain.py --port 7480` serves it. It knows only what the project sends (plan and answer as
structured outputs):

    goal      [[bench n=10 t=2 run=r1 tool=lookup]]    n worker agents, t tool turns each, the tool they call;
              roles=5: the plan defines five roles for them; then=7: seven more, each builds on all ten
    subtask   [[task i=3 n=10 t=2 run=r1 tool=...]]    written into the plan's descriptions
    finding   [[done i=3 n=10 run=r1]]                 written into the worker agents' last messages
"""

import argparse
import os
import re
from collections.abc import Iterator

from standin.extract.schema_fill import Filler
from standin.server.api_reply import ApiReply, json_reply, text_block, tool_block
from standin.server.api_request import ApiRequest, Json
from standin.server.app import TOKEN_VARIABLE, BrainServer
from standin.server.exchange import CallLog
from standin.server.faults import FaultScript
from standin.server.serving import listen, run

Fields = dict[str, str]

_MARKER = re.compile(r"\[\[(bench|task|done)\s+([^\[\]]*)\]\]")
_USAGE = {"input_tokens": 100, "output_tokens": 50}


def think(request: ApiRequest) -> ApiReply:
    """Returns what the markers say."""
    reply = _reply(request)
    return ApiReply(reply.content, reply.stop_reason, usage=_USAGE)


def _reply(request: ApiRequest) -> ApiReply:
    text = request.prompt
    if request.schema is not None:
        bench = next(markers(text, "bench"))
        filler = Filler(request.schema)
        wanted = _plan(bench) if "subtasks" in filler.properties() else {"answer": _answer(text, bench)}
        return json_reply(filler.fill(wanted))
    task = next(markers(text, "task"))
    if request.turns < int(task["t"]):
        query = {"query": f"q{task['i']}.{request.turns}"}
        return ApiReply([tool_block(task.get("tool", "lookup"), query)], "tool_use")
    done = f"Answer of part {task['i']}. [[done i={task['i']} n={task['n']} run={task['run']}]]"
    return ApiReply([text_block(done)])


def markers(text: str, kind: str) -> Iterator[Fields]:
    """Yields the fields of all markers of that kind, in order."""
    for marker, fields in _MARKER.findall(text):
        if marker == kind:
            yield dict(field.split("=", 1) for field in fields.split())


def _plan(bench: Fields) -> Json:
    fields = " ".join(f"{key}={value}" for key, value in bench.items())
    new_roles = [_new_role(number, bench.get("tool", "lookup")) for number in range(int(bench.get("roles", 0)))]
    subtasks: list[Json] = []
    first = [f"t{i}" for i in range(1, int(bench["n"]) + 1)]
    for i in range(1, _parts(bench) + 1):
        subtask: Json = {"id": f"t{i}", "description": f"Do part {i} of the job. [[task i={i} {fields}]]"}
        if i > len(first):
            subtask["depends_on"] = first
        if new_roles:
            subtask["new_role"] = new_roles[i % len(new_roles)]["name"]
        subtasks.append(subtask)
    return {"subtasks": subtasks, "new_roles": new_roles}


def _parts(bench: Fields) -> int:
    return int(bench["n"]) + int(bench.get("then", 0))


def _new_role(number: int, tool: str) -> Json:
    words = {"description": "Looks things up.", "system_prompt": "You look things up and report what you found."}
    return {"name": f"own-{number}", **words, "tools": [tool]}


def _answer(text: str, bench: Fields) -> str:
    done = {fields["i"] for fields in markers(text, "done")}
    return f"Synthesis of {len(done)}/{_parts(bench)}: " + " ".join(f"part{i}" for i in sorted(done, key=int))


def main() -> None:
    """Serves on loopback until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, required=True)
    listener, url = listen(port=parser.parse_args().port)
    run(BrainServer(think, CallLog(), FaultScript(), os.environ.get(TOKEN_VARIABLE, "")), listener, url)


if __name__ == "__main__":
    main()
