"""A plan in a person's editor: it is kept in the cache folder until it is decided about."""

import asyncio
import contextlib
import os
import shlex
from pathlib import Path

from temporal_supervisor.console.base.command import BAD_INPUT, CommandFailed
from temporal_supervisor.console.base.terminal import safe_json
from temporal_supervisor.console.run.request_options import parsed_plan, read_text_file
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime.process import cache_dir
from temporal_supervisor.supervision.base.store_keys import encode
from temporal_supervisor.supervision.contract.plan import Plan


async def changed_plan(run: Run, plan: Plan) -> Plan:
    """Returns the plan as changed by the person.

    Raises CommandFailed if it can't run, or is unchanged.
    """
    edited = await edit_plan(plan, _edited_file(run))
    if edited == plan:
        raise CommandFailed(BAD_INPUT, "nothing was changed")
    return edited


async def edit_plan(plan: Plan, file: Path) -> Plan:
    """Opens a plan in the person's editor, and returns it as they left it.

    If the file is there, it is opened as it is: an edited plan that could not run. Raises
    CommandFailed if the plan can't run.
    """
    if not file.exists():
        file.write_text(safe_json(plan.model_dump(mode="json")), encoding="utf-8")
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    editing = await asyncio.create_subprocess_exec(*editor, str(file))
    await editing.wait()
    return parsed_plan(read_text_file(file), str(file))


def edited_plan_came_back(run: Run) -> bool:
    """True if an edited plan of the run could not run, and is still to be decided about."""
    with contextlib.suppress(OSError):  # without a cache folder no plan was edited
        return _edited_file(run).exists()
    return False


def drop_edited_plan(run: Run) -> None:
    """Deletes the edited plan of a run, if there is one."""
    with contextlib.suppress(OSError):  # without a cache folder there is none
        _edited_file(run).unlink(missing_ok=True)


def _edited_file(run: Run) -> Path:
    """Returns the path of a plan while a person edits it."""
    return cache_dir() / f"plan-of-{encode(run.id)}.json"
