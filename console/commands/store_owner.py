"""The namespace that a command speaks for, as an owner of objects in an artifact store that others may share."""

import json
import re
from dataclasses import dataclass

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.store.artifacts import ArtifactStore
from activities.store.contents import StoredRun
from console import console_limits
from console.run.run_handle import RUN_TYPE, is_open
from runtime.connection import namespace_id
from supervision.store_keys import home_name, run_of, run_prefix

_UPLOAD = re.compile(r"uploads/([0-9a-f]{64})")


class Unreadable(Exception):
    """The request of an open run, which may name any upload, can't be read."""


@dataclass(frozen=True)
class Owner:
    """A namespace of one server, by the id that the server gave it: servers share names, never these ids."""

    client: Client
    store: ArtifactStore
    namespace_id: str

    @classmethod
    async def of(cls, client: Client, store: ArtifactStore) -> "Owner":
        """Returns the owner that a client speaks for."""
        return cls(client, store, await namespace_id(client))

    def owns(self, run: StoredRun) -> bool:
        """True if no other namespace or server had a run of this id."""
        return run.homes == {self.namespace_id}

    async def has_ended(self, run: StoredRun) -> bool:
        """True if the run is this namespace's alone, and the server says that it closed or no longer knows it."""
        if not self.owns(run):
            return False
        run_id = run_of(run.run_prefix)
        if run_prefix(run_id) != run.run_prefix:  # too long to be read back from a key
            mark = await self.store.get(run.run_prefix + home_name(self.namespace_id))
            run_id = mark.decode("utf-8", "surrogatepass")
        try:
            handle = self.client.get_workflow_handle(run_id)
            return not is_open(await handle.describe(rpc_timeout=console_limits.RPC_TIMEOUT))
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:  # it was begun here, so its retention is over
                return True
            raise

    async def requested(self, prepared: list[StoredRun]) -> set[str]:
        """Returns the hashes of the uploads that open runs ask for which have not stored anything yet.

        Raises Unreadable if such a request cannot be read.
        """
        known = {run.run_prefix for run in prepared if self.namespace_id in run.homes}
        query = f"WorkflowType = '{RUN_TYPE}' AND ExecutionStatus = 'Running'"
        wanted: set[str] = set()
        async for execution in self.client.list_workflows(query):
            if run_prefix(execution.id) not in known and execution.parent_id is None:
                wanted |= await self._uploads_of(execution.id)
        return wanted

    async def _uploads_of(self, run_id: str) -> set[str]:
        async for event in self.client.get_workflow_handle(run_id).fetch_history_events(page_size=1):
            payloads = event.workflow_execution_started_event_attributes.input.payloads
            try:
                values = await self.client.data_converter.decode(payloads)
            except Exception as error:  # converters raise whatever they like
                raise Unreadable(f"the request of the open run '{run_id}' cannot be read") from error
            return set(_UPLOAD.findall(json.dumps(values, default=str)))
        return set()
