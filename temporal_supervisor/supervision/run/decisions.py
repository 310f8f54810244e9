"""Messages of people to a run: decisions, words to agents, retries and skips."""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.base.text import did_you_mean, quoted
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.plan import Estimate, Plan, folded, template_of
from temporal_supervisor.supervision.contract.progress import Phase
from temporal_supervisor.supervision.contract.result import Problem, SubtaskReport
from temporal_supervisor.supervision.contract.status import Wait, WaitKind
from temporal_supervisor.supervision.contract.updates import (
    Decided,
    DecidePlan,
    Reply,
    RetrySubtask,
    SkipSubtask,
    Steer,
)
from temporal_supervisor.supervision.run.board import Board, is_blocked

Choice = Literal["approve", "edit", "change", "reject", "deny", "reply", "retry"]

ALL = "*"
_SHOWN = 6  # ids of other waits in a refusal
_OPEN = ("waiting", "running")
_MOST_STEERS = 20  # in one run: each is part of all later prompts that it is for


class Decision(Model):
    """A person's decision about the wait `id` and the content with the hash `sha256`.

    The wait is of one of the kinds in `about`. `text` is the reply or the comment, `plan` replaces
    the shown plan, and `by` is the person's own name. Without a hash it decides about the content
    that waits under the id on arrival, if its arguments have the hash `arguments_sha256`, where one
    is given.
    """

    id: str
    choice: Choice
    about: tuple[WaitKind, ...]
    text: str = ""
    plan: Plan | None = None
    by: str = ""
    arguments_sha256: str | None = None
    sha256: str | None = None

    def is_same(self, other: "Decision") -> bool:
        """True if another decision has the same content, whoever made it."""
        return (self.choice, self.text, self.plan) == (other.choice, other.text, other.plan)


def decision_in(update: Decided, path: str = "") -> Decision:
    """Returns the decision in an update.

    `path` leads from the root to the run, with a slash at its end.
    """
    common = {"about": update.waits, "by": update.by or "", "sha256": update.sha256}
    if isinstance(update, Reply):
        return Decision(id=update.id, choice="reply", text=update.text, **common)
    common["text"] = update.comment or ""
    if isinstance(update, DecidePlan):
        plan_id = f"{path}plan.{update.revision}"
        return Decision(id=plan_id, choice=update.decision, plan=update.plan, **common)
    return Decision(
        id=update.id,
        choice=update.decision,
        arguments_sha256=update.arguments_sha256,
        **common,
    )


class Decisions:
    """The decisions of a run, by the hash of the decided content.

    The first decision about a content counts, also after a reset, because hashes stay the same.
    `in_advance` is True after a reset: then a decision may be repeated before the work waits for
    it. `on_taken` is called with the hash of each accepted decision.
    """

    def __init__(self) -> None:
        self.in_advance = False
        self.on_taken: Callable[[str], None] = lambda sha256: None
        self._taken: dict[tuple[str, WaitKind], Decision] = {}
        # The hash of each decided content by the id of its wait: no id comes twice.
        self._hashes: dict[str, str] = {}

    def set_listener(self, work: Callable[[str], None]) -> None:
        """Sets the function that is called with the hash of each accepted decision."""
        self.on_taken = work

    def allow_in_advance(self) -> None:
        """Allows decisions before the work waits for them, because the run was reset."""
        self.in_advance = True

    def accept(self, decision: Decision, waits: Sequence[Wait]) -> str:
        """Accepts a checked decision unless there is one already. Returns a reply for people."""
        sha256 = self._hash_of(decision, waits)
        assert sha256 is not None  # see `check`
        if (sha256, decision.about[0]) in self._taken:
            return "decided before: the first decision stands"
        self._taken |= {(sha256, kind): decision for kind in decision.about}
        self._hashes[decision.id] = sha256
        self.on_taken(sha256)
        return f"{decision.id}: {decision.choice}"

    def decision_about(self, wait: Wait) -> Decision | None:
        """Returns the decision about a wait; None if there is none."""
        return self._taken.get((wait.sha256, wait.kind))

    def check(self, decision: Decision, waits: Sequence[Wait]) -> None:
        """Raises ValueError, with the present choices, for a decision that fits no wait."""
        sha256 = self._hash_of(decision, waits)
        taken = self._taken.get((sha256, decision.about[0])) if sha256 else None
        if taken is not None:
            _check_same(decision, taken)
            return
        wait = _named(decision, waits)
        if wait is not None:
            _check_fit(decision, sha256, wait)
            return
        comes_again_after_a_reset = self.in_advance and bool(decision.sha256)
        if not comes_again_after_a_reset:
            nothing = f"nothing with the id '{decision.id}' waits for a person"
            raise ValueError(f"{nothing}; {_waiting(waits)}")

    def _hash_of(self, decision: Decision, waits: Sequence[Wait]) -> str | None:
        """Returns the hash of the decided content: the decision's own, else its wait's."""
        if decision.sha256 is not None:
            return decision.sha256
        wait = _named(decision, waits)
        return wait.sha256 if wait else self._hashes.get(decision.id)


