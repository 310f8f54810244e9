"""Figures, quotations and addresses that what they rest on supports, how exactly, and honest findings, none flagged."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import size
from temporal_supervisor.supervision.grounding.claims import claims
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import (
    GROUNDING_SOURCES_CHARS,
    Support,
    check,
    unsupported_in_answer,
)

TABLE = """| country | year | life_expectancy_years | gdp_per_person_dollars |
|---|---|---|---|
| Chile | 1962 | 57.924 | 4519.09 |
| Norway | 1962 | 73.47 | 13450.4 |
| Chile | 1992 | 74.126 | 7596.13 |
"""
ENERGY = "| year | source | net_generation_gwh |\n|---|---|---|\n| 2017 | Wind | 21933 |\n| 2001 | Wind | 1437 |"
STAFF = "Employees in thousands: | 2009-03 | Total nonfarm | 132657 | and 12,345.6 later"
REPORT = (
    "The council said: “The bridge will be closed for repairs until the end of May, and no later.” It cost 3.4 million "
    "euros, 12 % more than planned. See https://example.org/reports/bridge-2019 or write to office@example.org."
)


def missing(text: str, *sources: str | Source) -> list[str]:
    given = [s if isinstance(s, Source) else Source(s) for s in sources]
    return [claim.text for claim in check(text, given, names=False) if not claim.source]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Life expectancy in Chile was 57.924 years in 1962.", TABLE),
        ("It was 57.9 years, then 74.1 years.", TABLE),
        ("nearly 60 years", TABLE),
        ("Norway: 13,450.4 dollars, or $13,450", TABLE),
        ("over the 30 years from 1962 to 1992", TABLE),
        ("Wind made 21,933 GWh in 2017.", ENERGY),
        ("about 22,000 gigawatt-hours", ENERGY),
        ("131 jobs in section 14, table 15 and step 16", "131"),
        ("There were 132.657 million employees", STAFF),
        ("12 345.6 thousand", STAFF),
        ("It cost €3.4 million.", REPORT),
        ("It cost 3.4 million euros, 12% more.", REPORT),
        ("a rise of 12 percent", REPORT),
        ('He said "the bridge will be closed for repairs until the end of May"', REPORT),
        ('"The bridge will be closed … until the end of May, and no later"', REPORT),
        ("> The bridge will be closed for repairs\n> until the end of May", REPORT),
        ("See [the report](https://example.org/reports/bridge-2019).", REPORT),
        ("See www.example.org/reports/bridge-2019/ and office@example.org", REPORT),
        ("Two of 12 agents, 3 reasons, two countries, 100 % of them.", ""),
        ("After three weeks, in 3 weeks and 2 full years", "it took three weeks, then two full years"),
        ("Both [t2] and [12], subtask t14, COVID-19, the 21st century, Q3, 5G, S&P 500, ISO 9001, v1.2.3", ""),
        ("14. A point\n15) Another\n## 16 Heading", ""),
        ("```sql\nSELECT 1234\n```\nand `WHERE year = 1999`", ""),
        ('the "quick fix" of it', ""),
        ("1.2e3 and 1.2 × 10^3", "1200"),
        ("-4.5 and −4.5", "fell by 4.5"),
        ("22,500 and 1,230,000", "22478; 1,234,567 exactly: about 22,500"),
        ("see https://example.org/a_b", "https://example.org/a_b"),
        ("from 12.3 to 14.5 million", "12.3 million, 14.5 million"),
        ("12.3 and 14.5 million", "12300000 and 14500000"),
        ("12 345 678 people", "12 and 345, then 678"),  # of figures in a row each has support
        ('the row „Summe" (of 14 rows), and „handel" too', "14 rows"),
        ('„So werden wir das nie machen" was said', "Er sagte: so werden wir das nie machen"),
        ("»So werden wir es machen« oder »so nie im Leben«", "so werden wir es machen, so nie im Leben"),
        ("open-ended since 1 October 2021", "läuft ab 01.10.2021"),
        # a scale of money may be a letter beside its currency
        ("3,19 M€ et 2,10 M€", "3187450, 2100000"),
        ("120 k€ und 3.2 M USD", "119870, 3210000"),
        ("3,2 Md €", "3210000000"),
        ("| Umsatz (k€) |\n|---|\n| 3.187 |", "3187450"),
        ("| Revenue (USD m) |\n|---|\n| 3.19 |", "3187450"),
        ("3,210,000 euros", "budget (M€)\n3.21"),
    ],
)
def test_a_claim_is_supported(text: str, source: str) -> None:
    assert missing(text, source) == []


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("Life expectancy in Chile was 58.924 years.", TABLE, ["58.924 years"]),
        ("It was 57.8 years.", TABLE, ["57.8 years"]),
        ("It rose by 28 %.", TABLE, ["28 %"]),
        ("$14,450 a person", TABLE, ["$14,450"]),
        ("€13,450 a person", TABLE, ["€13,450"]),
        ("Wind made 21,933 MWh in 2017.", ENERGY, ["21,933 MWh"]),
        ("It cost 3.4 billion euros.", REPORT, ["3.4 billion euros"]),
        ("It cost 3.4 million dollars.", REPORT, ["3.4 million dollars"]),
        ("in 2013", TABLE, ["2013"]),
        ("`2013` wells", TABLE, ["2013"]),
        ('"The bridge will be closed for repairs until the end of June"', REPORT, None),
        ('"the bridge will never be closed … until the end of May"', REPORT, None),
        ("see https://example.org/reports/bridge-2020", REPORT, ["https://example.org/reports/bridge-2020"]),
        ("see example.com/bridge", REPORT, ["example.com/bridge"]),
        ("doi 10.1000/182", REPORT, ["10.1000/182"]),
        ("8 % of them and $5", "", ["8 %", "$5"]),
        ("5 million people", "", ["5 million"]),
        ("5 million people", "5 people", ["5 million"]),
        ("5 million people", "5 thousand people and 7 million plums", ["5 million"]),
        ("5,000,000 people", "5 thousand people and 7 million plums", ["5,000,000"]),
        ("13 people", "", ["13"]),
        ("12 345 678 people", "12 and 345", ["12 345 678"]),
        ("12.3 were lost before it became 14.5 million", "12300000 and 14500000", ["12.3"]),
        ("45 shops gained 3 %", "0.45, 0.03", ["45"]),
        ("rose by 18 %", "| 17,90 € | 18,62 € | 18 kg", ["18 %"]),
        ('„So werden wir das nie machen" was said', "So machen wir das", ["So werden wir das nie machen"]),
        ('„Er sagte "nein" und dann nichts mehr“', "nein", ['Er sagte "nein" und dann nichts mehr']),
    ],
)
def test_a_claim_is_not_supported(text: str, source: str, expected: list[str] | None) -> None:
    assert missing(text, source) == expected if expected is not None else len(missing(text, source)) == 1


def computed(result: str, expression: str) -> Source:
    return Source(f"= {result}", "computed", f'{{"expression": "{expression}"}}')


@pytest.mark.parametrize(
    ("text", "data", "expressions", "expected"),
    [
        ("16.2 years, or 28 %", "57.924, 74.126", [], ["16.2 years", "28 %"]),
        ("16.2 years, or 28 %", "57.924, 74.126", ["16.202 = 74.126 - 57.924", "1.28 = 74.126 / 57.924"], []),
        ("It was 431.7.", "57.924", ["431.7 = 431.7 * 1"], ["431.7"]),  # made up, and not true by computing with it
        ("17.3 and 0.37", "40 and 44", ["0.37 = 17.3 * 4.0", "4.0 = 44 - 40", "17.3 = 4.0 + 13.3"], ["17.3", "0.37"]),
        ("17.3 and 0.37", "40, 44, 13.3", ["0.37 = 17.3 * 4.0", "4.0 = 44 - 40", "17.3 = 4.0 + 13.3"], []),
        *(("34.6 wells", f"{known} wells", ["34.6 = 17.3 * 2"], []) for known in ("17.3", "17.3475", "17.2525")),
        *(("34.6 wells", f"{known} wells", ["34.6 = 17.3 * 2"], ["34.6"]) for known in ("17.36", "17.24")),
        ("88.8 wells", "44.4, 2.018", ["88.8 = 44 * 2.018"], []),
        ("88.8 wells", "45, 2.018", ["88.8 = 44 * 2.018"], ["88.8"]),
        ("77.7 kg", "weights 41.5 and 4150", ["77.7 = 41.5 * 2"], []),
        ("1,230 EUR", "1,200 EUR, and 2.5 % more each year", ["1230 = 1200 * 1.025"], []),
        ("1,170 EUR", "1,200 EUR, less 2,5 %", ["1170 = 1200 * 0.975"], []),
        ("1,230 EUR", "1,200 EUR and 2.5 kg", ["1230 = 1200 * 1.025"], ["1,230 EUR"]),
        ("2.76 months", "12 weeks", ["2.7595 = 12 * 7 / 30.44"], []),
        ("77.7 kg", "weights 41.5 and 4150", ["77.7 = 4150 / 100"], []),
        ("1200 kWh", "5 USD of energy a year", ["1.2 = 6 / 5"], []),  # in a multiple of its unit
        ("1200 kWh", "7 GWh for 5 USD", ["1.2 = 6 / 5"], ["1200 kWh"]),  # the data name another one
        *(
            ("77.7 kg", "41.5 and 4150", [f"77.7 = {operands}"], ["77.7 kg"])
            for operands in ("41.54 * 2", "41.46 * 2", "83 / 2 * 41.5", "4151 / 100", "4150.5 / 100")
        ),
    ],
)  # fmt: skip
def test_a_computed_figure_counts_if_its_operands_are_supported(
    text: str, data: str, expressions: list[str], expected: list[str]
) -> None:
    sources = [computed(*expression.split(" = ")) for expression in expressions]
    assert missing(text, data, *sources) == expected


@given(st.floats(0.001, 1e9), st.integers(0, 6))
def test_every_rounding_of_a_figure_is_supported(value: float, decimals: int) -> None:
    exact = f"{value:.9f}"
    assert missing(f"a value of {value:.{decimals}f} kg", f"mass {exact}") == []
    assert missing(f"a value of {value:,.{decimals}f} kg", f"mass {exact}") == []


@given(st.integers(13, 10**7), st.integers(2, 50))
def test_a_figure_far_from_all_others_is_never_supported(value: int, factor: int) -> None:
    assert missing(f"exactly {value * factor + 7} wells", f"{value} wells") != []


@given(st.text(max_size=400), st.text(max_size=400))
def test_any_text_is_read(text: str, source: str) -> None:
    for claim in check(text, [Source(source), Source(source, "computed", text)]):
        assert claim.text


@given(st.text(alphabet="0123456789.,- %$€km\n", max_size=300))
def test_a_text_supports_itself(text: str) -> None:
    assert missing(text, text) == []


# --- as it is shown and kept ----------------------------------------------------------------------


def test_what_is_unsupported_is_kept_with_what_was_doubted_before_wherever_the_text_has_it() -> None:
    kept = unsupported_in_answer("431 wells and 512 pumps", [Source("512 pumps")], ["512 pumps", "431", "999"])
    assert [(item.text, item.where) for item in kept] == [("431", "answer"), ("512 pumps", "answer")]


def test_of_what_is_unsupported_not_too_much_is_kept() -> None:
    doubtful = ["x" * 1000, *map("".join, product("abcdef", repeat=4))]
    kept = unsupported_in_answer(" ".join(doubtful), [], doubtful)
    assert len(kept) == limits.UNSUPPORTED_SHOWN
    assert max(size(item.text) for item in kept) == limits.SENTENCE_BYTES
    assert len(check(" and ".join(f"{n} wells" for n in range(20, 5000)), [])) == limits.UNSUPPORTED_LISTED


# --- where it was found ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "source", "line"),
    [
        ("57.9 years", "query", "| Chile | 1962 | 57.924 | 4519.09 |"),
        ("21.9 TWh", "query", "| 2017 | Wind | 21933 |"),
        ("16.2 years", "calculate", "= 16.202"),
        ("30 years from 1962", "contract", "it ran from 1962 to 1992"),  # a span of years in a sentence
        ("431 wells", "brief", "There are 431 wells."),
        ("4 519 dollars", "query", "| Chile | 1962 | 57.924 | 4519.09 |"),
        ("more than 14 %", "contract", "- of more than 14 % in 60 days"),
        ("https://example.org/reports/bridge-2019", "report", None),
        ('"The bridge will be closed for repairs"', "report", None),
    ],
)
def test_a_claim_is_shown_with_the_line_that_has_it(claim: str, source: str, line: str | None) -> None:
    computed = Source("= 16.202", "computed", '{"expression": "74.126 - 57.924"}', "calculate")
    tables = [Source(TABLE, name="query"), Source(ENERGY, name="query")]
    contract = Source(
        "it ran from 1962 to 1992\n- 0.80 for 3 kg\n- 14 days\n- of more than 14 % in 60 days", name="contract"
    )
    found, *_ = check(
        claim, [Source("There are 431 wells."), *tables, computed, Source(REPORT, name="report"), contract]
    )
    assert found.source == source
    if line is not None:
        assert found.line == line
    else:
        assert "bridge" in found.line


def test_of_a_long_line_what_is_around_the_claim_is_shown() -> None:
    (found,) = check("4711.5 kg", [Source(f"{'a ' * 5000}4711.5 kg {'b ' * 5000}", name="look")])
    assert found.line == f"{'a ' * 40}4711.5 kg {'b ' * 34}b"
    whole = f"{'a ' * 70}4711.5 kg, in total."
    assert [check("4711.5 kg", [Source(f"x\n{whole}{more}\ny")])[0].line for more in ("", "!")] == [
        whole,
        f"{'a ' * 40}4711.5 kg, in total.!",
    ]


def test_a_claim_in_the_brief_and_in_an_output_is_shown_with_the_output() -> None:
    sources = [Source("12 and 4711 wells"), Source("4711 wells", name="look"), Source("345 wells", name="count")]
    found = check("4711 wells, 4 711 wells, 12 345 wells", sources)
    assert [claim.source for claim in found] == ["look", "look", "brief"]


# --- how exactly -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "source", "supported"),
    [
        ("12.5 kg", "12.55 kg", True),  # at the very edge
        ("12.5 kg", "12.56 kg", False),
        # spans of years
        ("200 years", "from 1800 to 2000", True),
        ("200 years", "from 1000 to 1200", True),
        ("200 years", "from 800 to 1000", False),
        ("200 years", "from 2800 to 3000", False),
        ("199 years", "from 2800 to 2999", True),
        ("200 years", "from 1000.5 to 1200.5", False),
        ("0.0 years", "in 1900", False),
        ("-200 years", "from 1800 to 2000", True),
        # scales
        ("14 million euros", "from 14 to 15 million euros", True),
        ("14 million euros", "14 thousand euros", False),
        ("14500 euros", "in thousands: 14.5 euros", True),
        ("14500 euros", "14.5 euros", False),
        ("14 million euros", "in thousands: 14 million euros", True),
        ("14.5 euros", "14.5 million euros", True),
        ("14.5 thousand euros", "14.5 million euros", False),
        # multiples of a unit
        ("1.2 TWh", "1198 GWh", True),
        ("1.2 TWh", "1298 GWh", False),
        ("1.2 TWh", "1198 MWh", False),
        ("1.2 TWh", "1198", False),
        ("4,412 tonnes", "4412 kg", False),
        ("4.41 tonnes", "4412 kg", True),
        ("2 days", "48 hours", True),
        # shares
        ("12.5 %", "a share of 0.125", True),
        ("12.5 %", "a share of 0.1256", False),
        ("0.25 of them", "25 %", True),
        ("0.25 of them", "25.4 %", True),
        ("0.25 of them", "26 %", False),
        ("25.5 of them", "2550 %", True),
    ],
)
def test_a_figure_is_supported_as_exactly_as_it_is_written(claim: str, source: str, supported: bool) -> None:
    assert (missing(claim, source) == []) is supported


@pytest.mark.parametrize(
    ("change", "within", "beyond"),
    [("a rise", ("1.255", "1.2554"), "1.2556"), ("a fall", ("0.745", "0.7446"), "0.7444")],
)
def test_a_change_in_percent_is_a_computed_ratio(change: str, within: tuple[str, str], beyond: str) -> None:
    claim = f"{change} of 25.5 %"
    assert [missing(claim, Source(result, "computed")) for result in (*within, "0.255")] == [[], [], []]
    assert missing(claim, Source(beyond, "computed")) == missing(claim, within[0]) == ["25.5 %"]


def test_an_address_or_a_quotation_needs_one_of_the_sources() -> None:
    text = 'See https://example.org/a and "the bridge will be closed in May".'
    assert missing(text, "nothing", "example.org/a; the bridge will be closed in May") == []


def test_only_the_beginning_of_many_sources_is_read() -> None:
    word = "x" * 15 + " "
    full = word * (limits.GROUNDED_CHARS // len(word))
    filler = [full] * (GROUNDING_SOURCES_CHARS // limits.GROUNDED_CHARS)
    assert missing("77.7 kg", *filler[1:], "77.7 kg") == []
    assert missing("77.7 kg", *filler, "77.7 kg") == ["77.7 kg"]
    assert missing("77.7 kg", full + " 77.7 kg") == ["77.7 kg"]


SOURCE = Source("""year,source,gwh,share
2001,coal,33812,0.8512
2011,wind,10709,0.1901
2017,wind,21333,0.3725
revenue 4711.5 million USD; 1,234,567 employees; cost 25,000,000 EUR; 3500000 yuan; population 1412000000
date 2017-03-15; temperature 36.6; length 1234.5 km; took 48 hours; weight 1.25 t
""")
HONEST = """
Wind generated 21,333 GWh in 2017, about 37 % of the total.
Revenue was $4.7 billion.
Roughly 1.2 million employees.
On 15 March 2017 it took 48 h.
The cost was 25m euros.
`x = 99` gives 36.6.
| 2017 | 37.25 % |
Wind lieferte 21.333 GWh im Jahr 2017, rund 37 Prozent.
Der Umsatz lag bei 4,7 Milliarden Dollar.
Zwischen 10.709 und 21.333 Gigawattstunden.
Am 15.03.2017.
Die Kosten: 25 Mio. Euro.
1.234,5 km; 1,25 Tonnen; 36,6 Grad Celsius
Der Umsatz lag bei 4.711,5 Mio. USD.
L'éolien a produit 21 333 GWh en 2017, environ 37 %.
Un chiffre d'affaires de 4,7 milliards de dollars.
Près de 1,2 million d'employés.
Le 15/03/2017.
Le coût : 25 millions d’euros.
1 234,5 kilomètres, 36,6 °C
Environ 1 412 millions d'habitants.
2017年风电发电量为21,333吉瓦时，约占37%。
收入约为47亿美元。
约120万名员工。
10709至21333吉瓦时之间。
２０１７年３月１５日。
350万元
温度为３６．６度
""".strip().splitlines()


# --- findings on two wind farms -------------------------------------------------------------------

WIND_SOURCES = [
    Source("""\
