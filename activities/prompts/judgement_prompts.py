"""Prompts of the supervisor's judgement: refining, reviewing, judging, and writing the answer."""

from activities.contracts.judgement_contracts import Verdict
from activities.prompts.agent_prompts import (
    DATA_RULE,
    block,
    contradiction_block,
    findings_block,
    first_of,
    gap_blocks,
    plain,
    tag,
)
from activities.store.reading import FindingExcerpt
from supervision import limits
from supervision.contract.plan import Plan, Subtask
from supervision.contract.result import Contradiction, Gap, Problem
from supervision.prompt_marks import ATTEMPT, CANDIDATE, DIGEST, DRAFT, ERROR, GOAL, MISSING, SUBTASK
from supervision.text import one_line

REFINE_SYSTEM = f"""You supervise worker agents. An attempt at a subtask failed; rewrite its description so that the \
next one succeeds.

- Keep its scope: entities, period, units and questions stay, nothing is added.
- Say plainly what the error, and the calls that were made, show to avoid or to do differently: fewer or smaller \
steps, another way to the same fact, what to do when a source has nothing.
- When the attempt says that it is impossible, ask for what the sources can give, and for a plain word on the rest.
- The worker agent sees the new description alone, and knows nothing of the error.

{DATA_RULE}"""


def refine_request(goal: str, subtask: Subtask, role: str, error: Problem, story: str = "") -> str:
    """Returns the prompt for a better description: the subtask, how its attempt failed, and what that had tried."""
    tried = [tag(ATTEMPT, story)] if story else []
    return "\n\n".join(
        [
            tag(GOAL, goal),
            tag(SUBTASK, subtask.description),
            f"It was given to the role {role}. The attempt failed:",
            tag(ERROR, f"{error.type}: {error.message}"),
            *tried,
            "Write the better description.",
        ]
    )


REVIEW_SYSTEM = f"""You supervise worker agents. You check their findings against the goal.

- One verdict for each finding: would mending it change the answer? ok is true when it does what its subtask asks well \
enough for that; one that says honestly that its sources hold nothing is ok.
- Below a finding stand its tool calls with the beginnings of their outputs: hold figures against them. "No tool \
output has" lists what code found nowhere.
- Where ok is false, feedback says exactly which figure, unit, period, source or question is wrong or missing: the \
worker agent goes on in its conversation with it. wrong_approach is true where it should begin anew.
- Ask for no more than the subtask does, nor for style. What your former verdicts accepted stays accepted unless its \
finding changed.
- missing lists what the goal asks for and no subtask covers, a short sentence each.
- conflicts lists findings that contradict each other on a fact: their ids, and what differs.

{DATA_RULE}"""


def described(subtasks: list[Subtask], room: int) -> str:
    """Returns a line for each subtask, of ids and descriptions that share `room` bytes."""
    share = room // max(1, len(subtasks))
    return "\n".join(f"- {subtask.id} ({subtask.role}): {one_line(subtask.description, share)}" for subtask in subtasks)


def review_request(
    goal: str,
    subtasks: list[Subtask],
    findings: list[FindingExcerpt],
    former: list[Verdict] | None = None,
    room: int = limits.PROMPT_LIST_BYTES,
) -> str:
    """Returns the prompt of a review: the goal, the subtasks, their findings, and the verdicts of the round before.

    `room` is for each list.
    """
    listed = described(subtasks, room)
    before = [
        f"- {verdict.subtask_id}: {one_line(verdict.feedback, limits.PARAGRAPH_BYTES)}" for verdict in former or []
    ]
    asked = [tag("former_verdicts", "\n".join(["You asked for this in the round before:", *before]))] if before else []
    shown = findings_block(findings, with_evidence=True)
    return "\n\n".join([tag(GOAL, goal), tag("subtasks", listed), shown, *asked, "Review the findings."])


SELECT_SYSTEM = f"""You supervise worker agents. Several did the same subtask independently; choose the best finding.

- Prefer the one that answers the whole subtask with figures, units and sources; then the one that agrees with the \
others; never the longest for its length.
- choice is the number of the candidate. reason is one sentence.

{DATA_RULE}"""


def select_request(goal: str, description: str, findings: list[FindingExcerpt]) -> str:
    """Returns the prompt of a choice: the candidates of one subtask, numbered from 1."""
    candidates = [
        f'<{CANDIDATE} number="{number}" role="{finding.role}">\n{plain(finding.text)}\n</{CANDIDATE}>'
        for number, finding in enumerate(findings, 1)
    ]
    return "\n\n".join(
        [tag(GOAL, goal), tag(SUBTASK, description), block("candidates", candidates), "Choose the best candidate."]
    )


