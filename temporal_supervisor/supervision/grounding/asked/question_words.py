"""The request of a question, read by its words: a count, a mean, an extreme, a difference, and the values it names.

The words are English and German ones. A question in other words asks for nothing that is known here, but its years.
"""

import re

_NUMBER = re.compile(
    r"(?<![\w.,/])(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?:st|nd|rd|th)?(?![\d%]|['’]?s\b|[.,]\d)", re.IGNORECASE
)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
NOT = re.compile(r"\b(?:did|do|does|was|were|is|are|has|have|had|could) not\b|n't\b|\bnever\b|\bwithout\b|\bnicht\b|\bohne\b", re.I)
COUNT = re.compile(r"\bhow many\b|\bcount (?:the|of|all)\b|\bnumber of\b|\bhow often\b|\bwie viele\b|\banzahl\b", re.IGNORECASE)
COUNTED = re.compile(r"\b(?:how many|(?:total )?number of|wie viele|anzahl der)\s+(?P<noun>[\w'’-]+(?:\s+[\w'’-]+){0,2})", re.I)
AVERAGE = re.compile(r"\baverages?\b|\bmean (?!by|to\b)|\bon average\b|\bdurchschnitt\w*|\bmittelwert\w*", re.IGNORECASE)
_LIKE_AVERAGE = re.compile(
    r"\baverag|\bmean|\btypical|\bexpect|\bper\b|\brat(?:e|io)s?\b|\bshare|\bpercent|\boverall\b|\bnormal|\bz-score|"
    r"\bdeviation|\boutlier|\bcorrelat|\bmedian|\bregress|\bdistribut|\bdurchschnitt|\bmittel",
    re.IGNORECASE,
)
TOTAL = re.compile(
    r"\btotal\b|\bcombined\b|\baltogether\b|\bin all\b|\bsum of\b|\btogether\b|\binsgesamt\b|\bsumme\b", re.IGNORECASE
)
DIFFERENCE = re.compile(
    r"\bdifferences? (?:between|in|of|from)\b"
    r"|\bhow (?:many|much) (?:more|less|fewer|longer|older|higher|taller|larger|faster|greater|younger|later|earlier|"
    r"bigger|heavier|shorter)\b[^?.]*\bthan\b"
    r"|\bhow many (?:years|days|months|weeks|hours) (?:after|before|between|passed|later|earlier|apart)\b"
    r"|\bby how (?:much|many)\b|\bunterschied zwischen\b|\bum wie ?viel\b",
    re.IGNORECASE,
)
_HIGH = r"most|highest|largest|biggest|greatest|longest|tallest|oldest|latest|heaviest|maximum|höchste[nrs]?|größte[nrs]?|meisten"
_LOW = r"least|fewest|lowest|smallest|shortest|youngest|earliest|lightest|minimum|niedrigste[nrs]?|kleinste[nrs]?|wenigsten"
_OTHER = r"fastest|slowest|best|worst|top|farthest|furthest|closest|nearest|richest|poorest|hottest|coldest"
EXTREME = re.compile(
    rf"(?<!\bat )(?<!\bat the )(?<!\bnext )(?<!\bsecond )(?<!\bthird )(?<!\d(?:st|nd|rd|th) )\b(?P<word>(?P<high>{_HIGH})|(?P<low>{_LOW})|{_OTHER})\b(?! of (?:the|these|those|his|her|its)\b)",
    re.IGNORECASE,
)
ENDS = re.compile(
    r"\b(?:the|his|her|their|its|'s|whose) (?:very )?(?P<word>first|last)\b"
    r"(?! (?:names?|places?|rounds?|half|quarters?|legs?|divisions?|class|prizes?|ladys?|lady|minister|team|week|month|day|year|"
    r"time|decade|century|season|one|two|three|few|\d))",
    re.IGNORECASE,
)
COMPARED = re.compile(
    r"\b(?P<word>(?:more|greater|higher|larger|fewer|less|lower|smaller|older|younger|longer|shorter|later|earlier|better) than"
    r"|at least|at most|over|under|above|below|after|before|since|prior to|beyond|exceed(?:s|ed|ing)?|"
    r"mehr als|weniger als|mindestens|höchstens|über|unter|nach|vor|seit)\s+(?:the year |an? \w+ of |\$|€|£)?(?P<number>\d[\d,.]*)",
    re.IGNORECASE,
)
RANGE = re.compile(r"\b(?P<word>between|from) (?:\w+ ){0,2}(?P<number>\d[\d,.]*) (?:and|to|until|through) ", re.IGNORECASE)
_ENDINGS = re.compile(
    r"est\b|\bmost\b|\bleast\b|\bfirst\b|\blast\b|\btop\b|\bmax|\bmin|\brecord\b|\bpeak|\bbest\b|\bworst\b|\bfinal|\bbegin|"
    r"\bstart|\bend(?:ed|ing|s)?\b|\brange|\bextreme|\bup to\b|\buntil\b|\bsince\b|\bonly\b|\bnext\b|\bafter\b|\bbefore\b|\brecent|"
    r"\bsten\b|ste[nrs]?\b|\berst|\bletzt",
    re.IGNORECASE,
)
_ASKED_FOR = re.compile(
    r"(?:^|[.,:;?>]\s+|\n|\band )(?:(?:in |on |at |for |from )?(?:which|what)|name (?:of )?the|list (?:all )?the)\s+"
    r"(?:is the |was the |are the |were the |other |of the |the |kind of |type of )?(?P<noun>[a-z][\w'’-]*(?:\s+[a-z][\w'’-]*){0,2})",
    re.IGNORECASE,
)
_EXCEPTED = re.compile(r"\b(?:besides|except(?: for)?|other than|apart from|außer)\b[^,?.;]*", re.IGNORECASE)
WHO = re.compile(r"^\W*who(?:m)?\b|^\W*wer\b", re.IGNORECASE)
WHEN = re.compile(r"^\W*when\b|\b(?:what|which) (?:year|date|day)\b|^\W*wann\b", re.IGNORECASE)
WHERE = re.compile(r"^\W*where\b|^\W*wo\b", re.IGNORECASE)


def numbers_in(question: str) -> list[str]:
    """Returns the numbers that a question names, years among them, as they are compared; none of decades."""
    return list(dict.fromkeys(found[1].replace(",", "") for found in _NUMBER.finditer(question)))


def is_year(number: str) -> bool:
    """True for a whole number that may be a year."""
    return _YEAR.fullmatch(number) is not None


def may_mean(question: str) -> bool:
    """True if a mean may answer a question."""
    return _LIKE_AVERAGE.search(question) is not None


def nouns_asked_for(question: str) -> list[str]:
    """Returns the words behind which, what and the like."""
    return [found["noun"].lower() for found in _ASKED_FOR.finditer(question)]


def without_exceptions(question: str) -> str:
    """Returns a question without what it leaves out, as in "besides Seattle"."""
    return _EXCEPTED.sub(" ", question)


def takes_an_end(question: str) -> bool:
    """True if a question may ask for the highest or lowest of something, in whatever words."""
    return _ENDINGS.search(question) is not None
