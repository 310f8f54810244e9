"""The screens that show a followed run: a live view on a terminal, plain lines anywhere else."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live

from console import console_limits
from console.view.event_lines import Line, now_line
from console.view.live_view import draw, log_line, plain_line
from console.view.picture import Picture


class Screen(Protocol):
    """Shows events as they come and the picture as it is."""

    def log(self, line: Line) -> None:
        """Shows an event."""

    def show(self, picture: Picture) -> None:
        """Shows the present picture."""


class PlainScreen:
    """One line per event; a notice is a line when it changes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: set[str] = set()
        self._notice: str | None = None
        self._waits: set[tuple[str, str]] = set()

    def log(self, line: Line) -> None:
        """Writes the line."""
        self._console.file.write(plain_line(line) + "\n")
        self._console.file.flush()

    def show(self, picture: Picture) -> None:
        """Writes notices and warnings that are new."""
        status = picture.status
        once = [text for text in [status.model_notice, *status.warnings] if text] if status else []
        for text in once:
            if text not in self._shown:
                self._shown.add(text)
                self.log(now_line(text))
        waits = {(cause.waits_for, cause.helps): cause for cause in picture.standstills}
        for key, cause in waits.items():
            if key not in self._waits:  # its words change with every attempt, and one line is enough
                self.log(now_line(cause.line, "bad"))
        self._waits = set(waits)
        if picture.notice != self._notice:
            self._notice = picture.notice
            self.log(now_line(self._notice or "a worker answers again"))


class LiveScreen:
    """The plan and a footer, redrawn in place; events scroll above."""

    def __init__(self, console: Console, hint: str) -> None:
        self._console = console
        self._hint = hint
        self._picture: Picture | None = None
        self.live = Live(console=console, get_renderable=self._draw, auto_refresh=False, redirect_stderr=False)

    def log(self, line: Line) -> None:
        """Prints the line above the live part."""
        if line.mood == "head":  # of the console's own: nothing of it is cut
            self._console.print(log_line(line), no_wrap=False, overflow="fold")
        else:
            self._console.print(log_line(line), no_wrap=True, overflow="ellipsis", crop=True)

    def show(self, picture: Picture) -> None:
        """Draws the picture."""
        self._picture = picture
        self.live.refresh()

    def finish(self) -> None:
        """Draws the last frame, which stays on the screen, without the hint."""
        self._hint = ""
        self.live.refresh()

    def _draw(self) -> RenderableType:
        if self._picture is None:
            return ""
        return draw(self._picture, self._console.width, self._console.height, self._hint)


@contextlib.asynccontextmanager
async def open_screen(console: Console, hint: str) -> AsyncIterator[Screen]:
    """Yields the screen that suits the console, for the time of the block."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield PlainScreen(console)
        return
    screen = LiveScreen(console, hint)

    async def redraw() -> None:
        while True:
            await asyncio.sleep(console_limits.FOLLOW_REDRAW.total_seconds())
            screen.live.refresh()

    with screen.live:
        ticking = asyncio.create_task(redraw())
        try:
            yield screen
        finally:
            ticking.cancel()
            screen.finish()
