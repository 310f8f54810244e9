"""What people say of the tables in a folder, in `data.toml` beside the files: it overrides what is read in them.

[words]
revenue = "amount without returns"

[tables."sales.csv"]
description = "orders, one a row"
header = 3
decimal = ","
missing = ["x"]

[tables."sales.csv".columns.amount]
type = "number"
unit = "EUR"
"""

from typing import Annotated, Literal

from pydantic import Field

from supervision.contract.base import Model

ColumnType = Literal["text", "number", "integer", "date"]
DecimalMark = Literal[",", "."]
RowNumber = Annotated[int, Field(ge=1)]


class ColumnDescription(Model):
    """What is said of one column; what is left out is decided by its values."""

    type: ColumnType | None = None
    decimal: DecimalMark | None = None
    missing: list[str] = []
    unit: str = ""
    description: str = ""


class TableDescription(Model):
    """What is said of one table.

    `header` is the number of the row that names the columns, from 1, as a person counts the file's lines; two or
    three for a header of several rows; an empty list for none. None leaves it to be found.
    """

    description: str = ""
    header: RowNumber | Annotated[list[RowNumber], Field(max_length=3)] | None = None
    decimal: DecimalMark | None = None
    missing: list[str] = []
    columns: dict[str, ColumnDescription] = {}


class DataDescription(Model):
    """The whole of `data.toml`: tables by the name of their file or table, and the words of the house."""

    words: dict[str, str] = {}
    tables: dict[str, TableDescription] = {}