def _check_same(decision: Decision, taken: Decision) -> None:
    """Raises ValueError if a repeated decision differs from the accepted one."""
    if taken.is_same(decision):
        return
    by = f" by {taken.by}" if taken.by else ""
    already = f"'{decision.id}' is decided already: {taken.choice}{by}"
    raise ValueError(f"{already}. The first decision stands")


def _check_fit(decision: Decision, sha256: str | None, wait: Wait) -> None:
    """Raises ValueError if a decision does not fit its wait and the wait's content."""
    again = "Look at it again, then decide"
    if wait.kind not in decision.about:
        raise ValueError(f"'{wait.id}' waits for something else: it is of the kind '{wait.kind}'")
    if wait.kind == "plan" and decision.choice not in wait.choices:
        possible = ", ".join(wait.choices)
        raise ValueError(f"'{wait.id}' cannot be decided so: possible are {possible}")
    if decision.arguments_sha256 not in (None, wait.arguments_sha256):
        raise ValueError(
            f"'{wait.id}' has other arguments than those that were decided about: "
            f"their SHA-256 is {wait.arguments_sha256}. {again}"
        )
    if sha256 != wait.sha256:
        other = f"'{wait.id}' shows something else than what was decided about"
        raise ValueError(f"{other}: its SHA-256 is {wait.sha256}. {again}")


def _named(decision: Decision, waits: Sequence[Wait]) -> Wait | None:
    """Returns the wait with the id of a decision."""
    return next((wait for wait in waits if wait.id == decision.id), None)


def _waiting(waits: Sequence[Wait]) -> str:
    ids = [wait.id for wait in waits if wait.for_decision]
    return f"what does: {', '.join(ids[:_SHOWN])}" if ids else "nothing does now"


# --- steering -------------------------------------------------------------------------------------


class Instructions(Model):
    """All words to the agents of a subtask so far: the content of the signal `instructions`.

    `number` grows with each word, pause and resume; a smaller one is outdated. While `paused`,
    agents begin no call; with `now` they also stop the call in flight. `resumes` counts the ends of
    waits for a provider. Nested supervisors get the signal too: `deadline_at` is theirs, None while
    the root's clock is held. As it can change alone, a later signal may have the same number; then
    `sent_at` decides which one is newer.
    """

    number: int = 0
    paused: bool = False
    now: bool = False
    resumes: int = 0
    words: list[str] = []
    deadline_at: Annotated[AwareDatetime | None, Field(exclude_if=lambda time: time is None)] = None
    sent_at: Annotated[AwareDatetime | None, Field(exclude_if=lambda time: time is None)] = None

    def is_new_after(self, known: "Instructions") -> bool:
        """True if these instructions were sent after `known`."""
        if self.number != known.number or self.sent_at is None or known.sent_at is None:
            return self.number >= known.number
        return self.sent_at > known.sent_at


class UpdateReplies:
    """The number of accepted updates, which the server limits, and the replies by id."""

    def __init__(self) -> None:
        self.taken = 0
        self._replies: dict[str, str] = {}

    def count_update(self) -> None:
        """Counts an accepted update."""
        self.taken += 1

    def reply_to(self, request_id: str | None) -> str | None:
        """Returns the reply to an earlier update with that id; None if it is new or has no id."""
        return self._replies.get(request_id) if request_id else None

    def keep_reply(self, request_id: str, message: str) -> None:
        """Keeps the reply to an update, in case the update is sent again."""
        self._replies[request_id] = message


