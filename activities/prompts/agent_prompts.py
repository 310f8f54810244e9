"""The prompts of worker agents, and the words with which calls and findings go back to them.

Plain functions of values. `prompt_blocks` has the parts of all prompts, `activities/questions` the
prompts of the supervisor.
"""

from collections.abc import Iterable, Iterator, Mapping

from activities.prompts.prompt_blocks import (
    MATERIAL,
    attachment_block,
    block,
    findings_block,
    gap_blocks,
    plain,
    tag,
)
from activities.store.reading import FindingExcerpt
from temporal_supervisor.supervision.agent.empty_words import Emptiness
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.prompt_marks import (
    ASK_TOOL,
    ATTACHMENTS,
    DATA,
    DEADLY,
    DONE,
    EARLIER_OUTPUTS,
    FINISH_TOOL,
    ITEM,
    LAST_TURN_MARK,
    MISSING,
    QUERY_WANTED,
    READ_OUTPUT_TOOL,
    STEER,
    SUBTASK,
)
from temporal_supervisor.supervision.base.text import cut, one_line, size
from temporal_supervisor.supervision.contract.plan import Subtask
from temporal_supervisor.supervision.contract.result import Gap
from temporal_supervisor.supervision.contract.team import Role

_WITH_TOOLS = """
- Begin with the one call that is most likely to answer the subtask. Put calls that do not need \
each other's results into one turn. Most subtasks take 2 to 5 calls. You have {max_turns} turns in \
all, and the last one takes no calls.
- Stop as soon as the subtask is answered, or when two different attempts show that your sources \
do not have the answer.
- An error message of a tool is not a result. If something cannot be found, say what you looked \
for and where; that is a useful finding. Never fill the hole with a guess."""
_CHECKED = """
- Every figure, quotation and URL in your finding must stand in {grounds}your brief, which is the \
first message: a program checks each one. Leave out what you only remember. Write the calculation \
beside a figure that you compute, as in TOTAL (A × B): it is checked, too."""
_OUTPUTS = "the output of one of your tools or in "
_COMPUTE = " Compute more than that with a tool, not in your head."
_KNOWLEDGE = """
- You may answer from your own knowledge; your finding is marked so. Say which statements you are \
not sure of, and what may have changed since you learned it. Never make up a source, a quotation \
or a URL."""
_CITE = """
- Of a page of the web only the passages that you cite are kept. Write what you take from it as \
text, cited, before you call {finish}. Say of each figure on which day it was fetched and, where \
the page says it, from when it is."""


_SHORT_RULES = """
- Make one call at a time, without words beside it, and wait for its output. You have {max_turns} \
turns in all.
- An error message of a tool is not a result: correct the call as it says.
- Take each figure and name from a tool's output or from the first message: a program checks them. \
Never guess or recall one. Compute with a tool, not in your head.
- As soon as an output has the answer, call {finish} with the finding: one to five sentences, each \
figure with its unit and period and what it is of. If your sources do not have it, say so there."""


def worker_system(
    role: Role,
    max_turns: int,
    date: str,
    cites: bool = False,
    *,
    short: bool = False,
) -> str:
    """Returns a role's prompt with its rules.

    An agent that `cites` has tools whose outputs are kept where it cites. The `short` rules are for
    models with a small window. They are those of an agent that finds out by its tools.
    """
    if short and role.tools and role.grounding == "tools" and not cites:
        rules = _SHORT_RULES.format(max_turns=max_turns, finish=FINISH_TOOL)
        return f"""{role.system_prompt.strip()}

How to work{rules}

The text in <{SUBTASK}>, <feedback> and <{STEER}> {MATERIAL}"""
    rules = _WITH_TOOLS.format(max_turns=max_turns) if role.tools else ""
    if role.grounding == "knowledge":
        rules += _KNOWLEDGE
    elif role.tools:
        rules += _CHECKED.format(grounds=_OUTPUTS) + _COMPUTE
    else:
        rules += _CHECKED.format(grounds="")
    if cites:
        rules += _CITE.format(finish=FINISH_TOOL)
    today = f"\n\nToday is {date}." if date else ""
    return f"""{role.system_prompt.strip()}{today}

How to work{rules}
- Conclude by calling {FINISH_TOOL}, alone, after the results of your other calls. Everything that \
others should read goes into its field finding: they see nothing else of your work.

The text in <subtask>, <feedback> and <{STEER}> {MATERIAL}"""


