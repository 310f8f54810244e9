"""The questions of judgement: to refine a description, review findings, choose, settle a conflict.

Each has its input and reply, its prompt, the form of its answer, and its reader. An unreadable
answer never fails a run.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Literal

from activities.contracts.run_contracts import (
    CallTerms,
    FindingRefs,
    SupervisorCall,
    SupervisorReply,
)
from activities.prompts.prompt_blocks import (
    DATA_RULE,
    block,
    described,
    finding_block,
    findings_block,
    plain,
    repair,
    tag,
)
from activities.questions.known_texts import known_findings, outputs_behind
from activities.questions.planning_prompts import role_means
from activities.questions.question import Desk, Question, ask_model
from activities.replies.agent_story import attempt_story
from activities.store.artifacts import ArtifactError
from activities.store.reading import FindingExcerpt, list_bytes, read_plan, read_text, with_findings
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.prompt_marks import (
    ATTEMPT,
    CANDIDATE,
    ERROR,
    GOAL,
    SUBTASK,
)
from temporal_supervisor.supervision.base.text import cut, one_line
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.plan import Subtask
from temporal_supervisor.supervision.contract.result import Contradiction, Problem
from temporal_supervisor.supervision.planning.plan_graph import description_problems
from temporal_supervisor.supervision.results.hearsay import KnownFinding, KnownTexts, names_a_fault

# --- A better description -------------------------------------------------------------------------


class RefineInput(SupervisorCall):
    """A failed subtask attempt, with its conversation at `tried_ref`, to be described better."""

    team_ref: str
    subtask_id: str
    description_ref: str | None = None
    role: str
    attempt: int
    error: Problem
    tried_ref: str | None = None

    @property
    def terms(self) -> CallTerms:
        """Names the step after the attempt."""
        return CallTerms(
            f"refine.{self.subtask_id}.{self.attempt}",
            f"refine {self.subtask_id}",
            f"{self.subtask_id} after a failure",
            limits.REFINE_MAX_TOKENS,
        )


class RefineReply(SupervisorReply):
    """The reference of the refined description; None if the model gave none."""

    description_ref: str | None = None
    preview: str = ""


class DescriptionDraft(Model):
    """The better description as the model writes it."""

    description: str


REFINE_SYSTEM = f"""You supervise worker agents. An attempt at a subtask failed. Rewrite its \
description so that the next attempt succeeds.

- Keep the scope: the entities, period, units and questions stay, and nothing is added.
- Say what the error, and the calls that were made, show to avoid or to do differently: fewer or \
smaller steps, another way to the same fact, what to do when a source has nothing. Ask only for \
what the role's tools and data can do.
- If the sources cannot have it, narrow the subtask to what they can give and say so in it. Then \
also say that its outcome is partial, and that limitations names what was left out: the answer has \
to show that it is missing.
- The worker agent sees only the new description, not the error.

