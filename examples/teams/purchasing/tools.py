"""The buyer's tool. It changes something, so a person approves each call."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from temporal_supervisor import Arguments, Tool, ToolContext, ToolOutput

ORDERS = Path("orders.md")  # in the folder where the Worker was started


class Order(Arguments):
    """One order."""

    title: Annotated[
        str, Field(min_length=1, max_length=200, description="What is ordered, and from whom.")
    ]
    text: Annotated[
        str,
        Field(min_length=1, max_length=20_000, description="Price, delivery, conditions, reason."),
    ]


def write_order(arguments: Order, context: ToolContext) -> ToolOutput:
    """Appends the order, once however often the call is made."""
    mark = f"<!-- {context.idempotency_key} -->"
    if not ORDERS.exists() or mark not in ORDERS.read_text(encoding="utf-8"):
        with ORDERS.open("a", encoding="utf-8") as file:
            file.write(f"# {arguments.title}\n\n{arguments.text}\n\n{mark}\n\n")
    return ToolOutput(f"The order stands in {ORDERS}.\n\n{arguments.text}", sources=[str(ORDERS)])


TOOLS = [
    Tool("write_order", "Writes the order.", Order, write_order, effects="write", approve="always")
]
