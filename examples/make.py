"""Makes the data of the examples, always the same: `.venv/bin/python -m examples.make`."""

import csv
import io
import random
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

from examples.office_files import docx_bytes, pdf_bytes

HERE = Path(__file__).parent
REGIONS = {"North": 1.0, "South": 1.1, "East": 0.8, "West": 0.9}
PRODUCTS = {"Desk": 189.0, "Office chair": 129.0, "Lamp": 39.5, "Cabinet": 249.0, "Monitor arm": 79.9}
STOP, BACK = date(2025, 7, 14), date(2025, 9, 22)  # no deliveries to the South between these days


def shop() -> None:
    """Orders of a year, targets as a German spreadsheet program exports them, and two notes."""
    random_ = random.Random(25)
    lines = [["Order ID", "Order Date", "Region", "Product", "Quantity", "Net Amount (EUR)", "Returned"]]
    day, number = date(2025, 1, 1), 48210
    while day.year == 2025:
        for region, weight in REGIONS.items():
            stopped = region == "South" and STOP <= day < BACK
            if random_.random() < (0.03 if stopped else 0.42 * weight):
                product = random_.choice(list(PRODUCTS))
                quantity = random_.choice([1, 1, 1, 2, 2, 4, 10])
                returned = random_.random() < (0.17 if product == "Office chair" else 0.04)
                number += random_.randint(1, 9)
                amount = f"{quantity * PRODUCTS[product]:.2f}"
                lines.append(
                    [str(number), day.isoformat(), region, product, str(quantity), amount, "yes" if returned else "no"]
                )
        day += timedelta(days=1)
    _write(HERE / "shop/data/orders 2025.csv", _csv(lines, ",").encode())
    revenue: dict[tuple[str, str], Decimal] = {}
    for _, ordered, region, _, _, amount, _ in lines[1:]:
        half = (region, "H1 2025" if ordered < "2025-07" else "H2 2025")
        revenue[half] = revenue.get(half, Decimal()) + Decimal(amount)
    expected = [["region", "half", "revenue_eur", "target_eur"]]
    english = {"Nord": "North", "Süd": "South", "Ost": "East", "West": "West"}
    targets = [["Gebiet", "Halbjahr", "Ziel (€)"]]
    for region, first, second in (("Nord", "28.000,00", "30.000,00"), ("Süd", "31.000,00", "32.000,00"),
                                  ("Ost", "24.000,00", "24.000,00"), ("West", "27.000,00", "27.500,00")):  # fmt: skip
        for half_year, target in (("H1 2025", first), ("H2 2025", second)):
            targets.append([region, half_year, target])
            plain = target.replace(".", "").replace(",", ".")
            expected.append([english[region], half_year, str(revenue[english[region], half_year]), plain])
    _write(HERE / "shop/expected.csv", _csv(expected, ",").encode())
    export = "Umsatzziele 2025 - Export vom 02.01.2025\r\n\r\n" + _csv(targets, ";")
    _write(HERE / "shop/data/umsatzziele.csv", export.encode("cp1252"))
    _write(HERE / "shop/data/notes/carriers.md", CARRIERS.encode())
    _write(HERE / "shop/data/notes/returns.md", RETURNS.encode())


CARRIERS = """# Carriers, notes of the operations meeting

## 16 July 2025

Südfracht GmbH, our only carrier for the South, filed for insolvency on 14 July 2025 and stopped all deliveries the
same day. Orders to the South can be taken only where customers collect the goods themselves. Other regions have
carriers of their own and are not affected.

## 24 September 2025

Alpen-Logistik took over deliveries to the South on 22 September 2025. The contract runs for two years. About a third
of the customers who had cancelled in the meantime have ordered again.
"""
RETURNS = """# Returns

## 3 June 2025

Office chairs come back far more often than anything else. The gas spring of lot 7 loses pressure: the seat sinks
within a week. The supplier replaces lot 7 at its own cost; chairs of lot 8 are not affected.
"""