class Steering:
    """Instructions of people, which are applied before the next step of work.

    A pause `at_once` also stops the calls in flight. `retries` and `skips` are for the dispatch.
    """

    def __init__(self, board: Board) -> None:
        self.paused = False
        self.at_once = False
        self.resumes = 0
        self.retries: dict[str, str] = {}
        self.skips: dict[str, Problem] = {}
        self._board = board
        self._words: list[tuple[str, str]] = []
        self._toggles = 0
        self._above = Instructions()

    def pause(self, *, at_once: bool) -> None:
        """Pauses the run, with `at_once` also the calls in flight."""
        self._set_pause(True, at_once)

    def resume(self) -> None:
        """Ends a pause, and the waits for a provider."""
        self.resumes += 1
        self._set_pause(False, False)

    def _set_pause(self, paused: bool, at_once: bool) -> None:
        self.paused = paused
        self.at_once = at_once
        self._toggles += 1

    def add_word(self, text: str, to: str = ALL) -> None:
        """Adds a word to the agents of the subtask `to`, or to all."""
        self._words.append((to, text))

    def comes_late(self, new: Instructions) -> bool:
        """True if these or later instructions of the parent supervisor have come already."""
        return not new.is_new_after(self._above)

    def follow(self, new: Instructions) -> bool:
        """Takes over the instructions of the parent supervisor, which hold for all work here.

        Returns True if they end waits for a provider.
        """
        if self.comes_late(new):
            return False
        for word in new.words[len(self._above.words) :]:
            self.add_word(word)
        resumed = new.resumes - self._above.resumes
        has_new_pause = (new.paused, new.now) != (self.paused, self.at_once)
        if has_new_pause or resumed:
            self._set_pause(new.paused, new.now)
        self.resumes += resumed
        self._above = new
        return resumed > 0

    def instructions(self, subtask_id: str) -> Instructions:
        """Returns the instructions for the agents of a subtask."""
        own = (ALL, subtask_id, template_of(subtask_id))
        words = [word for to, word in self._words if to in own]
        return Instructions(
            number=self._toggles + len(words),
            paused=self.paused,
            now=self.at_once,
            resumes=self.resumes,
            words=words,
        )

    @property
    def words_to_all(self) -> list[str]:
        """The words to everybody, which also hold for the supervisor's own work."""
        return [word for to, word in self._words if to == ALL]

    # --- checks: each raises ValueError with the present state -----------------------------------

    def check_word(self, new: Steer) -> None:
        """Raises ValueError if the word would reach no agent."""
        if len(self._words) >= _MOST_STEERS:
            often = f"the run was steered {_MOST_STEERS} times"
            raise ValueError(f"{often}: use retry_subtask, with an instruction")
        if new.to != ALL:
            self.check_open(new.to)

    def check_retry(self, new: RetrySubtask, phase: Phase, *, has_time: bool) -> None:
        """Raises ValueError if the subtask cannot be retried."""
        report, name = self._report(new.subtask_id), quoted(new.subtask_id)
        if phase == "synthesizing":
            raise ValueError("too late: the answer is being written. Start another run")
        if report.counts is not None:
            raise ValueError(f"{name} stands for items: name one, such as '{report.id}.1'")
        if report.replaced_by is not None:
            raise ValueError(f"{name} was replaced: retry '{report.replaced_by}'")
        if is_blocked(report):
            needed = " or ".join(folded(report.depends_on))
            raise ValueError(f"{name} lacks its dependencies: retry {needed}")
        if report.state in _OPEN or report.id in self.retries:
            raise ValueError(f"{name} has not ended: steer it, or skip it first")
        if not has_time:
            over = "the time for work on subtasks is over"
            raise ValueError(f"{over}: extend the deadline first")

    def check_open(self, subtask_id: str) -> None:
        """Raises ValueError if the subtask has ended."""
        report = self._report(subtask_id)
        if report.state not in _OPEN:
            ended = f"{quoted(subtask_id)} has ended already: it is {report.state}"
            raise ValueError(f"{ended}. retry_subtask has it done again")

    def retry(self, new: RetrySubtask) -> None:
        """Requests a retry of a subtask."""
        self.retries[new.subtask_id] = new.instruction or ""

    def next_retry(self) -> tuple[str, str]:
        """Removes the latest requested retry and returns its subtask and instruction."""
        return self.retries.popitem()

    def forget_retries(self) -> None:
        """Drops all requested retries."""
        self.retries.clear()

    def take_skip(self, subtask_id: str) -> Problem:
        """Removes the request to skip a subtask and returns its reason."""
        return self.skips.pop(subtask_id)

    def skip(self, new: SkipSubtask) -> None:
        """Requests the end of a subtask."""
        reason = f"{new.by or 'a person'} skipped it"
        if new.comment:
            reason += f": {new.comment}"
        self.skips[new.subtask_id] = Problem(type=ErrorKind.CANCELLED, message=reason)

    def _report(self, subtask_id: str) -> SubtaskReport:
        if subtask_id in self._board:
            return self._board[subtask_id]
        first, _, rest = subtask_id.partition("/")
        if rest:
            workflow = first in self._board and self._board[first].workflow_id
            where = f"'{workflow}', as '{rest}'" if workflow else "its workflow"
            raise ValueError(f"{quoted(subtask_id)} is in a nested run: send this to {where}")
        known = [report.id for report in self._board.reports()]
        meant = did_you_mean(subtask_id, known)
        raise ValueError(f"the plan has no subtask {quoted(subtask_id)}{meant}")


class Proposals:
    """The plan that waits for approval, and the roles of approved plans.

    `estimate` is the last one shown. `number` is the number of the last plan that a person had to
    decide about.
    """

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.estimate: Estimate | None = None
        self.approved_roles: set[str] = set()
        self.number = 0

    def begin(self, plan: Plan, estimate: Estimate | None) -> None:
        """Shows a plan for a person's decision."""
        self.plan = plan
        self.estimate = estimate

    def end(self) -> None:
        """Stops showing a plan for a decision."""
        self.plan = None

    def show_estimate(self, estimate: Estimate | None) -> None:
        """Shows the estimate of a plan that needs no decision."""
        self.estimate = estimate

    def approve_roles_of(self, plan: Plan | None) -> None:
        """Marks the roles of a plan as approved, so that no later plan needs approval for them."""
        if plan is not None:
            self.approved_roles |= {subtask.role for subtask in plan.subtasks}

    def next_number(self, revision: int) -> int:
        """Returns the number of the next plan: its revision, or the next number not used."""
        self.number = max(self.number + 1, revision)
        return self.number
