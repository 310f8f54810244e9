"""The traits of an endpoint of models: data of a run, from its first activity on.

A Worker asks its endpoint (`activities.model.asked_endpoint`); a run keeps what was known when it
began, so that no Worker's later finding, nor another setting, changes it.
"""

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.base import Model

NAMES_KEPT = 20  # of an endpoint's models: gateways list hundreds, and a message shows a few


class ModelTraits(Model):
    """The traits of one model at its endpoint; None where it is not known.

    `window` are the tokens of prompt and reply together. `schemas`: it keeps to
    `output_config.format`; `forced_tools`: to `tool_choice`; `thinking`: it thinks where it is
    asked to. `short_prompts` is as it was set.
    """

    window: int | None = None
    short_prompts: bool | None = None
    schemas: bool | None = None
    forced_tools: bool | None = None
    thinking: bool | None = None


class EndpointFacts(Model):
    """The facts about an endpoint: its address, and the traits of its models by their names.

    `slots` are the calls that it serves at once. `asked` is True once it has answered: before that
    everything is assumed.
    """

    address: str = ""
    asked: bool = False
    names: list[str] = []
    slots: int | None = None
    models: dict[str, ModelTraits] = {}

    @property
    def only_name(self) -> str | None:
        """The model to use if nobody says which; None if there are none, or several."""
        return self.names[0] if len(self.names) == 1 else None

    def traits(self, model: str) -> ModelTraits:
        """Returns the traits of a model, all unknown if none are known."""
        return self.models.get(model, ModelTraits())

    def shown_names(self) -> str:
        """Returns the names of its models for a message."""
        return one_line(", ".join(self.names[:NAMES_KEPT]), limits.PARAGRAPH_BYTES)

    def lines(self) -> list[str]:
        """Returns a line for each model that was asked about: what it takes, and what that means."""
        if not self.asked:
            return [f"model endpoint {self.address}: it has not answered yet"]
        if not self.models:
            names = self.shown_names()
            return [f"model endpoint {self.address}: {names}" if names else f"model endpoint {self.address}"]
        phrases = [trait_phrases(name, traits) for name, traits in self.models.items()]
        return [f"model endpoint {self.address}: {', '.join(words)}" for words in phrases]


def trait_phrases(name: str, traits: ModelTraits) -> list[str]:
    """Returns the traits of a model in words, its name first."""
    words = [name, f"window {traits.window:,} tokens" if traits.window else "window unknown"]
    if traits.schemas is not None:
        words.append("it keeps to schemas" if traits.schemas else "it ignores schemas, so JSON is asked for in words")
    if traits.forced_tools is False:
        words.append("it ignores tool_choice")
    if traits.thinking:
        words.append("it thinks")
    return words
