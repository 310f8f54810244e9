"""The contracts' example with a model that answers as a real one does: words beside its calls, every field filled."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from activities.files.manifest import DataFile
from temporal_supervisor.standin.server.api_reply import text_block, tool_block
from tests.scripted_model import Reply, Script, Step, answer, message
from tests.workflow.scripts import item, plans, subtasks

ROOT = Path(__file__).parents[1] / "examples" / "contracts"
REQUEST: dict[str, Any] = json.loads((ROOT / "request.json").read_text())
_TERMS = {
    "annual": r"The annual fee is EUR ([\d,]+), [^.]+\.",
    "notice": r"Either side may end this agreement by (\w+) months' written notice\.",
    "liability": r"The liability of [^.]+ Ltd\. for slight negligence is "
    r"(?:not limited|limited to EUR ([\d,]+) per year)\.",
}
_VALUES = {"annual": "annual_fee_eur", "notice": "notice_months", "liability": "liability_cap_eur"}
_MONTHS = {"one": 1, "two": 2, "three": 3, "six": 6, "twelve": 12}


def contract_files(folder: Path, count: int) -> list[DataFile]:
    """Returns so many contracts, those of the example again and again."""
    made = sorted((ROOT / "data").iterdir())
    names = [f"{number:03d}{made[number % len(made)].suffix}" for number in range(count)]
    return [
        DataFile(name, Path(shutil.copy(made[number % len(made)], folder / name))) for number, name in enumerate(names)
    ]


def clerk_reads_each(count: int) -> Script:
    """A run in which the clerk reads each file and hands in its row."""
    return plans(
        subtasks(item("t1", "clerk", for_each="files:*")),
        turns={f"t1.{number}": _turn for number in range(1, count + 1)},
        answer_reply=answer("The contracts are in the table.", ["t1.1"]),
    )


def _turn(step: Step) -> Reply:
    if step.number == 1:
        document = re.findall(r"<item>\n(.+)\n</item>", step.prompt)[0]
        words = text_block("I read the contract first.")
        return message([words, tool_block("read_document", {"document_id": document, "place": ""})], "tool_use")
    row = row_of(step.prompt, re.findall(r"document_id': '([^']+)'", str(step.body["messages"][1]))[0])
    said = {"finding": "The terms of the contract are in the row.", "limitations": [], "confidence": 0.9}
    handed_in = {**said, "outcome": "done", "summary": "Its terms.", "output": row}
    return message([text_block("I have all terms now."), tool_block("finish", handed_in)], "tool_use")


def row_of(text: str, name: str) -> dict[str, Any]:
    """Returns what a contract says, with the page or the heading where it stands."""
    supplier = re.findall(r"and (\S+) Ltd\.", text)[0]
    row: dict[str, Any] = {"file": name, "supplier": supplier}
    for term, sentence in _TERMS.items():
        (found,) = re.finditer(sentence, text)
        place = re.findall(r"^#+ (.+)$", text[: found.start()], re.MULTILINE)[-1]
        value = _MONTHS.get(found[1]) if term == "notice" else found[1] and int(found[1].replace(",", ""))
        row |= {_VALUES[term]: value, f"{term}_place": place, f"{term}_quotation": found[0]}
    return row
