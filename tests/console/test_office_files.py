"""Answers as Excel workbooks and Word documents, read back by readers of others."""

import io

import docx
from pydantic import JsonValue
from python_calamine import CalamineWorkbook

from temporal_supervisor.console.view.office_files import word_document, workbook
from temporal_supervisor.supervision.results.answer_table import csv_of

ANSWER = """# Revenue

It **fell** by 9 % ([source](https://a.example/x)).

- South: `-9 %`
  - in July
- North

| town | rent |
| --- | ---: |
| Aarau | 1200 |

1. first
2. second

```
total = 3
```
"""


def test_a_workbook_has_numbers_as_numbers_and_runs_no_text() -> None:
    rows: list[dict[str, JsonValue]] = [
        {"town": "Aarau", "rent": 1200.5, "note": "=1+1"},
        {"town": "007", "rent": None, "note": "a\x00b"},
    ]
    book = CalamineWorkbook.from_filelike(io.BytesIO(workbook(csv_of(["town", "rent", "note"], rows))))
    assert book.get_sheet_by_index(0).to_python() == [
        ["town", "rent", "note"],
        ["Aarau", 1200.5, "=1+1"],
        ["007", "", "ab"],
    ]


def test_a_number_of_more_digits_than_a_spreadsheet_keeps_stays_text() -> None:
    book = CalamineWorkbook.from_filelike(io.BytesIO(workbook(b"card\n12345678901234567\n")))
    assert book.get_sheet_by_index(0).to_python()[1:] == [["12345678901234567"]]


def test_a_word_document_has_the_form_of_the_text() -> None:
    document = docx.Document(io.BytesIO(word_document(ANSWER, "run-1")))
    shown = [(paragraph.style.name, paragraph.text) for paragraph in document.paragraphs if paragraph.style]
    assert shown == [
        ("Heading 1", "Revenue"),
        ("Normal", "It fell by 9 % (source (https://a.example/x))."),
        ("List Bullet", "South: -9 %"),
        ("List Bullet 2", "in July"),
        ("List Bullet", "North"),
        ("List Number", "first"),
        ("List Number", "second"),
        ("No Spacing", "total = 3"),
    ]
    assert [run.text for run in document.paragraphs[1].runs if run.bold] == ["fell"]
    assert [[cell.text for cell in row.cells] for row in document.tables[0].rows] == [
        ["town", "rent"],
        ["Aarau", "1200"],
    ]
    assert document.core_properties.title == "run-1"
