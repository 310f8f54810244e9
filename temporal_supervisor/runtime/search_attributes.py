"""The search attributes of runs, which are added if possible and then checked.

A search attribute of the wrong type would block runs.
"""

import contextlib

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

_KEYWORDS = (
    "SupervisorPhase",
    "SupervisorTeam",
    "SupervisorWaiting",
    "SupervisorOwner",
    "SupervisorStatus",
)
_DOUBLES = ("SupervisorUsd", "SupervisorScore")
WANTED = {
    **dict.fromkeys(_KEYWORDS, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD),
    **dict.fromkeys(_DOUBLES, IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE),
}


async def usable(client: Client) -> list[str]:
    """Returns the attributes that the server has with the right type.

    The list is empty if the server refuses to list them.
    """
    try:
        request = ListSearchAttributesRequest(namespace=client.namespace)
        listed = await client.operator_service.list_search_attributes(request)
    except RPCError:
        return []
    return [name for name, kind in WANTED.items() if listed.custom_attributes.get(name) == kind]


async def ensure(client: Client) -> list[str]:
    """Adds missing attributes and returns the usable ones.

    It never raises: a run can do without them.
    """
    have = await usable(client)
    missing = {name: kind for name, kind in WANTED.items() if name not in have}
    if missing:
        request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
        with contextlib.suppress(RPCError):
            await client.operator_service.add_search_attributes(request)
            have = await usable(client)
    return have


def warnings(have: list[str]) -> list[str]:
    """Returns a warning for each missing or unusable attribute."""
    found = []
    for name in WANTED:
        if name not in have:
            kind = "Keyword" if name in _KEYWORDS else "Double"
            create = f"temporal operator search-attribute create --name {name} --type {kind}"
            found.append(f"search attribute {name} is not available: `{create}`")
    return found
