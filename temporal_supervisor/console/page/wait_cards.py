"""The waits for a person as cards, with their whole content and the decision."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from temporalio.service import RPCError

from activities.store.artifacts import ArtifactError
from temporal_supervisor.console.base.command import Access, CommandFailed
from temporal_supervisor.console.base.terminal import safe_json
from temporal_supervisor.console.page.page_site import PageSite, place_of, short_id_of
from temporal_supervisor.console.run.standstill import ways_to_decide
from temporal_supervisor.console.view.plan_view import PlanPage
from temporal_supervisor.console.view.whole_item import WholeItem, whole_item
from temporal_supervisor.messages import Item, NoAnswer, UpdateRefused
from temporal_supervisor.supervision.contract.status import Wait
from temporal_supervisor.supervision.run.waits import AWAITED

_AT_ONCE = 4  # cards that are read at a time: each takes a few queries
MOST_CARDS = 50


@dataclass(frozen=True)
class Card:
    """One wait with its whole content, or the problem why it can't be shown."""

    item: Item
    whole: WholeItem | None = None
    problem: str = ""

    @property
    def wait(self) -> Wait:
        """The wait."""
        return self.item.wait

    @property
    def plan(self) -> PlanPage | None:
        """The plan; None for other waits."""
        return self.whole.plan if self.whole else None

    @property
    def tool(self) -> str:
        """The name of the tool to be called; empty for other waits."""
        return self.wait.prompt_preview.partition(" ")[0] if self.wait.kind == "tool" else ""

    @property
    def place(self) -> str:
        """The path of its run."""
        return place_of(self.item.run_id)

    @property
    def short_id(self) -> str:
        """The part of the run's id that a command needs."""
        return short_id_of(self.item.run_id)

    @property
    def awaited(self) -> str:
        """The person or thing that the run waits for."""
        return AWAITED[self.wait.kind]

    @property
    def commands(self) -> dict[str, str]:
        """The commands that decide, by choice."""
        found = ways_to_decide(self.item.run_id, self.wait)
        return {choice: command.replace("`", "") for choice, command in found.items()}

    @property
    def plan_json(self) -> str:
        """The plan as JSON, to be edited."""
        return safe_json(self.plan.plan.model_dump(mode="json")) if self.plan else ""


async def cards_of(site: PageSite, items: Sequence[Item]) -> list[Card]:
    """Returns cards for the first items, with their whole content."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def card(item: Item) -> Card:
        async with places:
            return await _card(site.access, item)

    return list(await asyncio.gather(*map(card, items[:MOST_CARDS])))


async def _card(access: Access, item: Item) -> Card:
    """Returns the card of an item; without its whole content it has no buttons to decide."""
    try:
        whole = await whole_item(access, item)
    except (NoAnswer, UpdateRefused, CommandFailed, ArtifactError, RPCError) as error:
        return Card(item, problem=str(error))
    if whole.asked.wait.sha256 != item.wait.sha256:  # what is shown must be what is decided about
        return Card(item, problem="it shows something else now")
    return Card(item, whole)


async def cards_text(site: PageSite, items: Sequence[Item], back: str) -> str:
    """Returns the cards as a part of a page; decisions lead back to the path `back`."""
    cards = await cards_of(site, items)
    return site.text("cards.html.j2", cards=cards, left=len(items) - len(cards), back=back)
