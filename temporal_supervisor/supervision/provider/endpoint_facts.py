"""The traits of a model endpoint: data of a run from its first activity on.

A Worker asks its endpoint (`activities.model.endpoint_probe`). A run keeps the facts that were
known when it began, so that it is unaffected by a Worker's later findings or other settings.
"""

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.base import Model

NAMES_KEPT = 20  # of an endpoint's models: gateways list hundreds, and a message shows a few


class ModelTraits(Model):
    """The traits of one model at its endpoint; None if unknown.

    `window` is the number of tokens of prompt and reply together. The model follows
    `output_config.format` (`schemas`) and `tool_choice` (`forced_tools`), and thinks on request
    (`thinking`). `short_prompts` is a setting.
    """

    window: int | None = None
    short_prompts: bool | None = None
    schemas: bool | None = None
    forced_tools: bool | None = None
    thinking: bool | None = None


class EndpointFacts(Model):
    """The facts about an endpoint: its address, and the traits of its models by name.

    `slots` is the number of calls that it serves at once. `asked` is True once it has answered;
    before that the traits are assumptions.
    """

    address: str = ""
    asked: bool = False
    names: list[str] = []
    slots: int | None = None
    models: dict[str, ModelTraits] = {}

    @property
    def only_name(self) -> str | None:
        """The only model of the endpoint; None if it has none or several."""
        return self.names[0] if len(self.names) == 1 else None

    def traits(self, model: str) -> ModelTraits:
        """Returns the traits of a model; all are None if it is unknown."""
        return self.models.get(model, ModelTraits())

    def shown_names(self) -> str:
        """Returns the names of the endpoint's models for a message."""
        return one_line(", ".join(self.names[:NAMES_KEPT]), limits.PARAGRAPH_BYTES)

    def lines(self) -> list[str]:
        """Returns a line for each model that was asked: its abilities and their consequences."""
        if not self.asked:
            return [f"model endpoint {self.address}: it has not answered yet"]
        if not self.models:
            names = self.shown_names()
            return [
                f"model endpoint {self.address}: {names}"
                if names
                else f"model endpoint {self.address}"
            ]
        phrases = [trait_phrases(name, traits) for name, traits in self.models.items()]
        return [f"model endpoint {self.address}: {', '.join(words)}" for words in phrases]


def trait_phrases(name: str, traits: ModelTraits) -> list[str]:
    """Returns the name of a model, and a phrase for each known trait."""
    words = [name, f"window {traits.window:,} tokens" if traits.window else "window unknown"]
    if traits.schemas is not None:
        words.append(
            "it keeps to schemas"
            if traits.schemas
            else "it ignores schemas, so JSON is asked for in words"
        )
    if traits.forced_tools is False:
        words.append("it ignores tool_choice")
    if traits.thinking:
        words.append("it thinks")
    return words
