"""One attempt of a worker agent: how far it is, what it may still do, how it can end."""

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.base.errors import RESUMABLE, ErrorKind
    from temporal_supervisor.supervision.budget.ledger import NextCall, next_call
    from temporal_supervisor.supervision.contract.finding import Finding
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.contract.usage import Usage
    from temporal_supervisor.supervision.run.decisions import Instructions
    from temporal_supervisor.supervision.run.events import Trace

    from workflows.children.child_contracts import WorkerAgentInput, WorkerAgentResult

# A worker agent's next call is expected to be larger than its last one by so much.
_TURN_GROWTH_TOKENS = 500
_STOPPED = "the worker agent was stopped before it had finished"


class AgentAttempt:
    """One attempt: the `agent` it is of, its progress, and the results with which it can end.

    `progress` is a conversation's head, counts, and usage; `instructions` are people's latest.
    """

    def __init__(self, agent: WorkerAgentInput) -> None:
        self.agent = agent
        self.progress = agent.progress
        self.instructions = agent.instructions
        self.trace = Trace(workflow.now, agent.progress.trace_seq)
        self._began = workflow.now()

    @property
    def time_left(self) -> float | None:
        """The seconds that the attempt may still take; None without a limit."""
        limit = self.agent.timeout_seconds
        return None if limit is None else max(0.0, limit - self.progress.worked_seconds)

    @property
    def worked_seconds(self) -> float:
        """The seconds that the attempt took so far, without its waits."""
        since = workflow.now() - self._began
        return self.progress.worked_seconds + since.total_seconds()

    @property
    def allowed(self) -> NextCall:
        """The kind of the next call, by the grant and what is spent of it."""
        agent, progress = self.agent, self.progress
        estimate = progress.last_tokens + _TURN_GROWTH_TOKENS
        return next_call(agent.grant, progress.usage, estimate, last_grant=agent.last_grant)

    @property
    def has_a_turn_left(self) -> bool:
        """True if turns and budget allow another call that need not be the last one."""
        return self.progress.turn < self.agent.max_turns and self.allowed is NextCall.CALL

    @property
    def unheard(self) -> list[str]:
        """The words of people that are not in the conversation yet."""
        return self.instructions.words[self.progress.heard :]

    def follow(self, instructions: Instructions) -> None:
        """Takes over instructions of people, unless they come late."""
        if instructions.number > self.instructions.number:
            self.instructions = instructions

    def book(self, usage: Usage) -> None:
        """Adds the usage of a call."""
        self.progress.add_usage(usage)

    def note(self, event: str, /, **data: JsonValue) -> None:
        """Adds an event of this subtask to the attempt's trace."""
        self.trace.note(event, self.agent.subtask_id, **data)

    def continue_as_new(self) -> None:
        """Continues in a new run of the workflow, whose history begins empty."""
        self.progress.carry_over(self.trace.last_seq, self.worked_seconds)
        workflow.continue_as_new(self.agent.with_instructions(self.instructions))

    def result(self, finding: Finding | None, *, resumable: bool = False) -> WorkerAgentResult:
        """Returns the result with a finding, if there is one.

        A `resumable` one has the progress from which a later try continues.
        """
        progress = self.progress
        resume_from = None
        if resumable:
            resume_from = progress.model_copy(update={"worked_seconds": self.worked_seconds})
        return WorkerAgentResult(
            finding=finding,
            turns=progress.turn - progress.turns_booked,
            usage=progress.usage,
            head=progress.head or progress.anew_from or None,
            heard=progress.heard,
            effects=progress.effects,
            labels=progress.labels,
            progress=resume_from,
        )

    def stopped(self) -> WorkerAgentResult:
        """Returns the progress of a cancelled worker agent.

        A run that is reset continues from there.
        """
        return self.result(self._finding_so_far(), resumable=True).as_stopped()

    def failure(
        self, problem: Problem, retry_after: float = 0.0, *, keeps_finding: bool = False
    ) -> ApplicationError:
        """Returns the error of this attempt.

        One that it can go on from later carries where it stands.
        """
        resumable = problem.type in RESUMABLE
        keeps = keeps_finding or resumable or problem.type is ErrorKind.TIMEOUT
        finding = self._finding_so_far() if keeps else None
        consumed = self.result(finding, resumable=resumable).retried_after(retry_after)
        return ApplicationError(problem.message, consumed, type=problem.type, non_retryable=True)

    def _finding_so_far(self) -> Finding | None:
        """Returns the last text of the worker agent, if any, as a finding."""
        finding = self.progress.last_finding
        if finding is None:
            return None
        return of_subtask(finding, self.agent.subtask_id, missing=_STOPPED)


def of_subtask(finding: Finding, subtask_id: str, *, missing: str = "") -> Finding:
    """Returns a finding as that of a subtask; it is partial if something is `missing`."""
    artifacts = [item.model_copy(update={"subtask_id": subtask_id}) for item in finding.artifacts]
    changes: dict[str, object] = {"artifacts": artifacts}
    if missing:
        changes["outcome"] = "partial"
        changes["limitations"] = [*finding.limitations, missing]
    return finding.model_copy(update=changes)
