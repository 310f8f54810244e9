"""The warnings about the models of a run when it begins: what is not listed, or has no price."""

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.request import Budget, RunRequest, invalid_request
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts


def endpoint_warnings(known: EndpointFacts, models: list[str]) -> list[str]:
    """Returns the warnings about an endpoint that does not answer or does not list a model."""
    if not models:
        return []
    patience = limits.ENDPOINT_PATIENCE.total_seconds()
    if known.address and not known.asked:
        windows = ", ".join(f"{known.traits(model).window:,} tokens of {model}" for model in models)
        late = f"did not answer within {patience:.0f} s"
        return [f"the model endpoint {known.address} {late}: assumed {windows}"]
    unlisted = [model for model in models if model not in known.names]
    if not (known.names and unlisted):
        return []
    lacks = f"the model endpoint {known.address} does not list {', '.join(unlisted)}"
    words = f"{lacks}; it has {known.shown_names()}"
    return [f"{words}: name one with SUPERVISOR_SUPERVISOR_MODEL and SUPERVISOR_WORKER_MODEL"]


def budget_warnings(request: RunRequest, unpriced: list[str]) -> list[str]:
    """Returns a warning if the default dollar budget cannot be enforced.

    Raises SupervisionError `InvalidRequest` for an explicit one.
    """
    if request.budget.usd is None or not unpriced:
        return []
    names = ", ".join(unpriced)
    if request.budget.usd != Budget().usd:
        problem = f"the price of {names} is unknown, so dollars can't be counted"
        helps = "use models with a known price, or set budget.tokens and leave usd out"
        raise invalid_request(f"budget.usd: {problem}: {helps}")
    return [f"the dollar budget is not kept: the price of {names} is unknown"]
