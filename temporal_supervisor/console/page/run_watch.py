"""Watching of runs for the page: all watchers of a run share one round of queries."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from temporalio.service import RPCError

from activities.store.artifacts import ArtifactError
from temporal_supervisor.console.page.lineage import lineage_text, origins_of
from temporal_supervisor.console.page.page_site import PageSite, place_of
from temporal_supervisor.console.page.run_actions import of_run
from temporal_supervisor.console.page.run_board import RunBoard
from temporal_supervisor.console.page.wait_cards import cards_text
from temporal_supervisor.console.run.standstill import Standstill
from temporal_supervisor.console.view.event_lines import Line
from temporal_supervisor.console.view.follow import SERVER_AWAY, RunPoller
from temporal_supervisor.messages import Item, NoAnswer, NoRun, UpdateRefused
from temporal_supervisor.runs import Run

_ROUND = timedelta(milliseconds=150)  # from one to the next: without news a cheap question
_PAUSE = timedelta(milliseconds=30)  # after a round that took longer
_PATIENCE = timedelta(milliseconds=100)  # what worker agents did does not wait longer for the run
_READY = timedelta(milliseconds=300)  # a page does not wait longer for the first round
_LEFT_AFTER = timedelta(seconds=15)  # a reload of the page finds the board as it was
_BEAT = timedelta(seconds=15)  # a stream without news says that it is there
_DRAFT = "a draft from"


@dataclass
class Watch:
    """A watched run: its board, and the number of its watchers."""

    site: PageSite
    run: Run
    board: RunBoard
    poller: RunPoller
    viewers: int = 0
    over: bool = False
    left_at: float = field(default_factory=time.monotonic)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    doing: dict[str, str] = field(default_factory=dict)
    draft: str = ""

    @property
    def is_left(self) -> bool:
        """True if nobody has watched for a while."""
        return not self.viewers and time.monotonic() - self.left_at > _LEFT_AFTER.total_seconds()

    async def poll_until_end(self) -> None:
        """Polls the run until it has ended, or nobody watches any more."""
        while not self.board.ended and not self.is_left:
            began = time.monotonic()
            await self._poll_once()
            took = time.monotonic() - began
            await asyncio.sleep(max(_PAUSE.total_seconds(), _ROUND.total_seconds() - took))

    async def _poll_once(self) -> None:
        """Polls once, and notifies all watchers of news."""
        lines: list[Line] = []
        picture = self.poller.picture
        try:
            lines = await self.poller.poll()
        except (RPCError, NoRun):
            picture.notice = SERVER_AWAY
        before = self.board.version
        self._update_board(lines)
        await self._update_waits()
        await self._update_lineage()
        if any(line.text.startswith(_DRAFT) for line in lines):
            await self._update_draft()
        self.board.ended = picture.closed is not None
        self.ready.set()
        if self.board.version != before or self.board.ended:
            async with self.changed:
                self.changed.notify_all()

    def _update_board(self, lines: list[Line]) -> None:
        """Puts news onto the board; a part's key consists of everything that it shows."""
        picture, board = self.poller.picture, self.board
        for line in lines:
            if line.subject:
                self.doing[line.subject] = line.text
        board.add_lines(lines)
        board.update_tree(picture, self.doing)
        status = picture.status
        usage = status.usage.model_dump() if status else {}
        standing = [_words_of(cause) for cause in picture.standstills if not _has_card(cause)]
        paused = bool(status and status.flags.paused)
        counts = status.counts if status else None
        flags = status.flags if status else None
        key = (picture.phase, picture.notice, usage, counts, flags, picture.closed)
        limits = (status.limits, status.deadline_at, status.warnings) if status else ()
        board.update_part("head", (key, limits), "head.html.j2", picture=picture, status=status)
        notice = picture.notice
        board.update_part("standing", standing, "standing.html.j2", causes=standing, notice=notice)
        board.update_part("actions", paused, "actions.html.j2", **self._actions(paused=paused))
        board.update_part("writing", picture.tail, "writing.html.j2", tail=picture.tail)

    def _actions(self, *, paused: bool) -> dict[str, object]:
        return {"actions": of_run(paused=paused), "run_id": self.run.id, "path": ""}

    async def _update_waits(self) -> None:
        """Shows the waits of the run; unchanged cards stay, with the text typed into them."""
        status = self.poller.picture.status
        if status is None or self.poller.picture.closed:
            self.board.update_part("waits", "", "cards.html.j2", cards=[], left=0, back="")
            return
        waits = [wait for wait in status.waiting if wait.for_person]
        items = [Item(self.run.id, status.goal, wait) for wait in waits]
        key = [(item.wait.id, item.wait.sha256) for item in items]
        if not self.board.has_part("waits", key):
            self.board.update_text("waits", key, await cards_text(self.site, items, ""))

    async def _update_lineage(self) -> None:
        """Shows the earlier runs of this one, and the findings taken from them."""
        status = self.poller.picture.status
        if status is None or not status.reuse_from:
            return
        taken = [report.id for report in status.subtasks if report.reused]
        key = (status.reuse_from, status.saved and status.saved.tokens, taken)
        if self.board.has_part("lineage", key):
            return
        origins = await origins_of(self.run.client, status.reuse_from)
        self.board.update_text("lineage", key, lineage_text(self.site, status, origins))

    async def _update_draft(self) -> None:
        with suppress(NoAnswer, UpdateRefused, ArtifactError):
            self.draft = (await self.run.result_so_far()).answer
            self.board.update_part("draft", self.draft, "draft.html.j2", text=self.draft)


