"""Grounds of a finding: the outputs of its author's tools, people's words, and the brief."""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from activities.model.conversation import ConversationStore, Entry, texts_of
from activities.prompts.agent_prompts import is_from_people
from activities.replies.agent_story import ToolUse, read_tool_uses
from activities.teams.toolbox import Toolbox, preview
from activities.tools.sql.sql_tools import QueryData
from temporal_supervisor.supervision.agent import agent_tools
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.prompt_marks import (
    ASK_TOOL,
    ATTACHMENT,
    EARLIER_OUTPUTS,
    FINDING,
    FINISH_TOOL,
    READ_OUTPUT_TOOL,
    STEER,
    SUBTASK,
)
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.finding import (
    ArtifactRef,
    CheckedClaim,
    Evidence,
    QueryFacts,
)
from temporal_supervisor.supervision.contract.team import Role
from temporal_supervisor.supervision.grounding.sources import BRIEF, Source, SourceKind
from temporal_supervisor.supervision.results.shown_links import addresses_in
from temporal_supervisor.supervision.reuse.recipes import asks_for_today

_CALL_BYTES = 100  # a tool call beside the line that was found in its output

# A reviewer's feedback and the finding under review prove nothing. Outputs of tools are sources of
# their own, so their copies in the brief are none.
# Example: a block from `<feedback>` to `</feedback>`, each on a line of its own.
_NO_GROUND = re.compile(
    rf"<(feedback|previous_finding|{EARLIER_OUTPUTS})>\n(?:(?!<\1>\n).)*?\n</\1>",
    re.DOTALL,
)

_STEERS = re.compile(rf"<{STEER}>\n((?:(?!<{STEER}>\n).)*?)\n</{STEER}>", re.DOTALL)

_SUBTASK = re.compile(rf"<{SUBTASK}>\n((?:(?!</?{SUBTASK}>).)*?)\n</{SUBTASK}>", re.DOTALL)

# In a first message: foreign text cannot open one of our tags.
_MATERIAL = (f"<{ATTACHMENT} ", f"<{FINDING} ")


Keep = Callable[[str], Awaitable[str]]
"""Stores a text and returns its reference."""


@dataclass
class Grounds:
    """Grounds from a conversation: texts for the rule of grounding, tool calls, and their sources.

    `has_data`: a tool returned data, or a person wrote or decided something.
    `has_material`: the brief holds the text of an attachment, or a finding.
    `last_failed`: the last call of a tool returned an error.
    `last_matched_nothing`: the last query found no row.
    `addresses`: the URLs that the author has read.
    `composed`: URLs that a model may have made up. They were read in the subtask's description, or
    in the output of a query, which can join texts.
    """

    texts: list[Source] = field(default_factory=list)
    calls: list[Evidence] = field(default_factory=list)
    sources: dict[str, None] = field(default_factory=dict)
    artifacts: list[ArtifactRef] = field(default_factory=list)
    addresses: set[str] = field(default_factory=set)
    composed: set[str] = field(default_factory=set)
    has_data: bool = False
    has_material: bool = False
    last_failed: bool = False
    last_matched_nothing: bool = False

    @property
    def has_any(self) -> bool:
        """True if there is something that a finding can rest on."""
        return self.has_data or self.has_material

    def links(self, *, untrusted: bool) -> set[str]:
        """Returns the URLs that may be links; once `untrusted` text was read, no composed ones."""
        return self.addresses if untrusted else self.addresses | self.composed

    def supported(self, claims: list[CheckedClaim]) -> int:
        """Returns the number of claims with a source; the brief is one if it holds material."""
        sources = [claim.source for claim in claims if claim.source]
        if self.has_material:
            return len(sources)
        return len([source for source in sources if source != BRIEF])


