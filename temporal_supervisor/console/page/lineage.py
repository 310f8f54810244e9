"""The earlier runs that a run builds on, with links to them."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from temporalio.client import Client
from temporalio.service import RPCError

from temporal_supervisor.console.page.page_site import PageSite, place_of
from temporal_supervisor.console.run.found_runs import recorded_goal
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import Status


@dataclass(frozen=True)
class Origin:
    """An earlier run; its goal is empty if its request can't be read any more."""

    run_id: str
    goal: str

    @property
    def place(self) -> str:
        """The path of its page."""
        return place_of(self.run_id)


async def origins_of(client: Client, run_ids: Sequence[str]) -> list[Origin]:
    """Returns the runs with these ids and their goals."""
    goals = await asyncio.gather(*(_goal_of(Run(client, run_id)) for run_id in run_ids))
    return [Origin(run_id, goal) for run_id, goal in zip(run_ids, goals, strict=True)]


async def _goal_of(run: Run) -> str:
    with contextlib.suppress(RPCError):  # the server may have forgotten the run
        return await recorded_goal(run)
    return ""


def lineage_text(site: PageSite, built: RunResult | Status, origins: Sequence[Origin]) -> str:
    """Returns the links to the earlier runs of a page; empty without any."""
    if not built.reuse_from:
        return ""
    taken = [report for report in built.subtasks if report.reused]
    return site.text("lineage.html.j2", built=built, origins=origins, taken=taken)
