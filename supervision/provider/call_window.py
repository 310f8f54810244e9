"""How many calls of a model may be in flight, by what its provider grants and refuses. The clock is an argument."""

_HALVINGS_APART = 1.0  # seconds: a burst is refused as one, within a moment
_GRANTS = 4  # for one call more, at most: with as many as a large window has, slow calls would take an hour to fill it


class CallWindow:
    """Additive increase, multiplicative decrease: AIMD, as TCP does it.

    A refusal (429) leaves half of the calls that were in flight, at most once a second, and never less than one. For
    as many granted calls as the window has, or four, there is one more, up to `most`.

    A call is granted with its first content, as a refusal comes that early, too: how long an answer takes says nothing
    about the limit.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = most
        self._granted = 0  # since the size changed
        self._halved_at = float("-inf")

    @property
    def size(self) -> int:
        """How many calls may be in flight."""
        return self._size

    def refused(self, in_flight: int, now: float) -> None:
        """Takes note of a refused call; `in_flight` counts it, too."""
        if now - self._halved_at >= _HALVINGS_APART:
            self._halved_at = now
            self._granted = 0
            self._size = max(min(self._size, in_flight) // 2, 1)

    def granted(self) -> None:
        """Takes note of a call that the provider began to answer."""
        self._granted += 1
        if self._granted >= min(self._size, _GRANTS):
            self._granted = 0
            self._size = min(self._size + 1, self._most)
