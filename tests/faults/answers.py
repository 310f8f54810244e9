"""Honest answers with what they rest on, from `answers.toml`, and the same answers with a fault planted by code.

The queries of a scene run on the bundled data and on `examples/shop`, the calculations by the calculator, and their
outputs are as the tools show them. Each fault is one that a model commits: it takes the figure of another row, names
another year or unit, invents a name or a cause, or writes the figure where a reader of texts may not look.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from activities.files.values import value_text
from activities.tools.plain_tools import evaluate
from activities.tools.sql import table_words
from temporal_supervisor.supervision.agent.empty_words import is_empty
from temporal_supervisor.supervision.contract.finding import CheckedClaim
from temporal_supervisor.supervision.grounding.claims import claims
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import check
from temporal_supervisor.supervision.grounding.wording.time_words import MONTH

ROOT = Path(__file__).parents[2]
DATA = ROOT / "teams" / "almanac" / "data"
DOCUMENTS = ROOT / "teams" / "almanac" / "documents"
SHOP = ROOT / "examples" / "shop" / "data"
TABLES = {
    **{path.stem: path for path in sorted(DATA.glob("*.csv"))},
    "orders_2025": SHOP / "orders 2025.csv",
}
STRANGERS = ("Denmark", "Atlantis Logistics", "UPS", "Ottokar Petersen")
CAUSES = ("a volcanic eruption", "striking dockworkers", "the bankruptcy of Zephyr Airlines")
UNITS = (
    (r"\bGWh\b|gigawatt-hours\b", "MWh"),
    (r"\bTWh\b", "GWh"),
    (r"\byears\b|Jahren?\b", "kWh"),
    (r"(?<=\d) (?:US )?dollars\b", " kg"),
    (r"(?<=\d) ?€|(?<=\d) (?:EUR|[Ee]uros?)\b", " dollars"),
    (r"EUR (?=\d)|€(?=\d)", "$"),
    (r"\$(?=\d)", "€"),
    (r"(?<=\d) %", " kg"),
    (r"(?<=\d) m(?:etres)?\b", " km"),
    (r"million\b", "billion"),
    (r"thousand\b", "million"),
)


@dataclass(frozen=True)
class Answer:
    """An answer, the kind of fault in it, if any, and the sources that its author had."""

    text: str
    scene: int
    fault: str = ""

    @property
    def sources(self) -> list[Source]:
        """The goal and the outputs of tools."""
        return sources_of(self.scene)

    @property
    def goal(self) -> str:
        """What was asked."""
        return str(scenes()[self.scene]["goal"])


@cache
def scenes() -> list[dict[str, Any]]:
    """Returns the scenes in which faults are planted, then those of a real model."""
    files = [Path(__file__).parent / name for name in ("answers.toml", "recorded_answers.toml")]
    return [scene for file in files for scene in tomllib.loads(file.read_text(encoding="utf-8"))["scenes"]]


def honest() -> list[Answer]:
    """Returns all honest answers."""
    return [Answer(text, number) for number, scene in enumerate(scenes()) for text in scene.get("answers", [])]


def recorded() -> list[Answer]:
    """Returns the answers of a real model, right ones and wrong ones; the fault of these is what a reader sees."""
    numbered = [*enumerate(scenes())]
    wrong = [Answer(text, at, sign) for at, scene in numbered for text, sign in scene.get("wrong", {}).items()]
    return [*(Answer(text, at) for at, scene in numbered for text in scene.get("right", [])), *wrong]


@cache
def unsupported(answer: Answer) -> list[CheckedClaim]:
    """Returns what of an answer nothing supports, as the product checks findings and answers."""
    return [claim for claim in check(answer.text, answer.sources) if not claim.source]


def is_gap(answer: Answer) -> bool:
    """True if an answer says nothing of what was asked for, so that the product takes it for none."""
    return is_empty(answer.text, answer.goal, [claim.text for claim in claims(answer.text)])


@cache
def _database() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    for name, path in TABLES.items():
        database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_csv('{path}')")
    return database


def output_of(sql: str) -> str:
    """Returns the rows of a query as the tool shows them."""
    cursor = _database().execute(sql)
    columns = [column[0] for column in cursor.description or []]
    rows = [[value_text(value) for value in row] for row in cursor.fetchall()]
    return table_words.markdown_rows({"columns": columns, "rows": rows, "more": False})


@cache
def sources_of(number: int) -> list[Source]:
    """Returns what the author of a scene's answers had read."""
    scene = scenes()[number]
    read = [Source(f"<subtask>\n{scene['goal']}\n</subtask>")]
    for sql in scene.get("queries", []):
        read.append(Source(output_of(sql), "data", json.dumps({"sql": sql}), f"query_data {sql[:60]}"))
    read += [Source(table, "data", "{}", "look_up") for table in scene.get("tables", [])]
    for folder, names in ((DOCUMENTS, "documents"), (SHOP / "notes", "notes")):
        for name in scene.get(names, []):
            read.append(Source((folder / name).read_text(encoding="utf-8"), "data", "{}", f"read_document {name}"))
    read += [Source(text, "data", "{}", "read_attachment") for text in scene.get("texts", [])]
    for line in scene.get("computed", []):
        expression = line.split(" = ")[0]
        output = f"{expression} = {evaluate(expression)}"
        read.append(Source(output, "computed", json.dumps({"expression": expression}), "calculate"))
    return read


