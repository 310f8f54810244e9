"""The sign of a figure, and the words that give one: "fell by 3", "a loss of 3", "−3".

A figure is another one with the other sign. Words of falling, of losses and of money that goes out
explain a sign that is not written; where nothing does, the sign of the source counts.
"""

import re

# "fell by 3", "a loss of 3", "gesunken"; not "rose by 3".
_FALL = re.compile(
    r"\b(?:f[ae]ll|fallen|falling|decreas\w*|declin\w*|drop\w*|lower\w*|less|fewer|down\w*|"
    r"reduc\w*|shr[iau]nk\w*|"
    r"loss\w*|lost|los[et]s?|negativ\w*|minus|deficit\w*|invers\w*|below|under|short\w*|cut\w*|"
    r"differen\w*|gap|apart|"
    r"gesunken|sank|sinkt|gefallen|fiel\w*|rückgang\w*|weniger|verlust\w*|verlor\w*|"
    r"niedriger|unter\w*|"
    r"differenz|"
    r"baiss\w*|diminu\w*|moins|perte\w*|perd\w*|écart|caída|cay\w*|menos|pérdida\w*|diferencia)\b"
    r"|下降|减少|亏损|差",
    re.IGNORECASE,
)
# What has no sign, so that a text leaves it out; none of them gives a figure a minus.
_UNSIGNED = re.compile(r"\b(?:distance|range\w*|deviat\w*|absolut\w*|magnitude)\b", re.IGNORECASE)
# A measure that is another one with the other sign, whatever it is a measure of.
_SIGNED = re.compile(
    r"\b(?:corr|correlat\w*|korrelation\w*|covarian\w*|kovarianz\w*|slope|skew\w*)\b",
    re.IGNORECASE,
)
# Amounts that go out or are owed: accounts write them with a minus, and texts without.
_OUT = re.compile(
    r"\b(?:costs?|expen[sd]\w*|spent|spend\w*|pa(?:y|id)\w*|outflow\w*|used|debt\w*|liabilit\w*|"
    r"tax\w*|charges?|depreciat\w*|amorti[sz]\w*|allowance\w*|discount\w*|provision\w*|"
    r"impair\w*|withdraw\w*|refund\w*|returns?|"
    r"kosten|coûts?|costes?)\b",
    re.IGNORECASE,
)
# The verb of a change from one value to another, its two values in this order.
_FROM_TO = re.compile(
    r"\b(?P<verb>rose|rises|risen|increased|increases|grew|grows|fell|falls|fallen|decreased|"
    r"decreases|declined|dropped|drops|shrank)\b(?:\sby\s(?:[^.,;\n]|[.,](?=\d)){1,60}?)?,?\sfrom\s"
    r"[$€£¥]?(?P<old>-?[\d,.]{0,24}\d)(?:[^.;\n\d]{0,40}"
    r"(?:(?:19|20)\d\d[^.;\n\d]{0,20})?)\sto\s[$€£¥]?(?P<new>-?[\d,.]{0,24}\d)",
    re.IGNORECASE,
)
# "growth of wages from 2009 to 2004", "fell from May 5, 2010 to May 5, 2012".
_FROM_YEAR = re.compile(
    r"\b(?:changes?|increases?|decreases?|growth|rise|fall|decline|drop|rose|fell|grew)\b"
    r"[^.;\n]{0,80}?\sfrom\s"
    r"(?:[A-Z][a-z]{2,8}\.?\s\d{1,2},?\s)?(?P<first>(?:19|20)\d\d)\sto\s"
    r"(?:[A-Z][a-z]{2,8}\.?\s\d{1,2},?\s)?(?P<last>(?:19|20)\d\d)(?!\d)"
)
_RISES = ("r", "i", "g")  # the first letters of verbs of rising
# Whole numbers in the two conventions: "1,234.5" and "12.5"; "1.234,5" and "12,5", not "1,234".
_WITH_POINT = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_WITH_COMMA = re.compile(r"-?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,(?:\d{1,2}|\d{4,}))?")


def may_be_unsigned(words: str) -> bool:
    """True if words say themselves that a figure is negative, or how far two are apart."""
    return may_be_negative(words) or _UNSIGNED.search(words) is not None


def may_be_negative(words: str) -> bool:
    """True if words explain the minus of a figure that has none elsewhere: it fell, or went out."""
    return says_fall(words) or (_OUT.search(words) is not None and _SIGNED.search(words) is None)


def says_fall(words: str) -> bool:
    """True if words speak of a fall or a loss, or of a difference, which has either sign."""
    return _FALL.search(words) is not None


def wrong_turns(text: str) -> list[tuple[str, str]]:
    """Returns each change whose verb says the contrary of its two values, with the reason."""
    found = list[tuple[str, str]]()
    for match in _FROM_TO.finditer(text):
        rises = match["verb"][0].lower() in _RISES
        turns = _turns(match["old"], match["new"])
        contrary = -1 if rises else 1
        if turns != {contrary}:
            continue
        way = "below" if rises else "above"
        found.append((match[0], f"{match['new']} is {way} {match['old']}"))
    return found


def _turns(old: str, new: str) -> set[int]:
    """Returns 1 for a rise, -1 for a fall, 0 for neither, in each way to read both numbers.

    Both have a point before their decimals, or a comma: 12,5 is below 13, and 1.200 may be both
    above and below 13.
    """
    turns: set[int] = set()
    for form, group, point in ((_WITH_POINT, ",", "."), (_WITH_COMMA, ".", ",")):
        if form.fullmatch(old) and form.fullmatch(new):
            first = float(old.replace(group, "").replace(point, "."))
            last = float(new.replace(group, "").replace(point, "."))
            turns.add((last > first) - (last < first))
    return turns


def backward_years(text: str) -> list[str]:
    """Returns the years of changes from a later year to an earlier one, as in "2019 to 2018"."""
    found = list[str]()
    for match in _FROM_YEAR.finditer(text):
        if int(match["first"]) > int(match["last"]):
            found.append(f"{match['first']} to {match['last']}")
    return found