def worker_request(
    subtask: Subtask,
    findings: list[FindingExcerpt],
    missing: list[Gap],
    attachments: Mapping[str, str | None],
    feedback: str | None = None,
    previous: str | None = None,
    with_tools: bool = False,
    room: int = limits.PROMPT_LIST_BYTES,
    names_items: bool = False,
    tables: str = "",
) -> str:
    """Returns the prompt of a subtask; `feedback` says what to fix in the finding `previous`.

    `attachments` are texts by name, None for one that has to be read by a tool; `room` is for each
    list. `tables` is the list of tables of an agent that begins with a query.
    """
    parts = [tag(SUBTASK, subtask.description)]
    if tables:
        parts += [_TABLES_KNOWN, tag(DATA, tables)]
    if subtask.item:
        one = "Do it for this one item. Other agents do it for the others."
        parts += [one, tag(ITEM, subtask.item)]
    if names_items:
        parts.append(_ITEMS_NAMED)
    if findings:
        parts.append(findings_block(findings))
    if with_tools and any(finding.summarised for finding in findings):
        parts.append(_SUMMARISED)
    if missing:
        words = (
            "These findings are missing. Say in your finding what you could not do without them:"
        )
        parts += [words, "\n".join(gap_blocks(MISSING, missing, room))]
    if attachments:
        parts.append(block(ATTACHMENTS, _attachment_blocks(attachments, room)))
    if feedback and feedback.strip():
        parts += _feedback_parts(feedback, previous)
    parts.append("Do only this subtask. Other agents work on the rest.")
    if tables:
        parts.append(_QUERY_FIRST)  # a small model does what it read last
    return "\n\n".join(parts)


def _feedback_parts(feedback: str, previous: str | None) -> list[str]:
    """Returns the feedback on a former attempt, behind its finding if there was one."""
    fix = tag("feedback", feedback)
    if not previous:
        return [fix, "This subtask was tried before. Follow <feedback> this time."]
    return [tag("previous_finding", previous), fix, _FIX]


def _attachment_blocks(attachments: Mapping[str, str | None], room: int) -> Iterator[str]:
    """Yields the texts that fit into `room` bytes; the others are to be read by a tool."""
    for name, text in attachments.items():
        shown = text if text is not None and size(text) <= room else None
        room -= size(shown or "")
        yield attachment_block(name, shown)


_TABLES_KNOWN = """\
Its tables, with their columns as a query has to write them. They need not be listed again:"""
_ITEMS_NAMED = f"""\
Other subtasks are made for the items that you name in the field items of {FINISH_TOOL}."""
_SUMMARISED = f"""\
A finding with shown="summary" is a summary by its author. {READ_OUTPUT_TOOL}, with its \
subtask_id as output, shows the whole text."""
_QUERY_FIRST = """Begin with a query. Reply with one block and nothing else:
```sql
SELECT ...
```"""

QUERY_SYSTEM = f"You write SQL queries. The text in <{SUBTASK}> {MATERIAL}"


_OTHER_WORDS = (
    "Write the query whose result is the answer to it: {question}",
    "Which rows does it need, and which of their columns? {question} Write the query for that.",
)


def another_query(subtask: Subtask, tables: str, number: int) -> str:
    """Returns the prompt that asks for another query of a subtask, the `number` counted from 1.

    Its words are others than those for the first query, and for each number, so that a model is not
    led to the query that it has written already. What differs comes last: a server that keeps
    prompts reads the tables once.
    """
    question = plain(subtask.whole)
    words = _OTHER_WORDS[number % len(_OTHER_WORDS) - 1]
    wanted = words.format(question=one_line(question, limits.SENTENCE_BYTES))
    block_wanted = f"Reply with it {QUERY_WANTED}, and nothing else:\n```sql\nSELECT ...\n```"
    return "\n\n".join([tag(SUBTASK, question), tag(DATA, tables), f"{wanted}\n{block_wanted}"])


_EARLIER_OUTPUTS = "Your tools have already returned these outputs, the last one first. Use them."
_FAILED_OUTPUTS = """\
These calls failed, for the reasons below them. Make another call that avoids the reason; none of \
these again."""


