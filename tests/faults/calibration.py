"""How sure the code is of right and of wrong answers: `python -m tests.faults.calibration` prints the table.

Each honest answer, each one with a planted fault and each one of a real model is the finding of a run's only subtask,
checked as the product does, and its answer. No model says how sure it is, so that the bound of code counts alone.
"""

from collections import Counter

from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.result import Citation, SubtaskReport
from temporal_supervisor.supervision.grounding.support import found_nowhere
from temporal_supervisor.supervision.results.answer import Answer as RunAnswer
from temporal_supervisor.supervision.results.confidence import DOUBTFUL, SURE, ceiling
from tests.faults.answers import Answer, honest, is_gap, planted, recorded, unsupported

BANDS = ((SURE, 1.01, "0.75 and more"), (DOUBTFUL, SURE, "0.5 to 0.75"), (0.0, DOUBTFUL, "below 0.5"))


def bound_of(answer: Answer, is_cited: bool = True) -> float:
    """Returns the confidence of a run whose only finding and answer is this one; an empty one is a gap."""
    report = SubtaskReport(id="t1", state="failed" if is_gap(answer) else "completed")
    if report.state == "completed":
        claims = found_nowhere(unsupported(answer))
        report.finding = Finding(summary=answer.text, text_ref="r", unsupported=claims)
    citations = [Citation(claim=answer.text, subtask_ids=["t1"])] if is_cited else []
    return ceiling(RunAnswer(text=answer.text, citations=citations), [report], {"t1": "required"}, [], [], [])


def table() -> list[str]:
    """Returns rows in Markdown: for each band of confidence how many answers are right and how many are wrong."""
    counts = Counter[tuple[str, bool]]()
    for answer in (*honest(), *planted(), *recorded()):
        for is_cited in (True, False):
            bound = bound_of(answer, is_cited)
            band = next(name for low, high, name in BANDS if low <= bound < high)
            counts[f"{band}{'' if is_cited else ', nothing cited'}", not answer.fault] += 1
    names = [f"{name}{more}" for more in ("", ", nothing cited") for _, _, name in BANDS]
    rights = {name: counts[name, True] for name in names}
    totals = {name: counts[name, True] + counts[name, False] for name in names}
    return [
        f"| {name} | {right} | {totals[name] - right} | {right / totals[name]:.0%} |"
        for name, right in rights.items()
        if totals[name]
    ]


if __name__ == "__main__":
    print("| confidence | right | wrong | right of all |", "|---|---|---|---|", *table(), sep="\n")
