"""What the tools of the MCP server return, the forms that people fill in, and the addresses of resources."""

from typing import Literal
from urllib.parse import quote

from pydantic import BaseModel, Field, JsonValue

from supervision.contract.progress import Counts
from supervision.contract.result import Citation, Contradiction, Gap, Unsupported
from supervision.contract.status import WaitKind

REPORT_URI = "supervisor://run/{run_id}/report"
REPORT_TYPE = "text/markdown"
ARTIFACT_URI = "supervisor://run/{run_id}/artifact/{sha256}"


def uri(template: str, **parts: str) -> str:
    """Returns the address of a resource."""
    return template.format(**{name: quote(part, safe="") for name, part in parts.items()})


class StartedRun(BaseModel):
    """A run that has been started; `web` is its page in Temporal's Web UI."""

    run_id: str
    web: str | None = None


class AskedItem(BaseModel):
    """What a run asks a person; `shown` is all of it, `preview` its beginning."""

    run_id: str
    goal: str
    id: str
    kind: WaitKind
    preview: str
    shown: str | None = None
    choices: list[str] = []
    arguments_sha256: str | None = None
    since: str
    expires_at: str | None = None


class AskedItems(BaseModel):
    """What all open runs ask, the oldest first; no Worker says what the `unanswered` ones ask."""

    items: list[AskedItem] = []
    unanswered: list[str] = []


class RunStanding(BaseModel):
    """Where a run stands: `state` is `running` until it has ended; `notes` say what it stands still for."""

    run_id: str
    state: str
    phase: str
    subtasks: Counts | None = None
    usd: float | None = None
    asked: list[AskedItem] = []
    notes: list[str] = []


class ArtifactLink(BaseModel):
    """A file that a run made."""

    name: str
    media_type: str
    bytes: int
    uri: str


class RunAnswer(BaseModel):
    """The answer of a run, or what there is of it; `problem` says why there is none."""

    run_id: str
    state: str
    status: str | None = None
    problem: str = ""
    answer: str = ""
    answer_json: JsonValue = None
    confidence: float | None = None
    gaps: list[Gap] = []
    contradictions: list[Contradiction] = []
    citations: list[Citation] = []
    unsupported: list[Unsupported] = []
    usd: float | None = None
    truncated: bool = False
    artifacts: list[ArtifactLink] = []
    report: str


class Taken(BaseModel):
    """What a run says to a decision or a word."""

    message: str


class Form(BaseModel):
    """What a person fills in; a subclass for each kind of question."""

    @property
    def said(self) -> tuple[str, str | None]:
        """The word of `decide` in the client package, and the text with it."""
        raise NotImplementedError


class PlanForm(Form):
    """A person's decision about a plan."""

    decision: Literal["approve", "change", "deny"]
    comment: str = Field("", description="what should be different, or why not")

    @property
    def said(self) -> tuple[str, str | None]:
        """Another plan is asked for by a reply."""
        return ("reply" if self.decision == "change" else self.decision), self.comment or None


class CallForm(Form):
    """A person's decision about a tool call."""

    decision: Literal["approve", "deny"]
    comment: str = Field("", description="a word to the model")

    @property
    def said(self) -> tuple[str, str | None]:
        """The comment goes to the model."""
        return self.decision, self.comment or None


class ReplyForm(Form):
    """A person's reply to a question, or finding."""

    reply: str

    @property
    def said(self) -> tuple[str, str | None]:
        """The reply."""
        return "reply", self.reply