# --- Faults --------------------------------------------------------------------------------------------------


@cache
def planted() -> list[Answer]:
    """Returns the answers with a fault, of each kind as many as the honest ones allow."""
    found = dict[tuple[str, int], Answer]()
    for answer in honest():
        for fault, plant in PLANTS.items():
            for text in plant(answer.text, scenes()[answer.scene]):
                if text != answer.text:
                    found.setdefault((text, answer.scene), Answer(text, answer.scene, fault))
                    break
    return list(found.values())


def _other_row(text: str, scene: dict[str, Any]) -> Iterator[str]:
    """Puts another name of the data in the place of one that the answer has."""
    used = [name for name in scene["names"] if re.search(rf"\b{re.escape(name)}", text)]
    spare = [name for name in scene["names"] if not re.search(rf"\b{re.escape(name)}", text, re.IGNORECASE)]
    if len(used) == 1 and spare and _has_figure(text):
        yield text.replace(used[0], spare[0])


def _swapped_rows(text: str, scene: dict[str, Any]) -> Iterator[str]:
    """Exchanges two names of the data."""
    used = [name for name in scene["names"] if re.search(rf"\b{re.escape(name)}", text)]
    if len(used) >= 2 and _has_figure(text):
        first, second = used[:2]
        yield text.replace(first, "\0").replace(second, first).replace("\0", second)


def _other_year(text: str, scene: dict[str, Any]) -> Iterator[str]:
    """Names another year of the data."""
    used = [year for year in scene.get("years", []) if str(year) in text]
    spare = [year for year in scene.get("years", []) if year not in used]
    if used and spare and _has_figure(text):
        yield text.replace(str(used[0]), str(spare[0]))


def _swapped_years(text: str, scene: dict[str, Any]) -> Iterator[str]:
    """Exchanges two years."""
    used = [str(year) for year in scene.get("years", []) if str(year) in text]
    if len(used) == 2 and _has_figure(text):
        first, second = used
        yield text.replace(first, "\0").replace(second, first).replace("\0", second)


def _other_unit(text: str, scene: dict[str, Any]) -> Iterator[str]:
    """Gives the figures in another unit."""
    for pattern, unit in UNITS:
        changed = re.sub(pattern, unit, text)
        if changed != text and re.search(r"\d", text):
            yield changed