def earlier_outputs(uses: Iterable[tuple[str, str]], room: int, *, failed: bool = False) -> str:
    """Returns the outputs of tools for a conversation that begins anew, in `room` bytes.

    `uses` are calls with their outputs; the last ones come first, each in an equal share. All of
    them may have `failed`. Empty without any.
    """
    shown = list(dict(uses).items())[::-1]
    if not shown:
        return ""
    share = room // len(shown)
    outputs = []
    for call, output in shown:
        outputs.append(f"{one_line(call, limits.LINE_BYTES)}:\n{cut(output, share)}")
    listed = tag(EARLIER_OUTPUTS, "\n\n".join(outputs))
    words = _FAILED_OUTPUTS if failed else _EARLIER_OUTPUTS
    return f"{words}\n{listed}"


_CORRECT = (
    "A reviewer checked your finding. Fix exactly the points in <feedback>, keep the rest, and "
    "hand in the whole finding again."
)
_FIX = _CORRECT.replace("your finding", "your previous finding", 1)


def correction_request(feedback: str) -> str:
    """Returns the turn with which a review's feedback continues a conversation."""
    return f"{tag('feedback', feedback)}\n\n{_CORRECT}"


def is_correction_request(text: str) -> bool:
    """True if a turn of a conversation is one of `correction_request`."""
    return text.endswith(_CORRECT)


LAST_TURN = f"""{LAST_TURN_MARK}: no more tool calls are possible. Write the finding now, from \
what you have. Others will read this text alone. Name each part of the subtask that you could not \
finish. End with these two lines:
Confidence: <0 to 1>
Limitations: <what is missing or uncertain; "none" if nothing is>"""
LAST_OUTPUT = f"""Before these two lines give the value of the field output of {FINISH_TOOL} as \
JSON: {{"output": ...}}."""
LAST_ITEMS = """Before these two lines give the items that the subtask asks for as JSON: \
{"items": [...]}."""
TURNS_LEFT = (
    f"{limits.TURNS_NOTICE} turns are left after this one, and the last of them takes no tool "
    "calls. Ask now for everything that you still need. Put calls that do not need each other's "
    "results into one turn."
)
NOT_RUN = "This call was not run, because the last turn takes no tool calls."
DEADLY_CALL = f"{DEADLY}. Continue without it, or with other arguments."
UNKNOWN_OUTCOME = """\
The outcome of this call is unknown. Check whether it took effect before you try it again."""
NUDGE = """\
Your message had neither a tool call nor a finding. Make a call, or write your finding now."""
FINISH_TAKEN = "The finding was received."
FINISH_MISUSE = (
    f"{FINISH_TOOL} was not accepted: it stood beside other calls, or had no finding in it. Call "
    "it alone, once you have their results, with the whole finding and its other fields."
)
ASK_MISUSE = f"""\
{ASK_TOOL} was not called: it takes one question, and it may not be open to this role."""
WRITTEN_MISUSE = (
    "This call was not run: it was written as text, and this tool has effects. Make it through "
    "the tool's own call, or continue without it."
)
MADE_BEFORE = """\
This call was made before, and its output stands above: it does not change. Work with that \
output."""
FAILED_BEFORE = (
    "This call was made before with these arguments, and it failed: it fails each time. The "
    "reason stands above. Change the arguments, or say what could not be found."
)
_ALREADY_DONE = (
    f"Others have worked on this before you: their calls in <{DONE}> took effect, or may have. Do "
    "not make them again unless the subtask asks for it more than once; build on them, and name "
    "them in your finding."
)
NOT_APPROVED = """\
This call was not run: a person has to approve it first. Call it again to have it approved."""
# How the outputs of calls begin that waited for people.
_DENIED_BY = "A person has"
_NOBODY = "No person has"
_DENIED = """\
Do not make the same call again. Make another one only if that meets the reason; else continue \
without it."""
REFUSED = """\
This call was not run: this tool may not be called after texts of others were read. Continue \
without it."""
_UNSUPPORTED = """Your finding was not accepted yet. These figures, names, quotations or URLs \
stand neither in a tool output nor in your brief, or were computed from figures that do not:
{claims}
Look each one up with your tools, correct it, write its calculation beside it, or leave it out. \
Then hand in the whole finding again."""
_MISFIT = """The fields of your finding do not have the form that was asked for:
{problems}
Correct exactly these, and hand in the whole finding again."""
WITHHELD = "Not available for this subtask, as its texts may not leave:"
NO_ITEMS = f"""\
the field items of {FINISH_TOOL} is missing: it lists the items that the subtask asks for"""
_UNCLEAR = f"""Your finding reads as if the subtask could not be done. Decide which it is: done \
(everything that was asked is answered), partial (some of it is), or impossible (nothing could be \
answered with your tools and sources). Then hand in the whole finding again: by calling \
{FINISH_TOOL} with that outcome, or as a text that ends with the line
Outcome: <done, partial or impossible>"""


