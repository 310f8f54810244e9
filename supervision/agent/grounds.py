"""The sources and artifacts that the tool calls of a worker agent gave, within what a finding may carry."""

from supervision.base import limits
from supervision.base.text import cut, size
from supervision.contract.base import Model
from supervision.contract.finding import ArtifactRef

AGENT_SOURCES = 100  # of one finding: more are no list that anybody reads
AGENT_SOURCES_BYTES = 16 * 1024  # and of all of them
AGENT_ARTIFACTS = 50  # of one finding


class Grounds(Model):
    """The first sources and artifacts in the order of the calls; how many more there were is counted."""

    sources: list[str] = []
    artifacts: list[ArtifactRef] = []
    more_sources: int = 0
    more_artifacts: int = 0

    def add(self, sources: list[str], artifacts: list[ArtifactRef], subtask_id: str) -> None:
        """Takes what a tool call gave, each source once, while there is room."""
        known, used = set(self.sources), sum(map(size, self.sources))
        for source in sources:
            source = cut(source, limits.SOURCE_BYTES)
            if source in known:
                continue
            used += size(source)
            if len(known) < AGENT_SOURCES and used <= AGENT_SOURCES_BYTES:
                known.add(source)
                self.sources.append(source)
            else:
                self.more_sources += 1
        room = max(0, AGENT_ARTIFACTS - len(self.artifacts))
        self.artifacts += [artifact.model_copy(update={"subtask_id": subtask_id}) for artifact in artifacts[:room]]
        self.more_artifacts += len(artifacts[room:])

    def limitations(self) -> list[str]:
        """Returns one sentence for each kind of which there were more."""
        kinds = {"sources": self.more_sources, "artifacts": self.more_artifacts}
        return [f"{more} more {kind} stand only in the tool outputs" for kind, more in kinds.items() if more]