<subtask>
Compare the wind farms "Nordsee 3" and "Baltic 2" for 2019 to 2023: output in GWh, downtime, cost in EUR.
Target: 95 % availability, at least 450 MW.
Budget code B-2207, ticket #4812.
</subtask>"""),
    Source("""\
| farm | year | output_gwh | availability | cost_eur | staff |
|---|---|---|---|---|---|
| Nordsee 3 | 2019 | 1284.6 | 0.9312 | 48250000 | 137 |
| Nordsee 3 | 2023 | 1417.95 | 0.9587 | 51900000 | 142 |
| Baltic 2 | 2019 | 1102.3 | 0.9044 | 39750000 | 118 |
| Baltic 2 | 2023 | 1198.04 | 0.9471 | 44100000 | 121 |"""),
    Source("""\
{"farm": "Baltic 2", "turbines": 80, "hub_height_m": 116.5, "rated_mw": 3.6,
"commissioned": "2015-09-21", "depth_m": {"min": 23, "max": 44},
"distance_km": 32.4, "events": [{"start": "2022-01-30T04:12:00Z", "hours_down": 61.5,
"reason": "storm Malik, gusts of 41.2 m/s"}], "model": "SWT-3.6-120", "firmware": "v4.17.2"}"""),
    Source("""\