{DATA_RULE}"""


def refine_request(
    goal: str,
    subtask: Subtask,
    role: str,
    error: Problem,
    means: str,
    story: str = "",
) -> str:
    """Returns the prompt for a better description.

    `means` are the role's tools and data, `story` is the failed attempt.
    """
    parts = [
        tag(GOAL, goal),
        tag(SUBTASK, subtask.description),
        f"The subtask was given to the role {role}. {plain(means)}",
        "The attempt failed:",
        tag(ERROR, f"{error.type}: {error.message}"),
        tag(ATTEMPT, story) if story else "",
        "Write the better description.",
    ]
    return "\n\n".join(filter(None, parts))


async def _refine(desk: Desk, call: RefineInput) -> RefineReply:
    """Returns a refined description; the old one stays if it is not concrete enough."""
    plan = await read_plan(desk.store, call.plan_ref)
    subtask = plan.subtask(call.subtask_id)
    if call.description_ref is not None:
        current = await read_text(desk.store, call.description_ref)
        subtask = subtask.model_copy(update={"description": current})
    goal = await read_text(desk.store, call.goal_ref)
    story = ""
    if call.tried_ref:
        # A description is rewritten from the error alone rather than not at all.
        with contextlib.suppress(ArtifactError):
            story = await attempt_story(desk.calls.conversations, call.tried_ref)
    loaded = await desk.teams.load(call.team_ref)
    catalogue = await desk.teams.catalogue(call.team_ref)
    role = next((role for role in loaded.team.roles if role.name == call.role), None)
    means = role_means(role, loaded.toolbox, catalogue)

    async def write_prompt(tokens: int) -> str:
        shown = cut(story, list_bytes(tokens))
        return refine_request(goal, subtask, call.role, call.error, means, shown)

    form = DescriptionDraft
    reply, draft = await ask_model(desk, call, RefineReply, REFINE_SYSTEM, form, write_prompt)
    # A brief is a ground for the figures of its agent: what was made up here would be found there.
    known = KnownTexts([goal, subtask.description, call.error.message, story, means])
    description = ""
    if draft:
        description = cut(known.known_sentences(draft.description), limits.DESCRIPTION_CHARS)
    if not description_problems(subtask.model_copy(update={"description": description})):
        reply.description_ref = await desk.store.put_output(call.run.run_id, description)
        reply.preview = cut(description, limits.REPLY_PREVIEW_BYTES)
    return reply


# --- A review -----------------------------------------------------------------------------------


class ReviewInput(SupervisorCall):
    """Findings to be checked against the goal; `former` is the feedback of the previous round.

    `problems` are the faults of an unreadable review, which is not shown again.
    """

    round: int
    problems: list[str] = []
    former: dict[str, str] = {}
    findings: FindingRefs

    @property
    def terms(self) -> CallTerms:
        """Names the step after the round."""
        again = ".2" if self.problems else ""
        step = f"review.{self.round}{again}"
        return CallTerms(step, "the review", f"round {self.round}", limits.REVIEW_MAX_TOKENS)


class ReviewReply(SupervisorReply):
    """The feedback on insufficient findings, the conflicts, and the points that the plan misses.

    `without_effect` are findings with a refusal that code could not confirm.
    """

    feedback: dict[str, str] = {}
    without_effect: list[str] = []
    conflicts: list[Contradiction] = []
    missing: list[str] = []


class VerdictDraft(Model):
    """A verdict as the reviewer writes it."""

    subtask_id: str
    feedback: str = ""
    ok: bool


class ConflictDraft(Model):
    """A conflict as the reviewer writes it."""

    subtask_ids: list[str]
    description: str


class ReviewDraft(Model):
    """A review as the reviewer writes it."""

    verdicts: list[VerdictDraft]
    conflicts: list[ConflictDraft] = []
    missing: list[str] = []


_DIFFER = "These findings differ."
_EXAMPLES = "Of the subtasks for each item some examples follow; the others were worked on alike."

REVIEW_SYSTEM = f"""You supervise worker agents. You check their findings against the goal.

Below each finding stands what a program found in the tool outputs behind it: for each figure and \
quotation the line that has it or the calculation that gives it, or "nowhere". For each finding go \
through these questions, then write feedback, then ok:

1. Does it answer what its subtask asks: every entity, period and unit, and the question itself, \
not a similar one?
2. Is each figure that matters the right one (the right thing, year and unit in its line)? \
"nowhere" is a fault if the answer would depend on that figure.
3. Do its conclusions follow from its figures? Growth reported as decline, or a cause that no \
source states, is a fault.
4. Does it contradict another finding?

- ok is false only if fixing the finding would change the answer. A finding that says honestly \
that its sources have nothing is ok.
- feedback names the one figure, period or question and what to do: "PLACE in YEAR is missing: \
query it and add the fall since START", not "add more detail". It is empty where ok is true. The \
worker agent continues its conversation with it.
- Ask for no more than the subtask does, and not for style. What your former verdicts accepted \
stays accepted unless the finding changed.
- missing lists what the goal asks for and no subtask covers, one short sentence each.
- conflicts lists findings that contradict each other on a fact: their ids, and what differs.

