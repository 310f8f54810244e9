"""The brain of the benchmarks goes by what the project shows it: a worker agent's prompt has its subtask, no goal."""

from activities.prompts.agent_prompts import worker_request
from benchmarks.bench_brain import markers, think
from standin.server.api_request import parse
from supervision.contract.plan import Subtask

TASK = "Do part 2 of the job. [[task i=2 n=3 t=1 run=r1 tool=lookup]]"


def test_a_worker_agent_calls_its_tools_and_then_finds() -> None:
    prompt = worker_request(Subtask(id="t2", description=TASK), [], [], {})
    messages: list[object] = [{"role": "user", "content": prompt}]
    body: dict[str, object] = {"model": "m", "max_tokens": 100, "messages": messages}
    (call,) = think(parse(body)).content
    assert (call["name"], call["input"]) == ("lookup", {"query": "q2.0"})
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "nothing"}
    messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    (found,) = think(parse(body)).content
    assert list(markers(found["text"], "done")) == [{"i": "2", "n": "3", "run": "r1"}]