Annual report 2023, page 47. Revenue rose from 187.4 million euros in 2022 to 203.9 million euros in 2023.
"Unplanned stops fell by a third compared with the year before," the operator writes.
The subsea cable carries 220 kV over 57.5 kilometres. Repairs took three weeks and cost 1.85 million euros.
CO2 avoided: 912,000 tonnes.
Temperature in the nacelle: -12 to 38 °C. 14 of 80 turbines were inspected.
Source: https://example.org/reports/2023/annual.pdf
Le parc emploie 121 personnes; 6 000 heures de formation. 年报: 发电量14.18亿千瓦时, 收入2.039亿欧元。"""),
    Source("= 133.35", "computed", "1417.95 - 1284.6"),
    Source("= 1.103807", "computed", "1417.95 / 1284.6"),
    Source("= 2615.99", "computed", "1417.95 + 1198.04"),
    Source("= 0.9529", "computed", "(0.9587 + 0.9471) / 2"),
]
WIND = [
    """\
## Output
Nordsee 3 produced 1,284.6 GWh in 2019 and about 1,418 GWh in 2023, i.e. +133.35 GWh (+10.4 %).
Baltic 2: 1.1 TWh → 1.2 TWh.""",
    """\
1. Availability of Nordsee 3 rose from 93.1% to 95.9%, so it meets the 95 % target (B-2207, #4812).
2. Baltic 2 is at 94.7 %, just short of it.""",
    """\
| Farm | 2019 | 2023 |
|---|---:|---:|
| Nordsee 3 | €48.25m | €51.9m |
| Baltic 2 | €39.75 million | 44,100 k EUR |""",
    "The storm of 30 January 2022 (Malik, gusts up to 41 m/s) stopped Baltic 2 for 61.5 hours, roughly 2.5 days.",
    """\
Baltic 2 has 80 turbines of 3.6 MW
(SWT-3.6-120, firmware v4.17.2) at a hub height of 116.5 m, in 23–44 m of water, 32 km offshore.""",
    """\
Revenue grew from €187.4m to just over €200 million (203.9).
"Unplanned stops fell by a third compared with the year before" (annual report 2023, p. 47).""",
    """\
```sql
SELECT farm, SUM(output_gwh) FROM wind WHERE year BETWEEN 2019 AND 2023 LIMIT 500
```
Together they made 2,616 GWh in 2023, or 2.6 TWh;
the mean availability was 95.3 %.""",
    """\
The cable (220 kV) is nearly 58 km long. Some 912 thousand tonnes of CO2 were avoided, almost 1 million tonnes.
Nacelles see −12 °C to 38 °C.""",
    """\
Between 2019 and 2023, a span of 4 years, staff went from 137 to 142 (5 more) and from 118 to 121 (+3).
Q1-Q4 figures are not given;
see section 3.2 and Table 14 of the report at https://example.org/reports/2023/annual.pdf.""",
    """\
Commissioned on 21 September 2015 (2015-09-21); 14 of the 80 turbines were inspected.
Repairs: three weeks, EUR 1.85 million. ISO 9001 and IEC 61400-12 do not matter here.""",
    "Nordsee 3 erzeugte 2019 1.284,6 GWh und 2023 rund 1.418 GWh, also 133,35 GWh mehr (plus 10,4 Prozent).",
    "Die Verfügbarkeit stieg von 93,1 % auf 95,9 %; das Ziel von 95 % ist erreicht."
    " Baltic 2 liegt mit 94,7 % knapp darunter.",
    "Kosten 2023: 51,9 Mio. € bzw. 44,1 Mio. €; 2019 waren es 48,25 und 39,75 Millionen Euro.",
    "Der Umsatz wuchs von 187,4 auf 203,9 Millionen Euro, das sind gut 200 Mio. Euro (Geschäftsbericht 2023, S. 47).",
    "Von den 80 Anlagen wurden 14 geprüft, also jede sechste."
    " Die Reparatur dauerte 3 Wochen und kostete 1,85 Mio. Euro.",
    "Inbetriebnahme: 21. September 2015. Personal: 121 (2019: 118), bei Nordsee 3 142 statt 137 Beschäftigte."
    " Vgl. Abschnitt 4.2, Tab. 14.",
    "Nordsee 3 a produit 1 284,6 GWh en 2019 et environ 1 418 GWh en 2023, soit 133,35 GWh de plus (+10,4 %).",
    "La disponibilité est passée de 93,1 % à 95,9 % ; l’objectif de 95 % est atteint.",
    "Coûts en 2023 : 51,9 millions d’euros et 44,1 M€ ; en 2019 : 48,25 et 39,75 millions d’euros.",
    "Le chiffre d’affaires est passé de 187,4 à 203,9 millions d’euros (rapport annuel 2023, p. 47).",
    "14 des 80 éoliennes ont été inspectées ; la réparation a coûté 1,85 million d’euros en 3 semaines.",
    "Mise en service le 21/09/2015. Effectifs : 121 personnes, 6 000 heures de formation."
    " Voir le tableau 14 et la section 3.2.",
    "Nordsee 3在2019年发电1284.6吉瓦时，2023年约为1418吉瓦时，增加133.35吉瓦时（增长10.4%）。",
    "可用率从93.1%升至95.9%，达到95%的目标；Baltic 2为94.7％。",
    "2023年成本为5190万欧元和4410万欧元；2019年为4825万欧元和3975万欧元。",
    "收入从1.874亿欧元增至2.039亿欧元（2023年年报第47页）。",
    "80台机组中有14台接受了检查；维修耗时3周，花费185万欧元。",
    "2015年9月21日投运。员工121人（2019年118人）。参见第3.2节和表14。",
]