CONFLICT_SYSTEM = f"""You supervise worker agents. Some of their findings disagree; settle it from what they say and \
what they rest on, which stands below them.

- A figure that a tool returned counts more than one that it did not.
- prefer is the id of the finding to go by; null when none deserves it or both hold in their own sense.
- resolution says in one or two sentences how the answer should treat the difference.

{DATA_RULE}"""


def conflict_request(goal: str, description: str, findings: list[FindingExcerpt]) -> str:
    """Returns the prompt of a conflict: the point, and the findings that disagree on it."""
    return "\n\n".join(
        [
            tag(GOAL, goal),
            tag("conflict", description),
            findings_block(findings, with_evidence=True),
            "Settle the conflict.",
        ]
    )


SYNTHESIS_SYSTEM = f"""You supervise worker agents. From their findings you write the one answer to the goal.

- answer is Markdown in the language, form and length that the goal asks for, else in its language and as short as it \
can be whole: first the answer to the question, then what it rests on.
- Use only what the findings say. Copy each figure with its unit and period, rounded at most: code compares them. \
Compute nothing, add no figure or fact of your own.
- After each statement name the findings it rests on in square brackets, such as [t2] or [t1, t3]. citations lists \
the same: the claim in a few words and the ids.
- Say so where a statement rests on a finding with partial="true", a low confidence or a limitation that matters, and \
where findings disagree: contradictions lists these with your resolution.
- subtasks shows all that was planned. Say in words what the reader does not get of what is missing.
- confidence, 0 to 1, is how likely the answer is right and whole: not above the findings' own, lower for what is \
missing, partial or disputed.

{DATA_RULE}"""

DIGEST_SYSTEM = f"""You supervise worker agents. There are more findings than one prompt can hold; you condense some \
for the one who writes the answer.

- Keep every figure with its unit, period and source, and every caveat. Drop repetition and wording.
- After each statement name the ids of the findings it rests on in square brackets, such as [t3].
- Add nothing of your own. Where findings disagree, keep both sides with their ids.
- Answer with the condensed text alone.

{DATA_RULE}"""


def synthesis_request(
    goal: str,
    plan: Plan | None,
    findings: list[FindingExcerpt],
    missing: list[Gap],
    open_points: list[Gap],
    contradictions: list[Contradiction],
    draft: str | None,
    last_words: str,
    room: int = limits.PROMPT_LIST_BYTES,
) -> str:
    """Returns the prompt of a synthesis; `draft` is an answer from findings that are not repeated here.

    A digest is written without the `plan`. `room` is for each list.
    """
    parts = [tag(GOAL, goal)]
    if plan is not None:
        if plan.final_instruction.strip():
            parts.append(tag("final_instruction", plan.final_instruction))
        parts.append(tag("subtasks", described(plan.subtasks, room)))
    if draft is not None:
        parts.append(tag(DRAFT, draft))
        parts.append(
            "The draft already holds what earlier findings said: keep its statements with their ids, unless a finding "
            "below corrects them. Only the findings that came later follow."
        )
    parts.append(findings_block(findings))
    if any(finding.role == DIGEST for finding in findings):
        parts.append(f"A finding of the role {DIGEST} condenses several: cite the ids in its square brackets.")
    parts += gap_blocks(MISSING, missing, room)
    if open_points:
        parts.append("A review found fault with these findings, and it could not be fixed; say so in the answer:")
        parts += gap_blocks("open_point", open_points, room)
    if contradictions:
        parts.append("These findings disagree; follow how it was settled, and say so in the answer:")
        parts += first_of([contradiction_block(item) for item in contradictions], room)
    return "\n\n".join([*parts, last_words])


FINAL_WORDS = "Write the answer."
DIGEST_WORDS = "Condense these findings."
DRAFT_WORDS = (
    "Some subtasks are still running: write a short draft of the answer from what is here. Name after each statement "
    "the ids of the findings it rests on in square brackets, such as [t3]: the findings will not be shown again."
)
JSON_WORDS = "answer_json holds the answer's facts in the form that was asked for; take every value from the findings."


def answer_repair(problems: list[str]) -> str:
    """Returns the message that sends an answer back with what is wrong with it."""
    listed = "\n".join(f"- {plain(problem)}" for problem in problems)
    return f"This answer can't be used:\n{listed}\n\nReturn the whole answer again with these points fixed."


def unsupported_problems(texts: list[str]) -> list[str]:
    """Returns what to say to the author of an answer that claims what no finding has, or not the one it cites."""
    shown = "; ".join(texts[: limits.UNSUPPORTED_SHOWN])
    return [
        f"these stand in no finding, or not in the finding cited beside them: {shown}. "
        "Take each from a finding as it stands there and cite that finding, or leave it out"
    ]
