"""What people wrote for a run, on its way into the store."""

import asyncio
from dataclasses import dataclass, field

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import PersonWords, RunRef, WordsInput
    from activities.run.run_activities import RunActivities
    from supervision.base import limits
    from supervision.base.text import size
    from supervision.contract.finding import Finding
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.run_context import let_ready_tasks_finish


@dataclass
class _Due:
    """Words that are to be stored, and who waits for that."""

    words: PersonWords
    stored: "asyncio.Future[Finding]" = field(default_factory=asyncio.Future)


class Words:
    """Stores what people wrote: all that came together in one activity, so that fifty replies cost what one does."""

    def __init__(self, run: RunRef) -> None:
        self._run = run
        self._due: list[_Due] = []
        self._storing: asyncio.Task[None] | None = None

    async def kept(self, words: PersonWords) -> Finding:
        """Returns a person's words, stored, as a finding. Raises CallFailed."""
        due = _Due(words)
        self._due.append(due)
        if self._storing is None or self._storing.done():
            self._storing = asyncio.create_task(self._store())
        return await due.stored

    async def _store(self) -> None:
        while self._due:
            # The decisions of one update wake their work one after the other: by then all have said what they have.
            await let_ready_tasks_finish()
            batch = self._next_batch()
            said = WordsInput(run=self._run, words=[due.words for due in batch])
            activity, name = (
                RunActivities.keep_words,
                "store a reply" if len(batch) == 1 else f"store {len(batch)} replies",
            )
            try:
                findings = await activity_calls.with_store(activity, limits.PUBLISH_TIMEOUT, name, said)
            except CallFailed as failed:
                for due in _awaited(batch):
                    due.stored.set_exception(failed)
                continue
            by_place = dict(zip(map(id, batch), findings, strict=True))
            for due in _awaited(batch):
                due.stored.set_result(by_place[id(due)])

    def _next_batch(self) -> list[_Due]:
        """Takes the first words that fit into one payload, and at least one text."""
        batch: list[_Due] = []
        room = limits.PAYLOAD_AIM_BYTES
        for due in self._due:
            room -= size(due.words.text)
            if batch and room < 0:
                break
            batch.append(due)
        self._due = self._due[len(batch) :]
        return batch


def _awaited(batch: list[_Due]) -> list[_Due]:
    """Returns the words that somebody waits for still: the others' work was stopped meanwhile."""
    return [due for due in batch if not due.stored.done()]