def test_of_the_same_findings_with_a_changed_figure_nine_in_ten_are_noticed() -> None:
    support, noticed = Support(WIND_SOURCES), []
    for text in WIND:
        for figure in {claim.text for claim in claims(text) if claim.kind == "figure"}:
            first = next(filter(str.isdigit, figure))
            for step in (2, 5):
                changed = figure.replace(first, str((int(first) + step) % 9 + 1), 1)
                made = [claim for claim in claims(text.replace(figure, changed, 1)) if claim.text == changed]
                noticed += [not support.supports(claim) for claim in made[:1] if changed != figure]
    assert len(noticed) > 150
    assert sum(noticed) / len(noticed) > 0.95


# What models write of a table and a note, in several languages: heads that name a unit once, scales, dates, scripts.
SALES = [
    Source(
        "| region | quarter | revenue_eur | orders | return_rate |\n| --- | --- | --- | --- | --- |\n"
        "| North | 2025-Q1 | 1234567.89 | 4123 | 0.0412 |\n| South | 2025-Q1 | 3187450 | 10233 | 0.1187 |\n"
        "| South | 2025-Q2 | 2104310.55 | 6820 | 0.1214 |"
    ),
    Source("3187450 - 2104310.55 = 1083139.45", "computed", '{"expression": "3187450 - 2104310.55"}'),
    Source("Am 25. März 2026 beschlossen. 2026年3月25日决定涨价3.5%, 投资1.5亿元。 In 2017: 21933 GWh of wind power."),
    Source('{"distance_m": 12850, "weight_g": 2450}'),
]
OF_SALES = [
    "It covered 12.85 km with 2.45 kg.",
    "| Region | Revenue (€m) | Returns (%) |\n|---|---|---|\n| North | 1.23 | 4.1 |\n| South | 3.19 | 11.9 |",
    "| Region | Umsatz in T€ |\n|---|---:|\n| Nord | 1.235 |\n| Süd | 3.187 |",
    "| Región | Ingresos (miles de €) |\n|---|---|\n| Norte | 1.235 |",
    "| 地区 | 收入(万欧元) |\n|---|---|\n| 南区 | 318.7 |",
    "Umsatz (in Tsd. EUR): Nord 1.235, Süd 3.187 TEUR. In Mio. €: 3,19.",
    "Returns rose from 11.9 to 12.1 %, von 11,9 auf 12,1 Prozent.",
    "A receita caiu de 3,19 milhões para 2,10 milhões de euros; 3,19 miljoen euro; 10,2 mil pedidos; 3,19 M€.",
    "It fell by €1.1 million, in 2017 wind had 21.9 TWh.",
    "Beschlossen am 25.03.2026, also am 25.03. (orders.csv, rows 14–27; Zeilen 14-27). Confidence: 95%. 95 % sicher.",
    "南区收入约319万欧元,订单10,233份,2026年3月25日决定涨价3.5%,投资1.5亿元。",
    "بلغت الإيرادات ٣٬١٨٧٬٤٥٠ يورو و ١١٫٩٪ و３１８７４５０.",
]
NOT_OF_SALES = [
    ("| Region | Revenue (€m) | Returns (%) |\n|---|---|---|\n| North | 1.73 | 4.9 |", ["1.73", "4.9"]),
    ("| Region | Umsatz in T€ |\n|---|---:|\n| Nord | 1.735 |", ["1.735"]),
    ("Returns rose from 15.9 to 12.1 %.", ["15.9"]),
    ("It covered 1.285 km with 24.5 kg.", ["1.285 km", "24.5 kg"]),
    ("It fell by $1.1 million.", ["$1.1 million"]),
    ("In 2017 wind had 21.9 GWh, or 21,9 Mio. kWh.", ["21.9 GWh", "21,9 Mio. kWh"]),
    (
        "A receita foi de 3,19 bilhões de euros, 3,19 miljard euro, 3,19 Md€.",
        ["3,19 bilhões", "3,19 miljard", "3,19 Md€"],
    ),
    ("Beschlossen am 28.03.2024, gültig ab 29.03.", ["28", "2024", "29"]),
    ("南区收入约381万欧元,订单10,323份,2026年3月28日决定。", ["381万欧元", "10,323", "28"]),
    ("投资1.5万亿元。", ["1.5万亿元"]),
    ("بلغت الإيرادات ٣٬٨١٧٬٤٥٠ يورو.", ["3,817,450"]),
]


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        (text, sources)
        for sources, texts in (([SOURCE], HONEST), (WIND_SOURCES, WIND), (SALES, OF_SALES))
        for text in texts
    ],
)
def test_an_honest_finding_is_not_flagged_in_any_notation(text: str, sources: list[Source]) -> None:
    assert missing(text, *sources) == []


@pytest.mark.parametrize(("text", "invented"), NOT_OF_SALES)
def test_what_no_source_says_is_noticed_in_every_notation(text: str, invented: list[str]) -> None:
    found = missing(text, *SALES)
    assert [any(each.startswith(figure) for each in found) for figure in invented] == [True] * len(invented)


@pytest.mark.parametrize(
    ("claim", "source", "line"),
    [
        ("within 14 days", "row 14\nwithin 14 days", "within 14 days"),
        ("about 3,000 kg", "2,600 kg\n3,010 kg", "3,010 kg"),
        ("in 2021", "the 1st row\nsince 01.10.2021\nas it\nwas written there", "since 01.10.2021"),
    ],
)
def test_the_nearest_figure_in_the_same_unit_is_shown(claim: str, source: str, line: str) -> None:
    assert [found.line for found in check(claim, [Source(source)])] == [line]