def instructions_of(chain: list[Entry]) -> str:
    """Returns the instructions to the author of a conversation: rules, subtask, later messages.

    The material of the brief is left out.
    """
    first, *later = chain
    lines: list[str] = []
    if first.opening:
        lines.append(first.opening.system)
    lines += _subtasks(chain)
    for entry in later:
        lines += texts_of(entry.input)
    return "\n".join(lines)


def subtask_of(chain: list[Entry]) -> str:
    """Returns the subtasks of a conversation, as its first message has them."""
    return "\n".join(_subtasks(chain))


def _subtasks(chain: list[Entry]) -> list[str]:
    found: list[str] = []
    for text in texts_of(chain[0].input):
        found += _SUBTASK.findall(text)
    return found


def needs_data(role: Role, toolbox: Toolbox) -> bool:
    """True if a role has a tool for data, and must not answer from knowledge."""
    if role.grounding != "tools":
        return False
    return any(tool.evidence == "data" for tool in toolbox.tools_named(role.tools))


async def read_grounds(
    conversations: ConversationStore,
    head: str,
    toolbox: Toolbox,
    keep: Keep,
) -> Grounds:
    """Returns the grounds of the conversation at `head` and of those that it began anew.

    `keep` stores outputs of tools that the provider ran.
    """
    chains = await conversations.all_chains(head)
    brief = texts_of(chains[-1][0].input)
    later = [text for chain in chains for entry in chain[1:] for text in texts_of(entry.input)]
    said = [word for text in later for word in _STEERS.findall(text)]
    proving = [_NO_GROUND.sub("", text) for text in brief]
    grounds = Grounds(
        texts=[Source(text) for text in [*proving, *said]],
        has_data=bool(said),
        has_material=any(mark in text for text in proving for mark in _MATERIAL),
        addresses=addresses_in(*(_SUBTASK.sub("", text) for text in brief), *said),
        composed=addresses_in(*brief),
    )
    uses = [use for chain in chains for use in await read_tool_uses(conversations, chain)]
    for use in uses:
        if use.name != FINISH_TOOL and use.output is not None:
            grounds.last_failed = use.is_error and bool(use.output_ref)  # else no tool ran
            grounds.has_data |= is_from_people(use.output)
        await _add(grounds, use, toolbox, keep)
    return grounds


async def _add(grounds: Grounds, use: ToolUse, toolbox: Toolbox, keep: Keep) -> None:
    """Adds a tool call with its output; one without a result adds nothing."""
    if use.output is None or use.is_error:
        return

    tool, known = toolbox.get(use.name), use.name == ASK_TOOL
    if use.name == READ_OUTPUT_TOOL:  # what it shows of a tool's output is known from that output
        known = agent_tools.read_call(json.loads(use.arguments)).place is None
    if not (tool or known):
        return

    arguments = one_line(use.arguments, limits.SENTENCE_BYTES)
    ref = use.output_ref or (await keep(use.output) if tool and tool.provided else "")
    queries = tool is not None and tool.arguments is QueryData
    call = Evidence(
        tool=use.name,
        arguments=arguments,
        output_ref=ref,
        readings=list(use.readings),
        facts=use.facts,
        of_day=queries and asks_for_today(use.arguments),
    )
    grounds.calls.append(call)
    grounds.sources |= dict.fromkeys(use.sources)
    grounds.artifacts += use.artifacts

    kind = tool.evidence if tool else "data"
    if kind == "nothing":
        return
    name = one_line(f"{use.name} {preview(json.loads(use.arguments))}", _CALL_BYTES)
    proves: SourceKind = "computed" if kind == "computed" else "data"
    # A tool may repeat its arguments, which the model wrote.
    shown = addresses_in(use.output) - addresses_in(use.arguments)
    (grounds.composed if queries else grounds.addresses).update(shown)
    facts = use.facts or QueryFacts()
    grounds.texts.append(Source(use.output, proves, use.arguments, name, ref, facts))

    grounds.last_matched_nothing = not facts.has_data
    grounds.has_data |= kind == "data" and facts.has_data
