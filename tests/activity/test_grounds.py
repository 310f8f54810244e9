"""What a finding carries of the sources and artifacts of its tool calls."""

from activities.agent.agent_turn import SOURCES, Grounds
from supervision.contract.finding import ArtifactRef


def test_what_a_finding_cannot_carry_is_counted_in_a_limitation() -> None:
    artifacts = [ArtifactRef(name="n", ref=f"r{number}") for number in range(SOURCES + 2)]
    sources = [f"page {number}" for number in range(SOURCES + 3)]
    assert Grounds([], [], sources, artifacts).left_out == [
        "3 more sources stand only in the tool outputs",
        "2 more artifacts stand only in the tool outputs",
    ]
    assert Grounds([], [], sources[:SOURCES], artifacts[:SOURCES]).left_out == []
