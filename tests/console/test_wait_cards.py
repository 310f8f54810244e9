"""The card of a plan that waits: all that is asked is on it, however much that is."""

import re

from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.page.page_guard import Door
from temporal_supervisor.console.page.page_site import PageSite
from temporal_supervisor.console.page.wait_cards import Card
from temporal_supervisor.console.view.plan_view import PlanPage
from temporal_supervisor.console.view.whole_item import WholeItem
from temporal_supervisor.messages import Item
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.status import Asked, RunLimits, Status, Wait

AT = "2026-11-02T09:30:00+00:00"
LIMITS = RunLimits(max_subtasks=1000, max_parallel=8, max_turns=10, deadline_seconds=1800, budget_usd=5)


def shown(plan: Plan) -> str:
    """Returns the card of a plan."""
    wait = Wait(id="plan.1", sha256="ab" * 32, kind="plan", workflow_id="r", since=AT, choices=["approve", "change"])
    status = Status(goal="g", team="t", phase="approval", limits=LIMITS, deadline_at=AT)
    asked = Asked(wait=wait)
    whole = WholeItem(Item("r", "g", wait), asked, "", "", "", {}, plan=PlanPage("r", plan, status, asked))
    card = Card(Item("r", "g", wait), whole)
    site = PageSite(Access(), Door.of([]))
    return site.text("cards.html.j2", cards=[card], left=0, back="")


def chain(count: int) -> Plan:
    """A plan in which each subtask builds on the one before it."""
    before = {number: [f"t{number - 1}"] if number > 1 else [] for number in range(1, count + 1)}
    subtasks = [
        Subtask(id=f"t{number}", description=f"Weigh tree {number}.", role="finder", depends_on=after)
        for number, after in before.items()
    ]
    return Plan(subtasks=subtasks)


def test_every_one_of_a_thousand_subtasks_is_on_the_card_most_of_them_folded() -> None:
    card = shown(chain(1000))
    listed = re.findall(r"<br>Weigh tree (\d+)\.</li>", card)
    assert listed == [str(number) for number in range(1, 1001)]
    heads = re.findall(r"<summary>(\d+ more, t\d+ to t\d+)</summary>", card)
    assert (heads[0], heads[-1], len(heads)) == ("100 more, t51 to t150", "50 more, t951 to t1000", 10)
    assert card.index("Weigh tree 50.") < card.index("100 more, t51 to t150") < card.index("Weigh tree 51.")


def test_what_happens_if_a_part_fails_is_listed_and_the_price_is_not_folded() -> None:
    many, few = shown(chain(1000)), shown(chain(3))
    assert "988 more of what happens if a part fails" in many
    assert many.index("if t600 fails") < many.index("never above the budget: $5.00") < many.index("<form ")
    assert many.count("the answer names the gap") == 999
    assert "more of what happens" not in few
    assert few.count(" fails: ") == 3
