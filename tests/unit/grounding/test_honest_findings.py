"""Honest findings in several languages: formats, units, ranges, roundings, dates. None of it is flagged."""

import pytest

from supervision.grounding.support import Source, check

SOURCE = Source("""year,source,gwh,share
2001,coal,33812,0.8512
2011,wind,10709,0.1901
2017,wind,21333,0.3725
revenue 4711.5 million USD; 1,234,567 employees; cost 25,000,000 EUR; 3500000 yuan; population 1412000000
date 2017-03-15; temperature 36.6; length 1234.5 km; took 48 hours; weight 1.25 t
""")
HONEST = """
Wind generated 21,333 GWh in 2017, about 37 % of the total.
Coal had a share of 85.1 % in 2001.
Revenue was $4.7 billion.
Roughly 1.2 million employees.
Between 10,709 and 21,333 GWh.
On 15 March 2017 it took 48 h.
The cost was 25m euros.
`x = 99` gives 36.6.
| 2017 | 37.25 % |
Over 16 years.
Wind lieferte 21.333 GWh im Jahr 2017, rund 37 Prozent.
Kohle hatte 2001 einen Anteil von 85,1 %.
Der Umsatz lag bei 4,7 Milliarden Dollar.
Etwa 1,2 Millionen Beschäftigte.
Zwischen 10.709 und 21.333 Gigawattstunden.
Am 15.03.2017.
Es dauerte 48 Stunden, in 16 Jahren.
Die Kosten: 25 Mio. Euro.
1.234,5 km; 1,25 Tonnen; 36,6 Grad Celsius
Der Umsatz lag bei 4.711,5 Mio. USD.
L'éolien a produit 21 333 GWh en 2017, environ 37 %.
La part du charbon était de 85,1 pour cent en 2001.
Un chiffre d'affaires de 4,7 milliards de dollars.
Près de 1,2 million d'employés.
Entre 10 709 et 21 333 gigawattheures.
Le 15/03/2017.
Cela a duré 48 heures, en 16 ans.
Le coût : 25 millions d’euros.
1 234,5 kilomètres, 36,6 °C
Environ 1 412 millions d'habitants.
2017年风电发电量为21,333吉瓦时，约占37%。
2001年煤炭占85.1％。
收入约为47亿美元。
约120万名员工。
10709至21333吉瓦时之间。
２０１７年３月１５日。
历时48小时。
350万元
长1234.5公里
温度为３６．６度
""".strip().splitlines()


@pytest.mark.parametrize("text", HONEST)
def test_an_honest_finding_is_not_flagged(text: str) -> None:
    assert [claim.text for claim in check(text, [SOURCE]) if not claim.source] == []


@pytest.mark.parametrize(
    ("text", "flagged"),
    [
        ("Wind generated 29,333 GWh in 2017.", "29,333 GWh"),
        ("Wind lieferte 29.333 GWh, rund 45 Prozent.", "29.333 GWh"),
        ("Der Umsatz lag bei 9,9 Milliarden Dollar.", "9,9 Milliarden Dollar"),
        ("Cela a duré 77 heures.", "77"),
        ("1 299,5 kilomètres", "1 299,5"),
    ],
)
def test_a_figure_from_nowhere_is(text: str, flagged: str) -> None:
    assert flagged in [claim.text for claim in check(text, [SOURCE]) if not claim.source]
