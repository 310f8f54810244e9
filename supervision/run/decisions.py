"""What people decided about the waits of a run, and which decisions are possible now."""

from collections.abc import Sequence
from typing import Literal

from supervision.base.text import one_line
from supervision.contract.base import Model
from supervision.contract.plan import Plan
from supervision.contract.status import Wait, WaitKind

Choice = Literal["approve", "edit", "change", "reject", "deny", "reply"]

_SHOWN = 6  # ids of other waits in a refusal


class Decision(Model):
    """What a person decided about the wait `id`: for these arguments, if it is about a tool call.

    `text` is the reply, or the comment; `plan` replaces the one that was shown; `by` is who says that he decided.
    """

    id: str
    choice: Choice
    text: str = ""
    plan: Plan | None = None
    by: str = ""
    arguments_sha256: str | None = None


class Decisions:
    """The decisions of a run by wait. The first one stands, after a reset, too: ids and hashes are the same then.

    `in_advance` is True once the run was reset: a decision may then come again before the work waits for it.
    """

    def __init__(self) -> None:
        self.in_advance = False
        self._taken: dict[tuple[str, str | None], Decision] = {}

    def take(self, decision: Decision) -> bool:
        """Takes a decision over. Returns False if there was one."""
        key = (decision.id, decision.arguments_sha256)
        return self._taken.setdefault(key, decision) is decision

    def on(self, wait: Wait) -> Decision | None:
        """Returns the decision about a wait, if there is one."""
        return self._taken.get((wait.id, wait.arguments_sha256))

    def check(self, decision: Decision, kinds: Sequence[WaitKind], waits: Sequence[Wait]) -> None:
        """Raises ValueError, with what is possible now, if nothing that waits can be decided so."""
        taken = self._taken.get((decision.id, decision.arguments_sha256))
        if taken is not None:
            if taken.model_copy(update={"by": decision.by}) != decision:
                said = one_line(taken.text, 100)
                raise ValueError(
                    f"'{decision.id}' is decided already: {taken.choice}{f' by {taken.by}' if taken.by else ''}"
                    f"{f' ({said})' if said else ''}. The first decision stands"
                )
            return
        wait = next((wait for wait in waits if wait.id == decision.id), None)
        if wait is None:
            if not self.in_advance:
                raise ValueError(f"nothing with the id '{decision.id}' waits for a person; {_waiting(waits)}")
        elif wait.kind not in kinds:
            raise ValueError(f"'{wait.id}' waits for something else: it is of the kind '{wait.kind}'")
        elif wait.arguments_sha256 != decision.arguments_sha256:
            raise ValueError(
                f"'{wait.id}' has other arguments than those that were decided about: their SHA-256 is "
                f"{wait.arguments_sha256}. Look at it again, then decide"
            )


def _waiting(waits: Sequence[Wait]) -> str:
    ids = [wait.id for wait in waits if wait.for_decision]
    if not ids:
        return "nothing does now"
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"what does: {', '.join(ids[:_SHOWN])}{more}"