def _words_of(cause: Standstill) -> tuple[str, str]:
    """Returns the words of a cause, and its time, which the page shows in local time."""
    return replace(cause, since=None).line.replace("`", ""), cause.since or ""


def _has_card(cause: Standstill) -> bool:
    """True for a wait with a card, whose buttons end it."""
    return cause.waits_for == "person" and cause.subjects != ("the run",)


@dataclass
class Watches:
    """The watched runs of a site by id."""

    site: PageSite
    _known: dict[str, Watch] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def watch_of(self, run: Run) -> Watch:
        """Returns the watch of a run, which begins with the first watcher.

        If the first round takes long, it is not awaited: its content is sent as news.
        """
        watch = self._known.get(run.id)
        if watch is None:
            board = RunBoard(self.site.text, place_of(run.id))
            poller = RunPoller(run, patience=_PATIENCE)
            watch = self._known[run.id] = Watch(self.site, run, board, poller)
            task = asyncio.create_task(self._run_watch(watch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        watch.left_at = time.monotonic()
        with suppress(TimeoutError):
            await asyncio.wait_for(watch.ready.wait(), _READY.total_seconds())
        return watch

    async def _run_watch(self, watch: Watch) -> None:
        try:
            await watch.poll_until_end()
        finally:
            watch.ready.set()  # whoever waits for the first round sees what there is
            watch.over = True
            self._known.pop(watch.run.id, None)
            async with watch.changed:
                watch.changed.notify_all()

    def close(self) -> None:
        """Ends all watches with the server."""
        for task in self._tasks:
            task.cancel()


async def news_of(watch: Watch, since: int) -> AsyncIterator[str]:
    """Yields the news of a run as server-sent events until it has ended."""
    watch.viewers += 1
    board = watch.board
    try:
        while True:
            if board.version > since or board.ended:
                news = board.news(since)
                since = board.version
                yield f"id: {board.epoch}.{since}\ndata: {news}\n\n"
            if board.ended or watch.over:
                return
            if not await _wait_for_news(watch, since):
                yield ": still there\n\n"
    finally:
        watch.viewers -= 1
        watch.left_at = time.monotonic()


async def _wait_for_news(watch: Watch, since: int) -> bool:
    """Waits for news; returns False if there were none for a while."""

    def is_new() -> bool:
        return watch.board.version > since or watch.board.ended or watch.over

    try:
        async with watch.changed:
            await asyncio.wait_for(watch.changed.wait_for(is_new), _BEAT.total_seconds())
    except TimeoutError:
        return False
    return True


def since_of(watch: Watch, known: str) -> int:
    """Returns the page's version of this board; 0 if it is from another process."""
    epoch, _, version = known.partition(".")
    return int(version) if epoch == watch.board.epoch and version.isdecimal() else 0