{DATA_RULE}"""


def review_request(
    goal: str,
    subtasks: list[Subtask],
    findings: list[FindingExcerpt],
    former: dict[str, str],
    room: int = limits.PROMPT_LIST_BYTES,
    problems: Sequence[str] = (),
) -> str:
    """Returns the prompt of a review; `former` is the feedback of the previous round.

    `room` is the bytes of each list. `problems` are the faults of an unreadable review.
    """
    listed = described(subtasks, room)
    if any(subtask.for_each for subtask in subtasks):
        listed += f"\n{_EXAMPLES}"
    shown = findings_block(findings, with_evidence=True)
    parts = [tag(GOAL, goal), tag("subtasks", listed), shown]
    if former:
        lines = ["In the round before you asked for:"]
        for subtask_id, feedback in former.items():
            lines.append(f"- {subtask_id}: {one_line(feedback, limits.PARAGRAPH_BYTES)}")
        parts.append(tag("former_verdicts", "\n".join(lines)))
    if problems:
        parts.append(repair("review", problems))
    return "\n\n".join([*parts, "Review the findings."])


def _conflicts(
    conflicts: Sequence[ConflictDraft],
    reviewed: Sequence[str],
    known: KnownTexts,
) -> list[Contradiction]:
    """Returns the conflicts between reviewed findings: one for each set of them."""
    found: dict[frozenset[str], Contradiction] = {}
    for conflict in conflicts:
        named = dict.fromkeys(conflict.subtask_ids)
        ids = [subtask_id for subtask_id in named if subtask_id in reviewed]
        if len(ids) < 2 or not conflict.description.strip():
            continue
        new = Contradiction(subtask_ids=ids, description="")
        joint = found.setdefault(frozenset(ids), new)
        known_words = known.known_sentences(conflict.description)
        description = f"{joint.description}\n{known_words}".strip()
        joint.description = cut(description, limits.PARAGRAPH_BYTES)
    for joint in found.values():
        joint.description = joint.description or _DIFFER
    return [*found.values()]


async def _review(desk: Desk, call: ReviewInput) -> ReviewReply:
    """Returns feedback on the findings that fall short, and conflicts between findings."""
    plan = await read_plan(desk.store, call.plan_ref)
    goal = await read_text(desk.store, call.goal_ref)
    reviewed = list(dict.fromkeys(finding.subtask_id for finding in call.findings))
    subtasks = [subtask for subtask in plan.subtasks if subtask.id in reviewed or subtask.for_each]

    async def write_prompt(tokens: int) -> str:
        write = partial(
            review_request,
            goal,
            subtasks,
            former=call.former,
            room=list_bytes(tokens),
            problems=call.problems,
        )
        return await with_findings(desk.store, call.findings, write, tokens)

    form = ReviewDraft
    reply, draft = await ask_model(desk, call, ReviewReply, REVIEW_SYSTEM, form, write_prompt)
    if draft is None:
        return reply

    findings = await known_findings(desk.store, call.findings)
    outputs: list[str] = []
    known = KnownTexts([])
    if _says_anything(draft):
        given = [goal, *(subtask.whole for subtask in plan.subtasks)]
        outputs = await outputs_behind(desk.store, findings)
        known = await asyncio.to_thread(KnownTexts.of_run, given, findings, outputs)
    asked = {subtask.id: subtask.whole for subtask in plan.subtasks}
    by_id = {finding.subtask_id: finding for finding in findings}

    failing = []
    for verdict in draft.verdicts:
        # A verdict without feedback gives its worker agent nothing to fix.
        has_feedback = bool(verdict.feedback.strip())
        if not verdict.ok and has_feedback and verdict.subtask_id in reviewed:
            failing.append(verdict)
    for verdict in failing[: limits.VERDICTS]:
        words = cut(known.known_sentences(verdict.feedback), limits.FEEDBACK_BYTES)
        subtask = asked.get(verdict.subtask_id, goal)
        if words and _has_effect(words, subtask, by_id[verdict.subtask_id], outputs):
            reply.feedback[verdict.subtask_id] = words
        else:
            reply.without_effect.append(verdict.subtask_id)

    reply.conflicts = _conflicts(draft.conflicts, reviewed, known)[: limits.CONFLICTS]

    points = (known.known_sentences(item) for item in draft.missing)
    lacks = (one_line(point, limits.PARAGRAPH_BYTES) for point in points)
    reply.missing = [*filter(None, lacks)][: limits.PLAN_LACKS]
    return reply


def _says_anything(draft: ReviewDraft) -> bool:
    refuses = any(not verdict.ok for verdict in draft.verdicts)
    return refuses or bool(draft.conflicts or draft.missing)


def _has_effect(feedback: str, asked: str, finding: KnownFinding, outputs: list[str]) -> bool:
    """True if a refusal counts: code has doubts, too, or can confirm what the refusal names."""
    if not finding.is_all_found or finding.record.outcome == "partial":
        return True
    return names_a_fault(feedback, asked, finding.text, finding.calls, outputs)


# --- A choice, a conflict -------------------------------------------------------------------------


class JudgeInput(SupervisorCall):
    """Findings to choose from (`select`), or that disagree (`conflict`)."""

    number: int
    question: Literal["select", "conflict"]
    description: str
    findings: FindingRefs

    @property
    def terms(self) -> CallTerms:
        """Names the step after the number of the judgement."""
        summary = f"{self.question} of {len(self.findings)} findings"
        return CallTerms(f"judge.{self.number}", "the judge", summary, limits.JUDGE_MAX_TOKENS)


class JudgeReply(SupervisorReply):
    """The judgement: `choice` is an index into the findings, None if none is preferred.

    `resolution` is the judge's reason; without one, `problem` tells why.
    """

    choice: int | None = None
    resolution: str = ""


class JudgementDraft(Model):
    """A judgement as the judge writes it, the findings counted from 1."""

    reason: str = ""
    choice: int | None = None


SELECT_SYSTEM = f"""You supervise worker agents. Several of them did the same subtask \
independently. Choose the best finding.

