"""What a finding carries of the sources and artifacts of its tool calls."""

from supervision.agent.grounds import AGENT_ARTIFACTS, AGENT_SOURCES, AGENT_SOURCES_BYTES, Grounds
from supervision.base import limits
from supervision.contract.finding import ArtifactRef


def test_sources_are_kept_once_and_in_their_order() -> None:
    grounds = Grounds()
    grounds.add(["a", "b", "a"], [], "t1")
    grounds.add(["b", "c"], [ArtifactRef(name="n", ref="r")], "t1")
    assert grounds.sources == ["a", "b", "c"]
    assert [artifact.subtask_id for artifact in grounds.artifacts] == ["t1"]
    assert grounds.limitations() == []


def test_very_many_sources_and_artifacts_are_counted_in_a_limitation() -> None:
    grounds = Grounds()
    for call in range(112):
        sources = [f"{call}.{number}".ljust(300, "é") for number in range(20)]
        grounds.add(sources, [ArtifactRef(name="n", ref=f"r{call}")], "t1")
    assert len(grounds.model_dump_json()) < limits.PAYLOAD_AIM_BYTES
    assert len(grounds.sources) + grounds.more_sources == 112 * 20
    assert grounds.limitations() == [
        f"{grounds.more_sources} more sources stand only in the tool outputs",
        f"{112 - AGENT_ARTIFACTS} more artifacts stand only in the tool outputs",
    ]


def test_as_many_sources_are_kept_as_there_is_room_for() -> None:
    grounds = Grounds()
    grounds.add([str(number) for number in range(AGENT_SOURCES + 2)], [], "t1")
    assert (len(grounds.sources), grounds.more_sources) == (AGENT_SOURCES, 2)


def test_sources_are_kept_up_to_their_bytes() -> None:
    grounds = Grounds()
    full = AGENT_SOURCES_BYTES // limits.SOURCE_BYTES
    rest = AGENT_SOURCES_BYTES - full * limits.SOURCE_BYTES
    long = [f"{number:03}".ljust(limits.SOURCE_BYTES, "x") for number in range(full)]
    grounds.add([*long, "y" * rest, "z"], [], "t1")
    assert grounds.sources == [*long, "y" * rest]
    assert grounds.more_sources == 1
