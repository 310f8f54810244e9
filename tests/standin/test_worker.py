"""A worker agent's whole conversation with tools of an invented domain, and what is made of it."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from activities.prompts.agent_prompts import FINISH_TAKEN
from temporal_supervisor.standin.extract.answers import synthesis
from temporal_supervisor.standin.extract.kind_of_call import think
from temporal_supervisor.standin.extract.prompt_parts import Parts
from temporal_supervisor.standin.extract.schema_fill import Filler
from temporal_supervisor.standin.extract.standin_words import WAYS_TO_A_MODEL
from temporal_supervisor.standin.lookup.table_columns import read_tables
from temporal_supervisor.standin.lookup.table_questions import table_answer
from temporal_supervisor.standin.lookup.tables import grid_sentences, parse_grids
from temporal_supervisor.standin.lookup.word_forms import key_words
from temporal_supervisor.standin.server.api_reply import ApiReply
from temporal_supervisor.standin.server.api_request import parse
from temporal_supervisor.supervision.base.prompt_marks import DOUBT, UNSUPPORTED
from tests.standin.conftest import FOOTER

Tool = Callable[..., str]


LISTING = """
table harvests (farm VARCHAR, valley VARCHAR, fruit VARCHAR, year BIGINT, crop_tonnes DOUBLE): Crop of each orchard
  farm: Hill Farm, Mill Farm, Old Mill Farm
  valley: Lower Valley, Upper Valley
  fruit: Apples, Pears
  year: 1980 to 2020
  crop_tonnes: 20.0 to 156.0
  Note: crop of pears: decimal commas are read as numbers
