"""Two invented domains, printed as a table-listing tool prints them, in a real database."""

from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb


@dataclass
class Domain:
    """Tables and the tool output that describes them."""

    connection: duckdb.DuckDBPyConnection
    listing: str

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a query gives."""
        return self.connection.execute(sql).fetchall()

    def markdown(self, sql: str) -> str:
        """The same as a query tool prints it."""
        cursor = self.connection.execute(sql)
        header = [column[0] for column in cursor.description or []]
        rows = cursor.fetchall()
        lines = [header, ["---"] * len(header), *([str(cell) for cell in row] for row in rows)]
        return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), f"{len(rows)} rows"])


def orchards() -> Domain:
    """Yearly harvests of fruit every five years, by farm and valley."""
    connection = duckdb.connect()
    connection.execute("create table harvests (farm text, valley text, fruit text, year bigint, crop_tonnes double)")
    farms = {"Hill Farm": "Upper Valley", "Mill Farm": "Upper Valley", "Old Mill Farm": "Lower Valley"}
    for at, (farm, valley) in enumerate(farms.items(), 1):
        for fruit, weight in (("Apples", 3.0), ("Pears", 2.0)):
            for year in range(1980, 2021, 5):
                crop = round(at * weight * (10 + (year - 1980) * (4 - at) / 10), 1)
                connection.execute("insert into harvests values (?, ?, ?, ?, ?)", [farm, valley, fruit, year, crop])
    return Domain(connection, _listing(connection, {"harvests": "Crop of each orchard (in tonnes)"}))


def tramways() -> Domain:
    """Monthly riders of many tram lines, with a line that stands for all."""
    connection = duckdb.connect()
    connection.execute("create table ridership (line text, depot text, month date, riders_thousands bigint)")
    lines = ["All lines", *(f"Line {letter}" for letter in "ABCDEFGH")]
    for at, line in enumerate(lines):
        for year in range(2010, 2020):
            for month in range(1, 13):
                riders = (2000 if at == 0 else 100 + 10 * at) + (year - 2010) * (at + 1) + month
                row = [line, "East" if at % 2 else "West", date(year, month, 1), riders]
                connection.execute("insert into ridership values (?, ?, ?, ?)", row)
    return Domain(connection, _listing(connection, {"ridership": "Riders of the city's trams (thousands a month)"}))


def _listing(connection: duckdb.DuckDBPyConnection, descriptions: dict[str, str]) -> str:
    lines = []
    for table, description in descriptions.items():
        columns = connection.execute(f"describe {table}").fetchall()
        count = connection.execute(f"select count(*) from {table}").fetchall()[0][0]
        named = ", ".join(f"{name} {kind}" for name, kind, *_ in columns)
        lines.append(f"table {table} ({named}): {description}. Rows: {count}. Source: invented")
        for name, kind, *_ in columns:
            if kind == "VARCHAR":
                values = connection.execute(f"select distinct {name} from {table} order by 1").fetchall()
                lines.append(f"  {name}: {', '.join(value for (value,) in values)}")
            else:
                low, high = connection.execute(f"select min({name}), max({name}) from {table}").fetchall()[0]
                lines.append(f"  {name}: {low} to {high}")
    return "\n".join(lines)
