"""Messages of people to a run: decisions, words to its agents, subtasks to repeat or to skip."""

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
    """A person's decision about the wait `id`, and about the content with the hash `sha256`.

    It is `about` a wait of one of these kinds. `text` is the reply, or the comment; `plan` replaces
    the one that was shown; `by` is who says that he decided. Without a hash it is about what waits
    under the id when it arrives, with these arguments if it names their hash.
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
        """True if another one says the same, whoever says it."""
        return (self.choice, self.text, self.plan) == (other.choice, other.text, other.plan)


def decision_in(update: Decided, path: str = "") -> Decision:
    """Returns the decision in an update.

    `path` is that of the run, from the root, with a slash at its end.
    """
    said = {"about": update.waits, "by": update.by or "", "sha256": update.sha256}
    if isinstance(update, Reply):
        return Decision(id=update.id, choice="reply", text=update.text, **said)
    said["text"] = update.comment or ""
    if isinstance(update, DecidePlan):
        return Decision(id=f"{path}plan.{update.revision}", choice=update.decision, plan=update.plan, **said)
    return Decision(id=update.id, choice=update.decision, arguments_sha256=update.arguments_sha256, **said)


class Decisions:
    """The decisions of a run, each by the hash of what was decided about: it is applied to nothing else.

    The first one stands, after a reset, too: hashes are the same then. `in_advance` is True once
    the run was reset: a decision may then come again before the work waits for it. `on_taken` gets
    the hash of each one that is taken.
    """

    def __init__(self) -> None:
        self.in_advance = False
        self.on_taken: Callable[[str], None] = lambda sha256: None
        self._taken: dict[tuple[str, WaitKind], Decision] = {}
        # Of what was decided, by the id of the wait: no id comes twice.
        self._hashes: dict[str, str] = {}

    def wake(self, work: Callable[[str], None]) -> None:
        """Has the `work` that waits for decisions woken by each one, with its hash."""
        self.on_taken = work

    def allow_in_advance(self) -> None:
        """Takes decisions from now on before the work waits for them: the run was reset."""
        self.in_advance = True

    def take(self, decision: Decision, waits: Sequence[Wait]) -> str:
        """Takes a decision over that was checked, unless there was one.

        Returns what became of it.
        """
        sha256 = self._hash_of(decision, waits)
        assert sha256 is not None  # see `check`
        if (sha256, decision.about[0]) in self._taken:
            return "decided before: the first decision stands"
        self._taken |= {(sha256, kind): decision for kind in decision.about}
        self._hashes[decision.id] = sha256
        self.on_taken(sha256)
        return f"{decision.id}: {decision.choice}"

    def on(self, wait: Wait) -> Decision | None:
        """Returns the decision about a wait, if there is one."""
        return self._taken.get((wait.sha256, wait.kind))

    def check(self, decision: Decision, waits: Sequence[Wait]) -> None:
        """Raises ValueError, with what is possible now, if it is about nothing that is among the `waits`."""
        sha256 = self._hash_of(decision, waits)
        taken = self._taken.get((sha256, decision.about[0])) if sha256 else None
        if taken is not None:
            if not taken.is_same(decision):
                by = f" by {taken.by}" if taken.by else ""
                raise ValueError(f"'{decision.id}' is decided already: {taken.choice}{by}. The first decision stands")
            return
        wait = _named(decision, waits)
        if wait is None:
            if not (self.in_advance and decision.sha256):
                raise ValueError(f"nothing with the id '{decision.id}' waits for a person; {_waiting(waits)}")
        elif wait.kind not in decision.about:
            raise ValueError(f"'{wait.id}' waits for something else: it is of the kind '{wait.kind}'")
        elif wait.kind == "plan" and decision.choice not in wait.choices:
            raise ValueError(f"'{wait.id}' cannot be decided so: possible are {', '.join(wait.choices)}")
        elif decision.arguments_sha256 not in (None, wait.arguments_sha256):
            raise ValueError(
                f"'{wait.id}' has other arguments than those that were decided about: their SHA-256 is "
                f"{wait.arguments_sha256}. Look at it again, then decide"
            )
        elif sha256 != wait.sha256:
            raise ValueError(
                f"'{wait.id}' shows something else than what was decided about: its SHA-256 is {wait.sha256}. "
                "Look at it again, then decide"
            )

    def _hash_of(self, decision: Decision, waits: Sequence[Wait]) -> str | None:
        """Returns the hash of what a decision is about: its own, else that of what waits, or waited, under its id."""
        if decision.sha256 is not None:
            return decision.sha256
        wait = _named(decision, waits)
        return wait.sha256 if wait else self._hashes.get(decision.id)


def _named(decision: Decision, waits: Sequence[Wait]) -> Wait | None:
    """Returns the wait with the id of a decision."""
    return next((wait for wait in waits if wait.id == decision.id), None)


def _waiting(waits: Sequence[Wait]) -> str:
    ids = [wait.id for wait in waits if wait.for_decision]
    return f"what does: {', '.join(ids[:_SHOWN])}" if ids else "nothing does now"


# --- steering -------------------------------------------------------------------------------------


class Instructions(Model):
    """All words to the agents of a subtask so far: the signal `instructions`, also to nested supervisors.

    The `number` grows with each word, pause and resume: a smaller one comes late. While `paused`
    they begin no call; `now`, they also stop the one in flight. `resumes` is how often the waits
    for a provider were ended. `deadline_at` is for nested supervisors: None while the root's clock
    stands still. `sent_at` is the key by which a repeated delivery is recognised: of the same
    number, too, as the time may change alone.
    """

    number: int = 0
    paused: bool = False
    now: bool = False
    resumes: int = 0
    words: list[str] = []
    deadline_at: Annotated[AwareDatetime | None, Field(exclude_if=lambda time: time is None)] = None
    sent_at: Annotated[AwareDatetime | None, Field(exclude_if=lambda time: time is None)] = None

    def is_new_after(self, known: "Instructions") -> bool:
        """True if these instructions were sent after those that are known."""
        if self.number != known.number or self.sent_at is None or known.sent_at is None:
            return self.number >= known.number
        return self.sent_at > known.sent_at


class UpdateReplies:
    """The number of updates `taken`, of which the server allows so many, and the replies by id."""

    def __init__(self) -> None:
        self.taken = 0
        self._replies: dict[str, str] = {}

    def count(self) -> None:
        """Counts an update that is taken."""
        self.taken += 1

    def to(self, request_id: str | None) -> str | None:
        """Returns the reply to an update that came before; None if it is new or has no id."""
        return self._replies.get(request_id) if request_id else None

    def keep(self, request_id: str, message: str) -> None:
        """Keeps the reply to an update, for when the update comes again."""
        self._replies[request_id] = message


class Steering:
    """Instructions of people, which work reads before its next step.

    `retries` and `skips` are for the dispatch.
    """

    def __init__(self, board: Board) -> None:
        self.paused = False
        self.now = False
        self.resumes = 0
        self.retries: dict[str, str] = {}
        self.skips: dict[str, Problem] = {}
        self._board = board
        self._words: list[tuple[str, str]] = []
        self._toggles = 0
        self._above = Instructions()

    def pause(self, *, now: bool) -> None:
        """Pauses the run; `now` also stops the calls in flight."""
        self.paused, self.now, self._toggles = True, now, self._toggles + 1

    def resume(self) -> None:
        """Ends a pause, and the waits for a provider."""
        self.resumes += 1
        self.paused, self.now, self._toggles = False, False, self._toggles + 1

    def say(self, text: str, to: str = ALL) -> None:
        """Adds a word to the agents of a subtask, or to all."""
        self._words.append((to, text))

    def comes_late(self, new: Instructions) -> bool:
        """True if these instructions of the supervisor above, or later ones, have come already."""
        return not new.is_new_after(self._above)

    def take(self, new: Instructions) -> bool:
        """Takes over the instructions to the supervisor above: they hold for all work here.

        True if it was resumed.
        """
        if self.comes_late(new):
            return False
        for word in new.words[len(self._above.words) :]:
            self.say(word)
        resumed = new.resumes - self._above.resumes
        if (new.paused, new.now) != (self.paused, self.now) or resumed:
            self.paused, self.now, self._toggles = new.paused, new.now, self._toggles + 1
        self.resumes += resumed
        self._above = new
        return resumed > 0

    def instructions(self, subtask_id: str) -> Instructions:
        """Returns the instructions to the agents of a subtask."""
        own = (ALL, subtask_id, template_of(subtask_id))
        words = [word for to, word in self._words if to in own]
        return Instructions(
            number=self._toggles + len(words), paused=self.paused, now=self.now, resumes=self.resumes, words=words
        )

    @property
    def words_to_all(self) -> list[str]:
        """The words that hold for the supervisor's own work, too."""
        return [word for to, word in self._words if to == ALL]

    # --- what can be done now: each raises ValueError with what is current ----------------------------

    def check_word(self, new: Steer) -> None:
        """Raises ValueError if the word has no agent left to reach."""
        if len(self._words) >= _MOST_STEERS:
            raise ValueError(f"the run was steered {_MOST_STEERS} times: use retry_subtask, with an instruction")
        if new.to != ALL:
            self.check_open(new.to)

    def check_retry(self, new: RetrySubtask, phase: Phase, *, has_time: bool) -> None:
        """Raises ValueError if the subtask cannot be worked on again."""
        report, name = self._report(new.subtask_id), quoted(new.subtask_id)
        refusals = {
            "too late: the answer is being written. Start another run": phase == "synthesizing",
            f"{name} stands for items: name one, such as '{report.id}.1'": report.counts is not None,
            f"{name} was replaced: retry '{report.replaced_by}'": report.replaced_by is not None,
            f"{name} lacks its dependencies: retry {' or '.join(folded(report.depends_on))}": is_blocked(report),
            f"{name} has not ended: steer it, or skip it first": report.state in _OPEN or report.id in self.retries,
            "the time for work on subtasks is over: extend the deadline first": not has_time,
        }
        for why, applies in refusals.items():
            if applies:
                raise ValueError(why)

    def check_open(self, subtask_id: str) -> None:
        """Raises ValueError if the subtask has ended."""
        if (report := self._report(subtask_id)).state not in _OPEN:
            raise ValueError(
                f"{quoted(subtask_id)} has ended already: it is {report.state}. retry_subtask has it done again"
            )

    def retry(self, new: RetrySubtask) -> None:
        """Has a subtask worked on again."""
        self.retries[new.subtask_id] = new.instruction or ""

    def next_retry(self) -> tuple[str, str]:
        """Takes out the latest request to repeat a subtask: its id and the instruction."""
        return self.retries.popitem()

    def forget_retries(self) -> None:
        """Drops the requests to repeat subtasks."""
        self.retries.clear()

    def take_skip(self, subtask_id: str) -> Problem:
        """Takes out why a subtask is to be ended."""
        return self.skips.pop(subtask_id)

    def skip(self, new: SkipSubtask) -> None:
        """Has a subtask ended."""
        why = f"{new.by or 'a person'} skipped it{f': {new.comment}' if new.comment else ''}"
        self.skips[new.subtask_id] = Problem(type=ErrorKind.CANCELLED, message=why)

    def _report(self, subtask_id: str) -> SubtaskReport:
        if subtask_id in self._board:
            return self._board[subtask_id]
        first, _, rest = subtask_id.partition("/")
        if rest:
            workflow = first in self._board and self._board[first].workflow_id
            where = f"'{workflow}', as '{rest}'" if workflow else "its workflow"
            raise ValueError(f"{quoted(subtask_id)} is in a nested run: send this to {where}")
        known = [report.id for report in self._board.reports()]
        raise ValueError(f"the plan has no subtask {quoted(subtask_id)}{did_you_mean(subtask_id, known)}")


class Proposals:
    """The plan that waits for a person's approval, and the roles of those that were approved.

    `estimate` is the one that was shown last. `number` is that of the last plan that a person was
    asked about.
    """

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.estimate: Estimate | None = None
        self.approved_roles: set[str] = set()
        self.number = 0

    def begin(self, plan: Plan, estimate: Estimate | None) -> None:
        """Shows a plan that a person has to decide about."""
        self.plan = plan
        self.estimate = estimate

    def end(self) -> None:
        """Shows no plan for a decision any more."""
        self.plan = None

    def show_estimate(self, estimate: Estimate | None) -> None:
        """Shows the estimate of another plan."""
        self.estimate = estimate

    def approve_roles_of(self, plan: Plan | None) -> None:
        """Takes the roles of a plan for approved: no other plan is asked about because of them."""
        if plan is not None:
            self.approved_roles |= {subtask.role for subtask in plan.subtasks}

    def next_number(self, revision: int) -> int:
        """Returns the number of the next plan: its revision, unless that is used up."""
        self.number = max(self.number + 1, revision)
        return self.number