SUPPLIERS = """
Aldermoor Brückner Castellane Dunmore Eckhart Fjordvik Granville Hollander Iveson Jankovic Keller
Lindqvist Marchetti Norwood Oduya Pereira Quintana Rasmussen Sandoval Thornbury Ulrich Vasquez
Wexford Yamada Zeller Ashdown Bellini Corrigan Dahlgren Esposito
""".split()
SERVICES = ["cleaning", "catering", "IT support", "security", "translation", "freight"]
NUMBERS = {1: "one", 2: "two", 3: "three", 6: "six", 12: "twelve"}


def contracts() -> None:
    """Thirty short contracts, as PDF and as DOCX, and the table of what is in them for the test."""
    random_ = random.Random(7)
    table = [["file", "supplier", "service", "annual_fee_eur", "notice_months", "liability_cap_eur"]]
    for number, supplier in enumerate(SUPPLIERS, 1):
        service = random_.choice(SERVICES)
        fee, notice = random_.randrange(6, 240) * 500, random_.choice(list(NUMBERS))
        cap = random_.choice([None, fee, 2 * fee, 1_000_000])
        capped = "is not limited" if cap is None else f"is limited to EUR {cap:,} per year"
        begins = date(2024, 1 + random_.randrange(12), 1)
        sections = [
            (f"Service agreement: {service}", f"Between Hartwell & Co. and {supplier} Ltd., from {begins:%d %B %Y}."),
            ("1 Fees", f"The annual fee is EUR {fee:,}, payable in four equal instalments."),
            ("2 Liability", f"The liability of {supplier} Ltd. for slight negligence {capped}."),
            ("3 Term and notice", f"Either side may end this agreement by {NUMBERS[notice]} months' written notice."),
        ]
        stem = f"{number:02d} {supplier} {service}"
        if number % 5 < 3:
            name, pages = (
                f"{stem}.pdf",
                ["\n".join(part) for part in (sections[0] + sections[1], sections[2] + sections[3])],
            )
            content = pdf_bytes(pages)
        else:
            name, content = f"{stem}.docx", docx_bytes(sections)
        _write(HERE / "contracts/data" / name, content)
        table.append([name, supplier, service, str(fee), str(notice), "" if cap is None else str(cap)])
    _write(HERE / "contracts/expected.csv", _csv(table, ",").encode())


POLICY = """# Supplier policy

1. **Certificate.** A supplier has an ISO 9001 certificate that is valid on 1 July 2026.
2. **Audit.** The score of the last audit is at least 70 of 100.
3. **Incidents.** A supplier has at most two open incidents.
4. **Payment.** Payment terms are 30 days or longer.
"""


def suppliers() -> None:
    """Forty records, a policy of four rules, and the breaches of it for the test."""
    random_ = random.Random(40)
    records = [["Supplier", "Country", "ISO 9001 valid until", "Audit score", "Open incidents", "Payment days"]]
    breaches = [["supplier", "rule"]]
    names = [*SUPPLIERS, *"Faber Giordano Hagen Ibsen Jarvis Kovacs Leroy Moreau Nygaard Olsen".split()]
    for name in names:
        valid = date(2026, 7, 1) + timedelta(days=random_.choice([-120, -30, 40, 200, 400, 700, 900]))
        score, incidents, days = (
            random_.randint(64, 98),
            random_.choice([0, 0, 0, 1, 1, 2, 3]),
            random_.choice([14, 30, 30, 45, 60]),
        )
        country = random_.choice(["DE", "FR", "IT", "PL", "SE"])
        records.append([f"{name} Ltd.", country, f"{valid:%d.%m.%Y}", str(score), str(incidents), str(days)])
        broken = [valid < date(2026, 7, 1), score < 70, incidents > 2, days < 30]
        breaches += [[f"{name} Ltd.", str(rule)] for rule, is_broken in enumerate(broken, 1) if is_broken]
    _write(HERE / "suppliers/data/suppliers.csv", _csv(records, ";").encode("cp1252"))
    _write(HERE / "suppliers/data/policy.md", POLICY.encode())
    _write(HERE / "suppliers/expected.csv", _csv(breaches, ",").encode())


def _csv(rows: list[list[str]], delimiter: str) -> str:
    target = io.StringIO(newline="")
    csv.writer(target, delimiter=delimiter).writerows(rows)
    return target.getvalue()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    shop()
    contracts()
    suppliers()