def _stranger(text: str, scene: dict[str, Any]) -> Iterator[str]:
    """Puts a name that no source has in the place of one that the answer has."""
    used = [name for name in scene["names"] if re.search(rf"\b{re.escape(name)}\b", text)]
    if used and _language_fits(text, scene):
        yield text.replace(used[0], STRANGERS[len(text) % len(STRANGERS)])


def _other_cause(text: str, scene: dict[str, Any]) -> Iterator[str]:
    """Gives a cause that no source has."""
    cause = CAUSES[len(text) % len(CAUSES)]
    if scene.get("causes"):
        yield (
            f"{text.rstrip('.')}, because of {cause}." if "|" not in text else f"{text}\n\nIt happened due to {cause}."
        )


def _changed_figure(text: str) -> str:
    """Returns a text with another first figure that is no year; as it was without one."""
    for match in re.finditer(r"(?<![\w.,])\d[\d.,]*\d", text):
        if not re.fullmatch(r"[12]\d{3}", match[0]):
            digits = re.sub(r"\d", lambda digit: str((int(digit[0]) + 4) % 10), match[0], count=2)
            digits = f"9{digits[1:]}" if digits[0] == "0" else digits
            return f"{text[: match.start()]}{digits}{text[match.end() :]}"
    return text


def _fenced(text: str, scene: dict[str, Any]) -> Iterator[str]:
    """Writes a wrong figure into a fence."""
    if "```" not in text:
        changed = _changed_figure(text)
        yield f"```\n{changed}\n```" if changed != text else text


def _bracketed(text: str, scene: dict[str, Any]) -> Iterator[str]:
    """Writes a wrong figure in brackets."""
    changed = _changed_figure(text)
    if changed != text:
        at = next(number for number, (one, other) in enumerate(zip(changed, text, strict=False)) if one != other)
        match = re.compile(r"\d[\d.,]*\d").search(changed, at - 1 if changed[at - 1 : at].isdigit() else at)
        if match and "|" not in text:
            yield f"{changed[: match.start()]}[{match[0]}]{changed[match.end() :]}"


def _invented_figure(text: str, scene: dict[str, Any]) -> Iterator[str]:
    """Writes another figure."""
    yield _changed_figure(text)


def _small_change(text: str, scene: dict[str, Any]) -> Iterator[str]:
    """Adds a small change in a unit that nothing gives."""
    if re.search(r"\byears\b", text):
        yield f"{text} That is a change of -11 years."


def _false_superlative(text: str, scene: dict[str, Any]) -> Iterator[str]:
    """Says of a row that it has the most where another one has."""
    if top := scene.get("most"):
        other = next(name for name in scene["names"] if name != top[0])
        yield f"{text}\n\n{other} {'hatte' if 'den' in top[1] else 'had'} {top[1]}."


def _has_figure(text: str) -> bool:
    """True if there is more than dates."""
    dates = rf"\b[12]\d{{3}}\b|\d{{1,2}}\.? (?=(?:{MONTH})\b)"
    return bool(re.search(r"\d\d", re.sub(dates, "", text)))


def _is_german(text: str) -> bool:
    return bool(
        re.search(r"\b(?:der|die|am|im|von|welche|hatte|kamen?|lag|war|betrug|wurde|kostete|ist)\b", text)
    ) and (not re.search(r"\b(?:the|and|of|was|is)\b", text))


def _language_fits(text: str, scene: dict[str, Any]) -> bool:
    """True if an answer is in the language of its goal: words of another language may be translations."""
    return _is_german(text) == _is_german(scene["goal"])


PLANTS: dict[str, Callable[[str, dict[str, Any]], Iterator[str]]] = {
    "wrong row": _other_row,
    "swapped rows": _swapped_rows,
    "wrong year": _other_year,
    "swapped years": _swapped_years,
    "wrong unit": _other_unit,
    "invented name": _stranger,
    "invented cause": _other_cause,
    "fenced": _fenced,
    "bracketed": _bracketed,
    "wrong figure": _invented_figure,
    "invented change": _small_change,
    "false superlative": _false_superlative,
}
