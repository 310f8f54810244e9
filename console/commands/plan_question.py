"""The question at a terminal what to do with a plan that waits for approval."""

import asyncio
import contextlib
import os
import re
import shlex
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

from console.base.command import WAITS, CommandFailed
from console.base.hints import hint
from console.base.terminal import Report, console, print_err, put, safe_json
from console.commands.people_commands import way_rows
from console.commands.update_commands import told
from console.run.request_options import parsed_plan, read_text_file
from console.run.run_handle import NoAnswer, RunHandle
from console.view.plan_view import PlanPage, plan_page
from runtime.paths import cache_dir
from supervision.contract.plan import Plan
from supervision.contract.status import Status, Wait
from temporal_supervisor.people import Item, decide

_EDITOR = "vi"
_NO_NAME = re.compile(r"[^\w.-]")
_WORDS = {"a": "approve", "r": "deny", "c": "reply", "e": "approve"}
_LOOK = timedelta(seconds=2)  # while a person thinks


class PlanLeft(Exception):
    """A plan is left waiting; `report` says how to decide later."""

    def __init__(self, report: Report) -> None:
        super().__init__("the plan waits")
        self.report = report


class PlanQuestion:
    """Asks about the plans of a run: each revision once. Without a terminal it leaves the first one waiting."""

    def __init__(self, run: RunHandle, by: str, *, asks: bool) -> None:
        self._run = run
        self._by = by
        self._asks = asks
        self._asked: set[str] = set()
        self._file = Path()
        self._edited = False

    def waits(self, status: Status | None) -> bool:
        """True if a plan waits that was not asked about."""
        waiting = status.waiting if status else []
        return any(wait.kind == "plan" and wait.id not in self._asked for wait in waiting)

    async def ask(self) -> None:
        """Shows the plan and returns when it is decided about. Raises PlanLeft if it is left waiting."""
        page = await plan_page(self._run)
        if page is None or page.asked is None:
            return
        wait, screen = page.asked.wait, console()
        if not self._asks:
            raise PlanLeft(_left(page, wait, shown=False))
        self._asked.add(wait.id)
        own, self._file = self._file, cache_dir() / "plans" / f"{_NO_NAME.sub('_', self._run.id)[-80:]}.{wait.id}.json"
        if self._edited:  # it came back
            own.rename(self._file)
            self._say(wait.prompt_preview, kept=True)
        else:
            put(screen, page.rows())
        while not await self._decided(page, wait):
            pass

    async def _still(self, wait: Wait) -> bool:
        """True if a plan waits, as far as is known."""
        try:
            return any(other.id == wait.id for other in (await self._run.status()).waiting)
        except NoAnswer:
            return True

    def clean_up(self) -> None:
        """Removes the text of an edited plan that was taken."""
        if self._edited:
            self._file.unlink(missing_ok=True)

    async def _decided(self, page: PlanPage, wait: Wait) -> bool:
        """Asks once. Returns True if the plan no longer waits."""
        keys = {"approve": "approve a", "edit": "edit e", "change": 'change c "what to change"', "reject": "reject r"}
        named = [words for choice, words in keys.items() if choice in wait.choices]
        if (line := await self._line(" · ".join([*named, "leave it q: "]), wait)) is None:
            return True
        key, _, rest = line.strip().partition(" ")
        text, plan = rest.strip().strip('"') or None, None
        if key == "q" or not line:
            raise PlanLeft(_left(page, wait, shown=True))
        if key == "c" and text is None:
            text = (await self._line("what to change: ", wait) or "").strip() or None
        if key == "e":
            text, plan = None, await self._edit(page.plan)
        word = _WORDS.get(key)
        if word is None or (key == "c" and text is None) or (key == "e" and plan is None):
            return False
        item = Item(self._run.id, page.plan.goal, wait)
        try:
            await told(self._run, partial(decide, self._run.client, item, word, text, plan=plan, by=self._by))
        except (CommandFailed, NoAnswer, ValueError) as error:
            self._say(f"{error}", kept=key == "e")
            return not await self._still(wait)
        self._edited = key == "e"
        return True

    async def _line(self, prompt: str, wait: Wait) -> str | None:
        """Returns what a person types, empty at the end of the input; None once the plan no longer waits."""
        sys.stdout.write(prompt)
        sys.stdout.flush()
        loop, typed = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(sys.stdin.fileno(), typed.set)  # a thread that reads would outlive Ctrl-C
        try:
            while not typed.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(typed.wait(), _LOOK.total_seconds())
                if not typed.is_set() and not await self._still(wait):
                    print_err("\nthe plan no longer waits: it was decided about elsewhere, or its time is over")
                    return None
        finally:
            loop.remove_reader(sys.stdin.fileno())
        return os.read(sys.stdin.fileno(), 1 << 16).decode("utf-8", "replace")

    def _say(self, problem: str, *, kept: bool) -> None:
        print_err(problem + (f"\nyour text is kept in {self._file}: e opens it again" if kept else ""))

    async def _edit(self, plan: Plan) -> Plan | None:
        """Returns the plan as the person's editor leaves it; None with the reason on the screen if it can't run."""
        whole = f"{safe_json(plan.model_dump(mode='json'))}\n"
        if not self._file.exists():
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(whole, encoding="utf-8")
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _EDITOR
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(editor), str(self._file))
            await process.wait()
        except (OSError, ValueError) as error:
            print_err(
                f"the editor '{editor}' can't be started ({error}): set EDITOR, or change {self._file} and press e"
            )
            return None
        try:
            edited = parsed_plan(read_text_file(self._file), str(self._file))
        except CommandFailed as failed:
            self._say(failed.message, kept=True)
            return None
        if edited == plan:
            print_err("nothing was changed")
            self._file.unlink(missing_ok=True)
            return None
        return edited


def _left(page: PlanPage, wait: Wait, *, shown: bool) -> Report:
    """Returns what to say about a plan that is left waiting."""
    rows = [*([] if shown else page.rows()), "the plan waits for approval", *way_rows(page.run_id, wait)]
    note = f"follow it: {hint('follow', page.run_id)}"
    return Report({"run_id": page.run_id, "state": "running", "waiting": [wait]}, lambda _: rows, [note], code=WAITS)
