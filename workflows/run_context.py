"""The surroundings that the parts of a supervisor share, its slots and its waits."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypedDict

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import RunRef, RunSetup
    from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
    from temporal_supervisor.supervision.contract.finding import Labels
    from temporal_supervisor.supervision.contract.model_choice import Effort, OptionalStep, is_off
    from temporal_supervisor.supervision.contract.plan import Plan, Subtask
    from temporal_supervisor.supervision.contract.progress import Phase
    from temporal_supervisor.supervision.contract.status import TraceEvent, Wait, WaitKind
    from temporal_supervisor.supervision.contract.team import TeamCard
    from temporal_supervisor.supervision.reuse.matching import SavedWork
    from temporal_supervisor.supervision.run.decisions import Decision
    from temporal_supervisor.supervision.run.events import decided
    from temporal_supervisor.supervision.run.run_state import RunState
    from temporal_supervisor.supervision.run.slots import Slot
    from temporal_supervisor.supervision.run.waits import AWAITED
    from workflows.children.child_contracts import NestedInput, PartInput
    from workflows.children.links import ChildLinks
    from workflows.people import Awaited, Words

_log = logging.getLogger("supervisor.run")
_LOGGED = (
    *("phase", "attempt", "attempts", "role", "turns", "error", "revision", "subtasks"),
    *("round", "model", "candidate", "id", "kind", "decision", "pool"),
)
STARTS_AT_ONCE = 12  # children: a message to the server holds 4 MiB, so 12 inputs of 256 KiB, the most one may have


class CallFields(TypedDict):
    """The fields that every question of a supervisor has."""

    run: RunRef
    goal_ref: str
    plan_ref: str
    model: str
    effort: Effort | None


@dataclass
class RunContext:
    """One supervisor's surroundings.

    `show` makes a change visible, setting `changed` wakes the dispatch, `starts` bounds the
    children that start at once. `plan_ref`, `team_ref` and `team` follow the revisions of the plan: `team` has the
    roles that the plan added.
    `described_in` has for each subtask the plan that brought it: its brief is the same then, whenever it begins.
    `plan_labels` has for each subtask those of what its description was made from.
    A run that `is_bare` makes one attempt, whose finding is not sent back. One with a `part` does
    nothing else of its work.
    `written_by` has the models of the supervisor's own conversations, by their heads, `heard` how many of people's
    words are in them. `saved` has the findings of earlier runs that subtasks are to take. `people`
    wakes the work that waits for a person's decision, `words` stores what they wrote.
    """

    state: RunState
    setup: RunSetup
    run: RunRef
    show: Callable[[], None]
    changed: asyncio.Event
    children: ChildLinks
    team: TeamCard
    team_ref: str
    words: Words
    nested: NestedInput | None = None
    plan_ref: str = ""
    described_in: dict[str, str] = field(default_factory=dict)
    plan_labels: dict[str, Labels] = field(default_factory=dict)
    starts: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(STARTS_AT_ONCE))
    is_bare: bool = False
    part: PartInput | None = None
    written_by: dict[str, str] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    saved: SavedWork = field(default_factory=SavedWork)
    people: Awaited = field(default_factory=Awaited)

    def __post_init__(self) -> None:
        """Has each decision wake the work that waits for it."""
        self.state.decisions.wake(self.people.wake)

    @property
    def is_plan_alone(self) -> bool:
        """True if the run ends with its plan."""
        return self.part is not None and self.part.part == "plan"

    @property
    def is_answer_alone(self) -> bool:
        """True if the answer is made of given findings."""
        return self.part is not None and self.part.part == "answer"

    @property
    def path(self) -> str:
        """The path of this run from the root: `t3/1/` for the nested run of t3's first attempt."""
        own = workflow.info().workflow_id.removeprefix(self.run.run_id).strip("/")
        return f"{own}/" if self.nested and own else ""

    @property
    def assignable_roles(self) -> TeamCard:
        """The roles that a subtask may be given to: at the last level, none that is a team of its own."""
        return self.team.assignable(nesting=self.depth < self.state.request.max_depth)

    @property
    def depth(self) -> int:
        """1 for the root."""
        return self.nested.depth if self.nested else 1

    @property
    def call_fields(self) -> CallFields:
        """The fields that every question begins with."""
        return {
            "run": self.run,
            "goal_ref": self.setup.goal_ref,
            "plan_ref": self.plan_ref,
            "model": self.setup.supervisor_models[0],
            "effort": self.state.request.effort,
        }

    def enter(self, phase: Phase) -> None:
        """Begins a phase."""
        self.state.enter(phase)
        self.show()

    def take_team(self, team: TeamCard, ref: str) -> None:
        """Takes over a revision of the team, which has the roles that the plan added."""
        self.team = team
        self.team_ref = ref

    def take_plan(self, plan: Plan, ref: str, described_in: str, labels: Labels) -> None:
        """Takes over a revision of the plan.

        Its new subtasks are `described_in` it, or in a part of it.
        """
        self.plan_ref = ref
        for subtask in plan.subtasks:
            self.described_in.setdefault(subtask.id, described_in)
            self.plan_labels.setdefault(subtask.id, labels)

    def note_conversation(self, head: str, model: str, words: int) -> None:
        """Sets the author of the conversation at a head, and the number of people's words in it."""
        self.written_by[head] = model
        self.heard[head] = words

    def leaves_out(self, step: OptionalStep) -> bool:
        """True if the model that serves the supervisor now makes no such step; noted in the trace."""
        model = self.state.models.choose(self.setup.supervisor_models)
        if not is_off(step, model, self.setup.model_off):
            return False
        self.state.trace.note("step_left_out", step=step, model=model)
        return True

    def expires_at(self, last: bool = False) -> datetime:
        """Returns when the time for work is over, or for the `last` call, the answer. Both move when limits change."""
        return self.state.time_and_budget.deadline_at if last else self.state.time_and_budget.work_until

    def may_be_team(self, subtask: Subtask) -> bool:
        """True if a subtask goes to a role that is a team, as far as that is decided."""
        roles = self.assignable_roles
        if subtask.role == "auto":
            return any(role.team for role in roles.roles)
        return roles.role(subtask.role).team is not None

    def subtasks_for(self, subtask_id: str) -> int:
        """Returns the number of subtasks that a nested run may name; 0 if there are too few."""
        return self.state.subtasks_for(subtask_id, self.may_be_team)

    @contextlib.contextmanager
    def own_work(self) -> Iterator[None]:
        """Counts the time of the block as the supervisor's own, without pauses, if it ends without an error."""
        began = workflow.now()
        yield
        self.state.spend_own_time(began)

    async def until_resumed(self) -> None:
        """Returns when the run is not paused."""
        if self.state.steering.paused:
            await workflow.wait_condition(lambda: not self.state.steering.paused)

    async def hold(self, slot: Slot) -> None:
        """Returns when the slot is held; worker agents under way come before subtasks that are to begin."""
        if not slot.held:
            self.state.slots.ask(slot)
            if not slot.held:
                self.changed.set()  # the dispatch holds the clock if a nested run keeps it for people
            await workflow.wait_condition(lambda: slot.held)

    def free(self, slot: Slot) -> None:
        """Gives the slot back; other work that waits for one begins."""
        self.state.slots.give_back(slot)
        self.changed.set()

    async def until_finding(self, subtask_id: str) -> None:
        """Returns once the run has a finding, or all work under way is refused, as that of the subtask is.

        So that work decides whether the run fails, not the order in which the provider answers.
        """
        state = self.state
        state.refuse(subtask_id)
        try:
            await workflow.wait_condition(lambda: state.has_finding or not state.finding_may_come)
        finally:
            state.refuse_no_longer(subtask_id)

    def new_wait(self, place: str, kind: WaitKind, *source: str | None, **fields: Any) -> Wait:
        """Returns a wait at a place of this run; `source` is where what it shows came from."""
        wait = Wait(
            id=f"{self.path}{place}",
            kind=kind,
            workflow_id=workflow.info().workflow_id,
            since=workflow.now().isoformat(),
            **fields,
        )
        return wait.bound_to(*source)

    async def wait_for(
        self,
        wait: Wait,
        over: Callable[[], bool],
        *,
        until: Callable[[], datetime | None] = lambda: None,
        last: bool = False,
        content: str | None = None,
    ) -> None:
        """Shows a wait until it is `over` or the time `until` has come.

        `content` is all of what is asked, for the query `waiting`. Raises SupervisionError `DeadlineExceeded` if the
        run's time is over first.
        """
        label = f"{wait.subject}: wait for {AWAITED[wait.kind]}"
        waits = self.state.waits

        def ended() -> bool:
            end = until()
            return over() or (end is not None and workflow.now() >= end)

        def deadline() -> datetime | None:
            """Returns the end of the run's time; None while its clock is held."""
            return None if self.state.time_and_budget.held else self.expires_at(last)

        log_line(self.run.run_id, "waits", wait.subject, kind=wait.kind)
        try:
            while not ended():
                end = deadline()
                if end is not None and workflow.now() >= end:
                    raise SupervisionError(ErrorKind.DEADLINE_EXCEEDED, f"the deadline came first: {label}")
                ends = [time for time in (until(), end) if time is not None]
                expires_at = min(ends, default=None)
                waits.show(wait, expires_at, content)
                self.show()
                if wait.for_decision:
                    self.changed.set()  # the dispatch holds the clock if nothing else is left to do
                left = None if expires_at is None else expires_at - workflow.now()
                # The deadline may move while this waits, or stand still: then the timer is set again.
                over_or_moved = partial(lambda seen: ended() or deadline() != seen, end)
                with contextlib.suppress(TimeoutError):
                    await workflow.wait_condition(over_or_moved, timeout=left, timeout_summary=label)
        finally:
            waits.end(wait)
        log_line(self.run.run_id, "waits no longer", wait.subject, kind=wait.kind)
        if wait.for_decision:
            self.changed.set()  # the dispatch lets the clock run again, before the work that follows has ended
        self.show()

    async def decision(self, wait: Wait, timeout: timedelta, content: str | None = None) -> Decision | None:
        """Returns a person's decision about a wait; None if the `timeout` is over first.

        Raises SupervisionError `DeadlineExceeded` if the run's time is over first.
        """
        decisions = self.state.decisions
        until = workflow.now() + timeout

        def is_decided() -> bool:
            return decisions.on(wait) is not None

        if not is_decided():
            if wait.subtask_id is None:
                await self.wait_for(wait, is_decided, until=lambda: until, content=content)
            else:
                await self._until_decided(wait, until, content)
        known = decisions.on(wait)
        self.state.trace.note("decided", wait.subtask_id, **decided(wait, known))
        return known

    async def _until_decided(self, wait: Wait, until: datetime, content: str | None) -> None:
        """Returns once a wait of a subtask is decided, or at the time `until`.

        Of these there may be a thousand at once: they share one timer, and the dispatch ends them at the deadline.
        """
        log_line(self.run.run_id, "waits", wait.subject, kind=wait.kind)
        self.state.waits.show(wait, until, content)
        self.show()
        self.changed.set()  # the dispatch holds the clock if nothing else is left to do
        try:
            await self.people.decided(wait.sha256, lambda: self.state.decisions.on(wait) is not None, until)
        finally:
            self.state.waits.end(wait)
        log_line(self.run.run_id, "waits no longer", wait.subject, kind=wait.kind)
        self.changed.set()  # the dispatch lets the clock run again, before the work that follows has ended
        self.show()

    def forget_changes(self) -> None:
        """Notes that the dispatch looks at the whole run now: earlier changes need not wake it."""
        self.changed.clear()

    def hold_clock(self, why: str, wanted: bool = True) -> None:
        """Holds the run's clock for a reason, or no longer for that one; nested runs follow."""
        if self.state.time_and_budget.hold(why, wanted):
            self.children.tell()

    def wait_for_people(self, wanted: bool) -> None:
        """Lets the clock stand still while only people can help, or go on.

        A nested run has its root's clock: it tells the run above that it waits.
        """
        has_changed = wanted != self.state.waits_for_people
        self.state.note_waits_for_people(wanted)
        if self.nested is None:
            self.hold_clock("people", wanted)
        elif has_changed:
            self.show()


def log_event(run_id: str, event: TraceEvent) -> None:
    """Writes an event into the Worker's log, without the texts in it."""
    log_line(run_id, event.type, event.subtask_id, **{name: event.data[name] for name in _LOGGED if name in event.data})


def log_line(run_id: str, what: str, subject: str | None, **fields: object) -> None:
    """Writes a line about this workflow of a run into the Worker's log, once: a replay writes none."""
    if not workflow.unsafe.is_replaying() and _log.isEnabledFor(logging.INFO):
        own = workflow.info().workflow_id.removeprefix(run_id).strip("/")
        place = "/".join(filter(None, [own, subject]))
        where = {"run": run_id, "subtask": place} if place else {"run": run_id}
        _log.info(what, extra={"fields": {**where, **fields}})
