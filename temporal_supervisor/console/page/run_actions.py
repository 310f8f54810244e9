"""The actions of a reader on a run: decisions and changes, as the commands make them."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from temporal_supervisor.console.base.command import BAD_INPUT, FAILED, CommandFailed, user_name
from temporal_supervisor.console.base.terminal import Report
from temporal_supervisor.console.commands import people_commands as people
from temporal_supervisor.console.page.page_site import (
    PageSite,
    place_of,
    short_id_of,
    shown_command,
    site_of,
    text_of,
)
from temporal_supervisor.console.run.request_options import parsed_plan
from temporal_supervisor.messages import Item
from temporal_supervisor.runs import Run

Work = Callable[[Run, FormData], Awaitable[Report]]


@dataclass(frozen=True)
class Field:
    """A field of an action's form: its name and its label."""

    name: str
    words: str
    kind: str = "text"
    needed: bool = False


@dataclass(frozen=True)
class Action:
    """The action of a button, with the words of its command."""

    name: str
    words: str
    work: Work
    fields: tuple[Field, ...] = ()
    options: tuple[str, ...] = ()
    of_subtask: bool = False

    def command(self, run_id: str, path: str = "") -> str:
        """Returns the equivalent command, with fields to fill in as words in capitals."""
        words = [short_id_of(run_id), *self.options]
        if path and self.name == "steer":
            words += ["--to", path]
        elif path:
            words.insert(1, path)
        return shown_command(self.name, *words)


async def _pause(run: Run, form: FormData) -> Report:
    return await people.pause(run, user_name(), now=bool(text_of(form, "now")))


async def _resume(run: Run, _: FormData) -> Report:
    return await people.resume(run, user_name())


async def _steer(run: Run, form: FormData) -> Report:
    to = text_of(form, "subtask") or "*"
    return await people.steer(run, _required_text(form, "text"), user_name(), to)


async def _retry(run: Run, form: FormData) -> Report:
    instruction = text_of(form, "instruction") or None
    return await people.retry(run, _required_text(form, "subtask"), user_name(), instruction)


async def _skip(run: Run, form: FormData) -> Report:
    why = text_of(form, "why") or None
    return await people.skip(run, _required_text(form, "subtask"), user_name(), why)


async def _extend(run: Run, form: FormData) -> Report:
    tokens, usd = text_of(form, "budget_tokens"), text_of(form, "budget_usd")
    return await people.extend(
        run,
        text_of(form, "deadline") or None,
        int(_positive_number(tokens)) if tokens else None,
        _positive_number(usd) if usd else None,
    )


async def _cancel(run: Run, _: FormData) -> Report:
    said, _code = await people.cancel_run(run)
    return Report({"run_id": run.id, "message": said}, [said])


def _required_text(form: FormData, name: str) -> str:
    given = text_of(form, name)
    if not given:
        raise CommandFailed(BAD_INPUT, f"fill in '{name}'")
    return given


def _positive_number(text: str) -> float:
    try:
        return float(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise CommandFailed(BAD_INPUT, f"'{text}' is no number") from None


def _words_of(command: Callable[..., object]) -> str:
    return (inspect.getdoc(command) or "").partition("\n")[0]


_NOW = Field("now", "in the middle of turns, which may be paid again", "checkbox")
_TEXT = Field("text", "what worker agents are to know or do", "textarea", needed=True)
_INSTRUCTION = Field("instruction", "what should be different", "textarea")
_LIMITS = (
    Field("deadline", "deadline, such as 2h, counted from the run's start"),
    Field("budget_usd", "new total in US dollars"),
    Field("budget_tokens", "new total in tokens"),
)
_EXTENDED = ("--deadline", "2h", "--budget-usd", "10")

PAUSE = Action("pause", _words_of(people.pause), _pause, (_NOW,))
RESUME = Action("resume", _words_of(people.resume), _resume)
STEER = Action("steer", _words_of(people.steer), _steer, (_TEXT,), ("TEXT",), of_subtask=True)
EXTEND = Action("extend", _words_of(people.extend), _extend, _LIMITS, _EXTENDED)
CANCEL = Action("cancel", "Cancel the run; the partial result is kept.", _cancel)
RETRY = Action("retry", _words_of(people.retry), _retry, (_INSTRUCTION,), of_subtask=True)
SKIP = Action("skip", _words_of(people.skip), _skip, (Field("why", "why"),), of_subtask=True)
ACTIONS = {action.name: action for action in (PAUSE, RESUME, STEER, EXTEND, CANCEL, RETRY, SKIP)}


def of_run(*, paused: bool) -> list[Action]:
    """Returns the actions for an open run."""
    return [RESUME if paused else PAUSE, STEER, EXTEND, CANCEL]


async def act(request: Request) -> Response:
    """Performs the action of a button, and returns the command's message."""
    site = site_of(request)
    action = ACTIONS.get(request.path_params["action"])
    if action is None:
        raise HTTPException(404, "There is no such action")
    form = await site.form(request)
    run = await site.run(request)
    report = await action.work(run, form)
    return site.message_response(request, report.text().strip(), place_of(run.id))


async def decide_shown(request: Request) -> Response:
    """Decides about the shown content only, and returns the run's reply."""
    site = site_of(request)
    form = await site.form(request)
    run = await site.run(request)
    message = await _decide_item(site, run, form)
    back = "/" if text_of(form, "back") == "/" else place_of(run.id)
    return site.message_response(request, message, back)


async def _decide_item(site: PageSite, run: Run, form: FormData) -> str:
    """Returns the run's reply to a decision.

    Raises CommandFailed if other content waits now.
    """
    wait_id = _required_text(form, "id")
    seen = _required_text(form, "sha256")
    word = _required_text(form, "word")
    text = text_of(form, "text") or None
    if word == "reply" and text is None:
        raise CommandFailed(BAD_INPUT, "write a reply first")
    plan = text_of(form, "plan") if word == "edit" else ""
    if not plan:
        words = [run.id, wait_id]
        by = user_name()
        report = await people.decision_report(site.access, words, word, text, by, seen=seen)
        return report.text().strip()

    item = await _item(run, wait_id, seen)
    edited = parsed_plan(plan.encode(), "the plan")
    answer = await run.decide(item.wait, "approve", text, plan=edited, by=user_name())
    return f"run '{run.id}': {answer.message}"


async def _item(run: Run, wait_id: str, seen: str) -> Item:
    await people.require_open(run)
    for item in await run.waiting():
        if item.wait.id == wait_id and item.wait.sha256 == seen:
            return item
    raise CommandFailed(FAILED, f"'{wait_id}' no longer waits, or shows something else now")