"""


def tool(tool_name: str, description: str, /, **properties: Any) -> dict[str, Any]:
    required = [key for key, spec in properties.items() if "default" not in spec]
    return {
        "name": tool_name,
        "description": description,
        "input_schema": {"type": "object", "properties": properties, "required": required},
    }


TEXT = {"type": "string"}
NOTES = [
    tool("find_notes", "Finds notes.", query=TEXT, limit={"type": "integer", "default": 3}),
    tool("open_note", "Opens a note.", note_id=TEXT),
]
FORMAT = [tool("bind", "Makes a document.", title=TEXT, body=TEXT)]


class Agent:
    """Runs the loop that a worker agent runs, with tools in this process."""

    def __init__(self, prompt: str, tools: list[dict[str, Any]], functions: dict[str, Tool]) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        self.tools = tools
        self.functions = functions
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def reply(self) -> ApiReply:
        body = {"model": "claude-haiku-5-5", "max_tokens": 9000, "tools": self.tools, "messages": self.messages}
        return think(parse(json.loads(json.dumps(body))))

    def turn(self) -> ApiReply:
        reply = self.reply()
        if results := [self._result(block) for block in reply.content if block["type"] == "tool_use"]:
            self.messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]
        return reply

    def run(self) -> str:
        while (reply := self.turn()).stop_reason == "tool_use":
            pass
        return str(reply.content[0]["text"])

    def _result(self, block: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((block["name"], block["input"]))
        try:
            text, failed = self.functions[block["name"]](**block["input"]), False
        except Exception as error:
            text, failed = f"{error}", True
        return {"type": "tool_result", "tool_use_id": block["id"], "content": text, "is_error": failed}

    def named(self) -> list[str]:
        return [name for name, _ in self.calls]


def about(question: str, more: str = "") -> str:
    """What a worker agent is told."""
    return f"<goal>{question} Be brief.</goal>\n<subtask>Look it up. Question: {question}</subtask>{more}"


def reader(question: str, found: str, opened: Callable[[str], str], more: str = "") -> Agent:
    """An agent whose search finds that, and who opens notes."""
    functions: dict[str, Tool] = {
        "find_notes": lambda query, limit=3: found,
        "open_note": lambda note_id: opened(note_id),
    }
    return Agent(about(question, more), NOTES, functions)


def query(question: str, listing: str = LISTING) -> str:
    """The query that answers a question; empty if none does."""
    answer = table_answer(read_tables(listing), question)
    return answer.sql if answer else ""


def test_without_an_example_the_named_rows_and_times_are_asked_for() -> None:
    made = query("How did the pear crop of Hill Farm change from 1980 to 2020?")
    where = "WHERE farm IN ('Hill Farm') AND fruit IN ('Pears') AND year IN (1980, 2020)"
    shown = 'farm, fruit, year AS period, sum(crop_tonnes) AS "crop tonnes"'
    assert made == f"SELECT {shown} FROM harvests {where} GROUP BY farm, fruit, year ORDER BY farm, fruit, year"


def test_a_word_that_nothing_explains_makes_a_question_one_for_a_model() -> None:
    assert query("What is the total crop of Hill Farm?")
    assert not query("What is the total healthy crop of Hill Farm?")
    assert not query("Why is the total crop of Hill Farm low?")


def test_documents_are_searched_then_read_then_quoted() -> None:
    notes = {
        "n-17": "# Pruning\n\nPear trees are pruned in late winter, before\nthe buds open. Ladders are in the barn.",
        "n-4": "# Frost\n\nLate frost kills pear blossom.",
    }
    found = "[n-4] Frost: Late frost\n[n-17] Pruning: Pear trees are pruned in"
    agent = reader("When are pear trees pruned?", found, notes.__getitem__)
    answer = agent.run()
    assert agent.calls[0] == ("find_notes", {"query": "pear trees pruned"})
    assert sorted(call[1]["note_id"] for call in agent.calls[1:]) == ["n-17", "n-4"]
    assert "- Pear trees are pruned in late winter, before the buds open. [n-17]" in answer
    assert "barn" not in answer


def test_a_document_whose_id_has_blanks_is_read() -> None:
    found = "[Chair notes 2.pdf p. 12] Chairs: The lot 7 broke\n[Sinks] Sinks: A sink"
    agent = reader("Why did chairs break?", found, lambda note_id: "Chairs broke.")
    agent.run()
    assert ("open_note", {"note_id": "Chair notes 2.pdf"}) in agent.calls
    agent = reader("Why did chairs break?", found, lambda note_id: "Chairs broke.", "<item>Stools.pdf</item>")
    assert "lot 7" not in agent.run()
    assert agent.calls[1:] == [("open_note", {"note_id": "Stools.pdf"})]


def test_a_document_is_composed_of_the_findings() -> None:
    findings = (
        '<finding subtask_id="t1" role="reader">\n- Pears love the sun. [n-1]\n</finding>'
        '<finding subtask_id="t2" role="counter">\n- Pears: crop went from 20 (1980) to 44 (2020).\n\n'
        f"{FOOTER}: it extracts._\n\nConfidence: 0.8\nLimitations: none\n</finding>"
    )

    def bind(title: str, body: str) -> str:
        return f"# {title}\n\n{body}"

    agent = Agent(about("Report on pears.", f"<findings>{findings}</findings>"), FORMAT, {"bind": bind})
    answer = agent.run()
    (_, arguments), *others = agent.calls
    assert others == []
    assert arguments["title"] == "Report on pears"
    assert re.findall("^## (.*)$", arguments["body"], re.MULTILINE) == ["Counter (t2)", "Reader (t1)"]
    assert answer.startswith("# Report on pears")
    assert answer.count(FOOTER) == 1


def test_words_of_every_question_are_no_names() -> None:
    assert key_words("Should Anna know what she could do?") == ["Anna", "she"]


def test_the_last_turn_calls_nothing() -> None:
    agent = reader("When are pear trees pruned?", "", str)
    agent.messages[0]["content"] += "\nThis is your last turn: no more tool calls are possible."
    assert agent.reply().stop_reason == "end_turn"
    agent.tools = []
    (said,) = agent.reply().content
    assert said["text"].startswith("This needs a model: “When are pear trees pruned?”")
    assert "\nOutcome: impossible\n" in said["text"]


def test_what_it_cannot_extract_fails_with_three_ways_to_a_model() -> None:
    finish = tool(
        "finish", "Takes it.", outcome={"enum": ["partial", "done", "impossible"]}, finding=TEXT, summary=TEXT
    )
    agent = reader("Why does an octopus have three hearts?", "", str)
    agent.tools = [finish]
    (block,) = agent.reply().content
    assert (block["name"], block["input"]["outcome"]) == ("finish", "impossible")
    assert block["input"]["summary"].startswith("This needs a model: “Why does an octopus have three hearts?”")
    assert [way for way in WAYS_TO_A_MODEL if way not in block["input"]["finding"]] == []


def test_what_dates_and_names_rows_is_no_figure() -> None:
    listing = 'table sales ("Order ID" BIGINT, Day DATE, Net DOUBLE): x\n  Day: 2025-01-01 to 2026-02-28'
    assert query("Total net in 2025", listing).endswith("WHERE substr(CAST(Day AS VARCHAR), 1, 4) = '2025'")
    assert query("Net of order 7", listing).endswith('WHERE "Order ID" = 7')
    shown = "| Order ID | Day | Net |\n| --- | --- | --- |\n| 1 | 2025-01-01 | 5 |\n| 2 | 2025-12-31 | NULL |"
    assert grid_sentences(parse_grids(shown), {}) == ["Net was 5 (2025-01-01)."]


def test_a_finding_is_handed_over_by_the_tool_that_takes_it() -> None:
    outcome = {"enum": ["partial", "done"]}
    finish = tool("finish", "Takes it.", outcome=outcome, finding=TEXT, confidence={"type": "number"})
    agent = reader("Which pears grew?", "[a] Pears of the valley", lambda note_id: "Pears grew well.")
    agent.tools = [*NOTES, finish]
    agent.turn()
    agent.turn()
    (block,) = agent.reply().content
    assert (block["name"], block["input"]["outcome"], block["input"]["confidence"]) == ("finish", "done", None)
    assert "Pears grew well. [a]" in block["input"]["finding"]


def test_a_finding_that_came_back_is_handed_in_without_the_words_that_sent_it_back() -> None:
    outcome = {"enum": ["partial", "done"]}
    finish = tool("finish", "Takes it.", outcome=outcome, finding=TEXT)
    agent = reader("Which pears grew?", "[a] Pears of the valley", lambda note_id: "Pears grew well.")
    agent.tools = [*NOTES, finish]
    agent.functions["finish"] = lambda **fields: FINISH_TAKEN
    for _ in range(3):
        agent.turn()
    agent.messages.append({"role": "user", "content": "Your finding was not accepted yet. Look up the pears."})
    (block,) = agent.reply().content
    assert agent.named()[-1] == "finish"
    assert "Pears grew well. [a]" in block["input"]["finding"]
    assert "received" not in block["input"]["finding"]


def test_what_a_tool_has_done_is_said_once() -> None:
    book = tool("book_refund", "Books a refund.", customer={**TEXT, "maxLength": 80})
    booked = {"book_refund": lambda customer: f"The refund of {customer} is booked."}
    agent = Agent(about("Book the refund of Kim"), [book], booked)
    assert agent.run().count("The refund of Kim is booked.") == 1


def test_what_is_noted_about_a_finding_is_no_part_of_the_answer() -> None:
    noted = f"<finding subtask_id='t1'>Pears: 3.\n{UNSUPPORTED}3\n{DOUBT}no condition on the year</finding>"
    prompt = Parts(parse({"model": "m", "messages": [{"role": "user", "content": noted.replace("'", '"')}]}))
    assert synthesis(prompt)["answer"].startswith("- Pears: 3. [t1]\n\n_An extract")


def test_a_role_that_may_ask_asks_once_beside_its_tools_and_quotes_the_reply() -> None:
    ask = tool("ask_person", "Asks a person.", question=TEXT)
    agent = reader("Which pears grew?", "[a] Pears of the valley", lambda note_id: "Pears grew well.")
    agent.tools = [ask, *NOTES]
    agent.functions["ask_person"] = lambda question: "Only Hill Farm counts"
    answer = agent.run()
    assert agent.named()[:2] == ["ask_person", "find_notes"]
    assert agent.named().count("ask_person") == 1
    assert agent.calls[0][1] == {"question": "Which pears grew?"}
    assert "A person said: Only Hill Farm counts" in answer


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("- Total amount (customer Bolt): 1,581.5. [t1]", "number", 1581.5),
        ("Highest amount: 340 (order id: 2; order id: 6).", "number", 340.0),
        ("- Highest pay: 340 (Name: Ann, Town: Aarau; Name: Ben, Town: Bern). [t1]", "string", "Ann and Ben"),
        ("- Highest pay by town: Aarau and Bern, 1,340.5; then Chur, 3. [t1]", "string", "Aarau and Bern"),
        ("- Highest pay by town: Aarau, 1,340.5. [t1]", "number", 1340.5),
        ("- Count: 4 rows of members. [t1]", "number", 4.0),
        ("Garden with most pears: North (30). [t1]", "string", "North"),
        ("- May: 3.\n- June: 4.", "number", None),
        ("The carrier stopped in July.", "number", None),
    ],
)
def test_the_only_value_of_an_extract_fills_a_form_for_one_answer(text: str, kind: str, value: object) -> None:
    form = {"type": "object", "properties": {"value": {"anyOf": [{"type": kind}, {"type": "null"}]}}}
    assert Filler(form, text).fill() == {"value": value}
