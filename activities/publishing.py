"""The last activity of a run: its whole result and trace go into the store, so reports outlive retention."""

from temporalio import activity

from activities.artifact_store import ArtifactStore
from activities.contracts import Published, PublishInput
from supervision.keys import named_key


class PublishingActivities:
    """Publishing, with the store of this process."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    @activity.defn
    async def publish_result(self, input: PublishInput) -> Published:
        """Stores the result with the whole answer, and the trace."""
        await self._store.require(input.run.store_id)
        run_id = input.run.run_id
        result_ref, trace_ref = named_key(run_id, "result"), named_key(run_id, "trace")
        result = input.result.model_copy(update={"result_ref": result_ref})
        if input.answer_ref:
            whole = (await self._store.get(input.answer_ref)).decode("utf-8", "replace")
            result = result.model_copy(update={"answer": result.answer.replace(input.answer_preview, whole, 1)})
        await self._store.put(result_ref, result.model_dump_json(indent=1).encode("utf-8", "replace"))
        trace = "[" + ",\n".join(event.model_dump_json() for event in input.trace) + "]\n"
        await self._store.put(trace_ref, trace.encode("utf-8", "replace"))
        return Published(result_ref=result_ref, trace_ref=trace_ref)
