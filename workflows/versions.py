"""Changes of workflow code that open runs do not have in their histories: those go on as they began.

Each is asked for where it matters, and has a marker in the histories of newer runs. See docs/decisions/0023.
"""

from temporalio import workflow


def what_came_with_the_end_of_a_wait_counts() -> bool:
    """True in runs since version 0.1.0: what a stopped subtask hands in together with the end of the wait is kept."""
    return workflow.patched("what-came-with-the-end-of-a-wait-counts")


def budget_is_awaited_without_slot() -> bool:
    """True in runs since version 0.1.0: who waits for budget that others may give back keeps no slot from them."""
    return workflow.patched("budget-is-awaited-without-slot")
