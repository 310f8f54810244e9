"""The limit of concurrent calls to child processes, and the order in which they run."""

import asyncio
import contextlib
import time
import weakref
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

_HALF_LIFE_SECONDS = 60.0  # after it half as much is held against an owner
_OWNERS = 1000  # from which on those are forgotten that have used next to nothing
_NEXT_TO_NOTHING = 0.01  # seconds

Process: TypeAlias = "weakref.finalize[..., Any]"
"""A process as the pool knows it: what ends it."""


class FairPool:
    """The places of one process, which calls of all kinds and owners share in turn.

    Calls wait in lines, one for each kind of work, such as files or SQL. Three rules keep one
    owner, such as a run, from starving another, whether it has 600 wide files or slow queries of
    200 runs:

    - A line has a number of places. One owner holds at most half of them, at least one.
    - A free place goes to the line that holds fewest, then to the one that was served longest ago.
    - In a line the owner with the least recent use comes first, then the call that came first.

    Recorded seconds decay by half every minute, so nobody stays behind for good. An idle process
    needs memory but no place; the pool ends the ones that were used longest ago.
    """

    def __init__(self, places: int, resting: int) -> None:
        """Allows at most `places` open calls at a time, and `resting` idle processes."""
        self._free = places
        self._most_resting = resting
        self._resting: list[Process] = []
        self._lines: list[CallLine] = []
        self._turns = 0
        self._used: dict[str, tuple[float, float]] = {}  # seconds of an owner, and their time

    def line(self, most: int) -> "CallLine":
        """Returns a new line for one kind of work, which holds at most `most` places."""
        line = CallLine(self, most)
        self._lines.append(line)
        return line

    def assign_places(self) -> None:
        """Assigns the free places to the calls that are next."""
        while self._free and (ready := [line for line in self._lines if line.admissible()]):
            line = min(ready, key=lambda line: (line.open, line.last_turn))
            self._free -= 1
            self._turns += 1
            now = time.monotonic()
            calls = line.admissible()
            call = min(calls, key=lambda waiting: self._seconds(waiting.owner, now))
            line.admit(call, self._turns)

    def free_place(self, owner: str, seconds: float) -> None:
        """Frees the place of a call that took `seconds`, and assigns it to the next one."""
        now = time.monotonic()
        self._free += 1
        self._used[owner] = (self._seconds(owner, now) + seconds, now)
        if len(self._used) > _OWNERS:
            kept = [name for name in self._used if self._seconds(name, now) > _NEXT_TO_NOTHING]
            self._used = {name: self._used[name] for name in kept}
        self.assign_places()

    def _seconds(self, owner: str, now: float) -> float:
        """Returns the seconds that an owner has used recently; older use counts for less."""
        seconds, at = self._used.get(owner, (0.0, now))
        return float(seconds * 0.5 ** ((now - at) / _HALF_LIFE_SECONDS))

    def note_resumed(self, process: Process) -> None:
        """Notes that an idle process works again."""
        self._resting = [other for other in self._resting if other is not process]

    def note_resting(self, process: Process) -> None:
        """Notes an idle process, and ends the one used longest ago if there are too many."""
        self._resting = [*(other for other in self._resting if other.alive), process]
        while len(self._resting) > self._most_resting:
            self._resting.pop(0)()


class WaitingCall:
    """A call that waits for a place."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class CallLine:
    """The waiting and open calls of one kind of work."""

    def __init__(self, pool: FairPool, most: int) -> None:
        self.pool = pool
        self.open = 0
        self.last_turn = 0
        self._most = most
        self._most_of_one = max(1, most // 2)
        self._open_of: Counter[str] = Counter()
        self._waiting: list[WaitingCall] = []

    @contextlib.asynccontextmanager
    async def place(self, owner: str) -> AsyncIterator[None]:
        """Waits for a place, and holds it for the block."""
        call = WaitingCall(owner)
        self._waiting.append(call)
        began = None
        try:
            self.pool.assign_places()
            await call.admitted
            began = time.monotonic()
            yield
        finally:
            # Also where a call is closed without a cancel, as by the end of its event loop.
            if call in self._waiting:
                self._waiting.remove(call)
            else:  # it was admitted, perhaps at the moment at which it was cancelled
                self._free_place(owner, 0.0 if began is None else time.monotonic() - began)

    def admissible(self) -> list[WaitingCall]:
        """Returns the calls that may get a place now, in the order of their arrival."""
        if self.open >= self._most:
            return []
        admissible = []
        for call in self._waiting:
            has_room = self._open_of[call.owner] < self._most_of_one
            if has_room and not call.admitted.cancelled():
                admissible.append(call)
        return admissible

    def admit(self, call: WaitingCall, turn: int) -> None:
        """Gives a call its place."""
        self._waiting.remove(call)
        self.open += 1
        self.last_turn = turn
        self._open_of[call.owner] += 1
        call.admitted.set_result(None)

    def _free_place(self, owner: str, seconds: float) -> None:
        self.open -= 1
        self._open_of[owner] -= 1
        if not self._open_of[owner]:
            del self._open_of[owner]
        self.pool.free_place(owner, seconds)


PLACES = FairPool(places=6, resting=4)
"""The places of this process for files, SQL and the web; an idle child process has some 80 MiB."""