- First put aside candidates with important figures or quotations that were found "nowhere" in \
their tool outputs.
- Then put aside those that leave out a part of the subtask.
- Of the rest take the one whose statements its evidence supports best; if two agree, take one of \
them.
- Being longer, or more confident, is not a merit.
- reason is one sentence, written before choice. choice is the number of the candidate.

{DATA_RULE}"""


CONFLICT_SYSTEM = f"""You supervise worker agents. Some of their findings disagree. Decide how the \
answer should treat the difference. Below each finding stands what a program found in the tool \
outputs behind it.

- Prefer a number that a tool returned over one that the worker agent stated without a source.
- reason says in one or two sentences how the answer should treat each difference.
- choice is the number of the candidate to follow. It is null when neither deserves it, or when \
both hold in their own sense.

{DATA_RULE}"""


def judge_request(
    question: Literal["select", "conflict"],
    goal: str,
    description: str,
    findings: list[FindingExcerpt],
) -> str:
    """Returns the prompt of a choice or a conflict, its candidates numbered from 1."""
    candidates = []
    for number, finding in enumerate(findings, 1):
        shown = finding_block(finding, with_evidence=True)
        candidates.append(f'<{CANDIDATE} number="{number}">\n{shown}\n</{CANDIDATE}>')
    if question == "select":
        about, last_words = tag(SUBTASK, description), "Choose the best candidate."
    else:
        about, last_words = tag("conflict", description), "Settle the conflict."
    return "\n\n".join([tag(GOAL, goal), about, block("candidates", candidates), last_words])


async def _judge(desk: Desk, call: JudgeInput) -> JudgeReply:
    """Returns the judge's choice; None if there is none, or if the reply is unreadable."""
    goal = await read_text(desk.store, call.goal_ref)
    write = partial(judge_request, call.question, goal, call.description)
    write_prompt = partial(with_findings, desk.store, call.findings, write)
    system = SELECT_SYSTEM if call.question == "select" else CONFLICT_SYSTEM
    reply, judged = await ask_model(desk, call, JudgeReply, system, JudgementDraft, write_prompt)
    if judged is None:
        return reply

    chosen = judged.choice or 0
    reply.choice = chosen - 1 if 1 <= chosen <= len(call.findings) else None
    findings = await known_findings(desk.store, call.findings)
    outputs = await outputs_behind(desk.store, findings)
    given = [goal, call.description]
    known = await asyncio.to_thread(KnownTexts.of_run, given, findings, outputs)
    reply.resolution = cut(known.known_sentences(judged.reason), limits.PARAGRAPH_BYTES)
    return reply


REFINE = Question("refine", RefineInput, RefineReply, _refine)
REVIEW = Question("review", ReviewInput, ReviewReply, _review)
JUDGE = Question("judge", JudgeInput, JudgeReply, _judge)
