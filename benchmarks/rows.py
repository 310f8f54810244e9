"""What is measured: goals of different width, depth and latency."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Row:
    """`runs` goals, `at_once` at a time; each plans `agents` worker agents of `tool_turns` tool calls and an answer.

    `latency` is what each model call takes, in seconds. `floor` is False where the floor has nothing comparable. With
    `dependents` the plan has so many further worker agents, each of which builds on all `agents`.
    """

    name: str
    agents: int
    tool_turns: int
    latency: float
    runs: int = 1
    at_once: int = 1
    tool: str = "lookup"
    floor: bool = True
    dependents: int = 0

    @property
    def subtasks(self) -> int:
        """Worker agents of one run."""
        return self.agents + self.dependents

    @property
    def model_calls(self) -> int:
        """Calls of all runs together: plan, turns, synthesis."""
        return self.runs * (2 + self.subtasks * (self.tool_turns + 1))

    @property
    def critical_path(self) -> float:
        """Seconds that one run's chain of model calls takes, were everything else free."""
        return (3 + self.tool_turns) * self.latency

    def goal(self, run_id: str) -> str:
        """Returns the goal with the marker that the bench's model reads."""
        more = f" then={self.dependents}" if self.dependents else ""
        return f"[[bench n={self.agents} t={self.tool_turns} run={run_id} tool={self.tool}{more}]]"


WARM_UP = Row("warm-up", 3, 1, 0.0, runs=4, at_once=2)
ROWS = [
    Row("small runs, 1 at a time", 3, 1, 0.0, runs=20),
    Row("small runs, 8 at a time", 3, 1, 0.0, runs=64, at_once=8),
    Row("10 agents, 200 ms a call", 10, 2, 0.2),
    Row("100 agents, 200 ms a call", 100, 2, 0.2),
    Row("1 agent, 10 tool turns of 5 KB", 1, 10, 0.0, tool="lookup_long", floor=False),
    Row("1 agent, 40 tool turns of 5 KB", 1, 40, 0.0, tool="lookup_long", floor=False),
]


def shorter(row: Row) -> Row:
    """Returns the row for a quick bench: a quarter of the runs."""
    return replace(row, runs=max(1, row.runs // 4))
