"""Reading stored plans: content-addressed, so a parsed one stays true for as long as a process remembers it."""

from collections import OrderedDict

from activities.store.artifacts import ArtifactStore
from supervision.contract.plan import Plan

_REMEMBERED = 32
_plans: OrderedDict[tuple[str, str], Plan] = OrderedDict()


async def read_plan(store: ArtifactStore, ref: str) -> Plan:
    """The whole plan at `ref`; shared, so not to be changed. Every worker agent of a run asks for the same one."""
    key = (store.url, ref)
    plan = _plans.pop(key, None)
    if plan is None:
        plan = Plan.model_validate_json(await store.get(ref))
    _plans[key] = plan
    while len(_plans) > _REMEMBERED:
        _plans.popitem(last=False)
    return plan
