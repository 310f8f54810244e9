"""What is measured: goals of different width, depth and latency."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Row:
    """`runs` goals, `at_once` at a time; each plans `agents` worker agents of `tool_turns` tool calls and an answer.

    `latency` is what each model call takes, in seconds. `floor` is False where the floor has nothing comparable.
    With `new_roles` the plan defines so many roles of its own and gives them all the work, with `dependents` it has so
    many further worker agents, each of which builds on all `agents`. Only the bench's own model server writes such
    plans.
    """

    name: str
    agents: int
    tool_turns: int
    latency: float
    runs: int = 1
    at_once: int = 1
    tool: str = "lookup"
    floor: bool = True
    new_roles: int = 0
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
        """Returns the goal with the marker that the model servers of the bench read."""
        return f"[[bench n={self.agents} t={self.tool_turns} run={run_id}{self.extra}]]"

    @property
    def extra(self) -> str:
        """What the marker holds beyond the defaults, with a leading space."""
        tool = "" if self.tool == "lookup" else f" tool={self.tool}"
        roles = f" roles={self.new_roles}" if self.new_roles else ""
        return tool + roles + (f" then={self.dependents}" if self.dependents else "")


FAN_100 = Row("100 agents, 200 ms a call", 100, 2, 0.2)
FAN_10 = Row("10 agents, 200 ms a call", 10, 2, 0.2)
DYNAMIC_10 = Row("10 agents in 5 new roles, 200 ms a call", 10, 2, 0.2, floor=False, new_roles=5)
SLOW_10 = Row("10 agents, 1 s a call", 10, 2, 1.0)
SMALL_8 = Row("small runs, 8 at a time", 3, 1, 0.0, runs=64, at_once=8)
SMALL_1 = Row("small runs, 1 at a time", 3, 1, 0.0, runs=20)
TURNS_10 = Row("1 agent, 10 tool turns of 5 KB", 1, 10, 0.0, tool="lookup_long", floor=False)
TURNS_40 = Row("1 agent, 40 tool turns of 5 KB", 1, 40, 0.0, tool="lookup_long", floor=False)
WARM_UP = Row("warm-up", 3, 1, 0.0, runs=4, at_once=2)

ROWS = [SMALL_1, SMALL_8, FAN_10, DYNAMIC_10, SLOW_10, FAN_100, TURNS_10, TURNS_40]


def shorter(row: Row) -> Row:
    """Returns the row for a quick bench: a quarter of the runs."""
    return replace(row, runs=max(1, row.runs // 4))
