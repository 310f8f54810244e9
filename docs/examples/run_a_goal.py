"""Runs one goal and prints its answer: `.venv/bin/python docs/examples/run_a_goal.py`."""

import asyncio
import sys

from runtime.connection import connect
from runtime.process import exit_now
from supervision.contract import RunRequest
from workflows.supervisor import SupervisorWorkflow

GOAL = "Which source of electricity grew most in Iowa from 2001 to 2017?"


async def main(run_id: str) -> None:
    """Starts the run and waits for its answer."""
    client = await connect()
    request = RunRequest(goal=GOAL, max_parallel=4)
    result = await client.execute_workflow(SupervisorWorkflow.run, request, id=run_id, task_queue="supervisor")
    sys.stdout.write(result.answer + "\n")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "iowa"))
exit_now()  # a thread of the SDK may abort a process that ends in the usual way right after a call