DOUBTS_A_QUERY = "a program doubts that your query asks for what the subtask asks for:"
_DOUBTED = f"""Your finding was not accepted yet, because {DOUBTS_A_QUERY}
{{doubts}}

{{query_again}}"""
QUERY_AGAIN = (
    "Query again, so that the query itself has each condition and does the sorting and computing, "
    "and conclude from that. If your query was right, give your finding once more."
)

_UNGROUNDED = """Your finding was not accepted yet, because no tool has shown you any data for it. \
A list of tables, or a calculation, does not count as data. Look up with your tools what the \
subtask asks for. Then hand in the whole finding again."""
EMPTY_NOTES: dict[Emptiness, str] = {
    "says_nothing": """\
Your message was not accepted as a finding: it describes your work, but gives nothing that the \
subtask asks for. Make the calls that you still need, then write what they show.""",
    "failed_call": """\
Your last call failed, and no other one has shown you data. Correct it, or make another one.""",
    "no_rows": "Your query was run, and no row meets its conditions. Query again with others.",
}
_IMPOSSIBLE = f"""\
If your tools and sources cannot have it, call {FINISH_TOOL} with outcome "impossible" and say \
why."""


def empty_note(why: Emptiness) -> str:
    """Returns the note with which a conclusion that is no finding goes back to its author."""
    return f"{EMPTY_NOTES[why]} {_IMPOSSIBLE}"


def already_done(effects: Iterable[str]) -> str:
    """Returns the note on earlier calls with effects for the next worker agent, if any."""
    listed = "\n".join(effects)
    return f"{tag(DONE, listed)}\n\n{_ALREADY_DONE}" if listed else ""


def denied(comment: str) -> str:
    """Returns the text in place of the output of a call that a person has denied."""
    why = f" This is the reason:\n{tag('feedback', comment)}\n" if comment.strip() else " "
    return f"{_DENIED_BY} denied this call, so it was not run.{why}{_DENIED}"


def is_denial(output: str) -> bool:
    """True if in place of a call's output stands that a person has denied it."""
    return output.startswith(_DENIED_BY)


def unanswered(is_question: bool) -> str:
    """Returns the text for the model if no person has replied in time."""
    said = "replied in time" if is_question else "approved this call in time, so it was not run"
    advice = "Continue without it, and name what is missing among your limitations."
    return f"{_NOBODY} {said}. {advice}"


def is_from_people(output: str) -> bool:
    """True if in place of a call's output stands the decision of people, or the lack of one."""
    return output.startswith((_DENIED_BY, _NOBODY))


def _dashed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {plain(text)}" for text in texts)


def objection(
    claims: Iterable[str],
    unclear: bool,
    misfit: Iterable[str] = (),
    doubts: Iterable[str] = (),
    *,
    ungrounded: bool = False,
) -> str:
    """Returns the objection with which a finding goes back to its author, once.

    It lists claims without support, an `unclear` outcome, a misfit, and `doubts` about its queries.
    A finding that is `ungrounded` rests on nothing.
    """
    listed, problems, doubted = map(_dashed, (claims, misfit, doubts))
    notes = [f"{_UNGROUNDED} {_IMPOSSIBLE}"] if ungrounded else []
    notes += [_UNSUPPORTED.format(claims=listed)] if listed else []
    notes += [_MISFIT.format(problems=problems)] if problems else []
    notes += [_UNCLEAR] if unclear else []
    # It comes last: another query is what has to be done first.
    notes += [_DOUBTED.format(doubts=doubted, query_again=QUERY_AGAIN)] if doubted else []
    return "\n\n".join(notes)


def doubted_query(doubts: Iterable[str]) -> str:
    """Returns the words below the output of a query before anything was concluded from it."""
    return f"Conclude nothing from this yet: {DOUBTS_A_QUERY}\n{_dashed(doubts)}"
