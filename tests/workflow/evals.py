"""Small evals for tests: questions about pears, and a model that answers each as its own words say."""

from dataclasses import dataclass
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.contracts.eval_contracts import TABLE, EvalInput, EvalResult, OwnLimits
from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base.store_keys import named_key
from temporal_supervisor.supervision.scores.eval_plan import EvalSet, EvalVariant
from temporal_supervisor.supervision.scores.question_sets import EvalQuestion
from temporal_supervisor.supervision.scores.score_table import EvalTable
from tests.scripted_model import Reply, Script, Step, answer, as_json, plan, stop, text, tools
from workflows.eval_workflow import EvalWorkflow

LAB = {"team": "lab", "max_reviews": 0, "max_replans": 0}
EvalHandle = WorkflowHandle[EvalWorkflow, EvalResult]


@dataclass(frozen=True)
class Says:
    """What the model says to a question: the number that it looks up, and the fields of its answer."""

    number: int | None
    fields: dict[str, Any] | None = None
    words: str = ""

    @property
    def finding(self) -> str:
        """The words of finding and answer."""
        return self.words or f"There are {self.number} pears in garden 1"


def number(question_id: str, value: float) -> EvalQuestion:
    """Returns a question with a number as its answer."""
    return EvalQuestion.model_validate(
        {
            "id": question_id,
            "question": f"How many pears, in {question_id}?",
            "answer": {"kind": "number", "value": value},
        }
    )


def asked(question_id: str, kind: str, value: Any = None) -> EvalQuestion:
    """Returns a question with another kind of answer."""
    answers = {"kind": kind, "value": value}
    return EvalQuestion.model_validate({"id": question_id, "question": f"What is {question_id}?", "answer": answers})


def saying(replies: dict[str, Says | None]) -> Script:
    """Answers each question as it says; one without words is refused."""

    def reply(step: Step) -> Reply:
        name = step.run_id.rpartition("/")[2].partition("~")[0]
        says = replies[name]
        if says is None:
            return stop("refusal")
        if step.kind == "plan":
            return plan({"id": "t1"})
        if step.kind == "turn" and step.number == 1:
            return tools(("lookup", {"query": f"{says.number} pears in garden 1"}))
        if step.kind == "turn":
            return text(f"{says.finding}.\n\nConfidence: 0.8\nLimitations: none")
        if step.kind == "synthesis":
            fields = {"value": says.number, "scale": ""} if says.fields is None else says.fields
            return answer(f"{says.finding} [t1].", answer_json=fields)
        return as_json({"verdicts": [], "conflicts": []})

    return reply


async def begun(
    client: Client, store: ArtifactStore, eval_id: str, questions: list[EvalQuestion], **more: Any
) -> EvalHandle:
    """Starts an eval of these questions."""
    variants = more.pop("variants", [EvalVariant(label="lab", request=LAB)])
    whole = EvalSet(name="pears", questions=questions, variants=variants)
    ref = await store.put_upload(whole.model_dump_json().encode())
    own = OwnLimits(tokens=100_000, usd=5.0, seconds=120)
    given = EvalInput(set_ref=ref, name="pears", total=whole.total, own=own, **more)
    return await client.start_workflow(EvalWorkflow.run, given, id=eval_id, task_queue="supervisor")


async def table_in(store: ArtifactStore, eval_id: str) -> EvalTable:
    """Returns the table that an eval has left."""
    return EvalTable.model_validate_json(await store.get(named_key("scores", eval_id, TABLE)))
