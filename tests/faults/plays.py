"""What a scripted run says at each of its calls, and the honest runs that the faults are planted in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from tests.scripted_model import Reply, Script, Step, as_json, tools
from tests.workflow.scripts import subtasks

GOAL = "What was written of the pears of the garden in 2009 and in 2010, in kilograms?"
SURE = 0.9  # what the scripted model says of all it writes, faulty or not
Words = str | Reply
Sabotage = Callable[[Path], None]


@dataclass(frozen=True)
class Play:
    """A run: the plan's subtasks, each one's replies in order (the last again and again), reviews, answers.

    `sabotage` is done to the run's folder in the store before the answer is written.
    """

    plan: tuple[dict[str, Any], ...]
    turns: Mapping[str, tuple[Reply, ...]]
    answers: tuple[Reply, ...]
    reviews: tuple[Reply, ...] = (as_json({"verdicts": [], "conflicts": []}),)
    judge: Reply = as_json({"choice": 1, "reason": "first"})
    refine: Reply = as_json({"description": "Find the weight of the pears of that year in another way"})
    fields: Mapping[str, Any] = field(default_factory=dict)
    sabotage: Sabotage | None = None
    plan_more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """How many model calls the run takes when nothing is sent back."""
        judged = len([subtask for subtask in self.plan if subtask.get("candidates")])
        return 1 + sum(map(len, self.turns.values())) + judged + len(self.reviews) + len(self.answers)

    def script(self, store: Path) -> Script:
        """The run's replies; each call of a kind takes the next one."""
        taken: dict[str, count[int]] = {}

        def nth(key: str, replies: tuple[Reply, ...]) -> Reply:
            return replies[min(next(taken.setdefault(key, count())), len(replies) - 1)]

        def reply(step: Step) -> Reply:
            if step.kind == "plan":
                return nth("plan", (subtasks(*self.plan, **self.plan_more), subtasks()))
            if step.kind == "review":
                return nth("review", self.reviews)
            if step.kind == "judge":
                return self.judge
            if step.kind == "refine":
                return self.refine
            if step.kind == "synthesis":
                if self.sabotage:
                    self.sabotage(store / step.run_id)
                return nth("answer", self.answers)
            return nth(step.subtask_id or "", self.turns[step.subtask_id or ""])

        return reply


def finish(finding: str, outcome: str = "done", confidence: float | None = SURE, **more: Any) -> Reply:
    """A turn that concludes."""
    told = {"outcome": outcome, "summary": finding.splitlines()[0][:200], "finding": finding, "confidence": confidence}
    return tools(("finish", {**told, "limitations": [], **more}))


def says(words: str, *cites: str, **more: Any) -> Reply:
    """An answer; without marks in its text it cites `cites` at its end."""
    if cites and "[t" not in words:
        words = f"{words} [{', '.join(cites)}]"
    return as_json({"answer": words, "confidence": SURE, "contradictions": [], **more})


def item(subtask_id: str, description: str, **more: Any) -> dict[str, Any]:
    """A subtask of the clerk."""
    return {"id": subtask_id, "description": description, "role": "clerk", **more}


def book(year: int) -> Reply:
    """A turn that opens the harvest book."""
    return tools(("harvest", {"year": year}))


def computes(expression: str) -> Reply:
    """A turn that computes."""
    return tools(("calculate", {"expression": expression}))


def page(number: int) -> Reply:
    """A turn that reads a page of the notes."""
    return tools(("notes", {"page": number}))


def flags(**feedback: str) -> Reply:
    """A review that finds fault with those findings."""
    verdicts = [{"subtask_id": each, "ok": False, "feedback": words} for each, words in feedback.items()]
    return as_json({"verdicts": verdicts, "conflicts": []})


NO_FAULT = as_json({"verdicts": [], "conflicts": []})
PEARS = "Find the weight of the pears of {} in the harvest book, in kg"
FIRST = "The garden yielded 4,412 kg of pears in 2009, as the harvest book says."
SECOND = "The garden yielded 4,950 kg of pears in 2010, as the harvest book says."
GROWTH = "The yield of pears grew by 12.2 % from 2009 to 2010, from 4,412 kg to 4,950 kg."
ANSWER = "The garden yielded 4,412 kg of pears in 2009 [t1] and 4,950 kg in 2010 [t2], a growth of 12.2 % [t3]."

SAYS = "The garden yielded 4,412 kg of pears in 2009 [t1]."

YEARS = Play(
    plan=(
        item("t1", PEARS.format(2009)),
        item("t2", PEARS.format(2010)),
        item("t3", "Compute the growth of the yield of pears in percent", depends_on=["t1", "t2"]),
    ),
    turns={
        "t1": (book(2009), finish(FIRST)),
        "t2": (book(2010), finish(SECOND)),
        "t3": (computes("(4950 - 4412) / 4412 * 100"), finish(GROWTH)),
    },
    answers=(says(ANSWER, "t1", "t2", "t3"),),
)
ONE = Play(
    plan=(item("t1", PEARS.format(2009)),), turns={"t1": (book(2009), finish(FIRST))}, answers=(says(SAYS, "t1"),)
)
TWO = replace(
    YEARS,
    plan=YEARS.plan[:2],
    turns={name: YEARS.turns[name] for name in ("t1", "t2")},
    answers=(says("4,412 kg of pears in 2009 [t1] and 4,950 kg in 2010 [t2].", "t1", "t2"),),
)


def one(finding: str, answer: str, *before: Reply, **more: Any) -> Play:
    """A run of one subtask: its turns, its finding, the answer."""
    turns = (*(before or (book(2009),)), finish(finding))
    return replace(ONE, turns={"t1": turns}, answers=(says(answer, "t1"),), **more)


QUOTE = "the late frost of May took every third blossom"
ADDRESS = "https://orchard.example.org/frost"
QUOTED = f'The gardener wrote: "{QUOTE}" ({ADDRESS}).'
NOTED = one(QUOTED, f"{QUOTED} [t1]", page(1))


def finding(play: Play, subtask_id: str, words: Words) -> Play:
    """The same run with another finding of that subtask, and an answer that follows the subtask."""
    last = finish(words) if isinstance(words, str) else words
    return replace(play, turns={**play.turns, subtask_id: (*play.turns[subtask_id][:-1], last)})


def answering(play: Play, *answers: Words) -> Play:
    """The same run with other answers, which cite the same subtasks."""
    ids = [subtask["id"] for subtask in play.plan]
    return replace(play, answers=tuple(says(a, *ids) if isinstance(a, str) else a for a in answers))


def ends(play: Play, subtask_id: str, *replies: Reply) -> Play:
    """The same run where that subtask says these things."""
    return replace(play, turns={**play.turns, subtask_id: replies})


def spoil(change: Callable[[bytes], bytes | None], holding: bytes) -> Sabotage:
    """Changes or deletes the stored findings that hold these words."""

    def sabotage(folder: Path) -> None:
        for path in (folder / "outputs").iterdir():
            data = path.read_bytes()
            if data.startswith(holding):
                changed = change(data)
                path.unlink()
                if changed is not None:
                    path.write_bytes(changed)

    return sabotage
