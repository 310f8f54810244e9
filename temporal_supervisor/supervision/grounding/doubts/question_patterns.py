"""The request of a question, read by its words: a count, a mean, an extreme, a difference, and the values it names.

The words are English and German ones. A question in other words asks for nothing that is known here but its years.
"""

import re

from temporal_supervisor.supervision.grounding.rows.superlatives import LEAST_WORDS, MOST_WORDS

_NUMBER = re.compile(
    r"(?<![\w.,/])(?P<digits>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?P<rank>st|nd|rd|th)?(?![\d%]|['’]?s\b|[.,]\d)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_CHOICE = re.compile(
    r"(?<![\w'’.-])([\w'’.-]++) or (?:the |in |on )?([\w'’.-]+)",
    re.IGNORECASE,
)
_EXCEPTED = re.compile(r"\b(?:besides|except(?: for)?|other than|apart from|außer)\b[^,?.;]*", re.IGNORECASE)
_LIKE_AVERAGE = re.compile(
    r"\baverag|\bmean|\btypical|\bexpect|\bper\b|\brat(?:e|io)s?\b|\bshare|\bpercent|\boverall\b|\bnormal|\bz-score|"
    r"\bdeviation|\boutlier|\bcorrelat|\bmedian|\bregress|\bdistribut|\bdurchschnitt|\bmittel",
    re.IGNORECASE,
)
_LIKE_EXTREME = re.compile(
    r"est\b|\bmost\b|\bleast\b|\bfirst\b|\blast\b|\btop\b|\bmax|\bmin|\brecord\b|\bpeak|\bworst\b|\bfinal|\bbegin|"
    r"\bstart|\bend(?:ed|ing|s)?\b|\brange|\bextreme|\bup to\b|\buntil\b|\bsince\b|\bonly\b|\bnext\b|\bafter\b|"
    r"\bbefore\b|\brecent|ste[nrs]?\b|\berst|\bletzt",
    re.IGNORECASE,
)
_OTHER = (
    "oldest|youngest|latest|earliest|fastest|slowest|best|worst|top|farthest|furthest|closest|nearest|hottest|coldest"
)
_NO_LAST = (
    "names?|places?|rounds?|half|quarters?|legs?|divisions?|class|prizes?|lady|minister|team|week|month|day|year|time|"
    r"decade|century|season|one|two|three|few|\d"
)
_THAN = "more|greater|higher|larger|fewer|less|lower|smaller|older|younger|longer|shorter|later|earlier|better"
_BOUNDS = (
    "at least|at most|over|under|above|below|after|before|since|prior to|beyond|exceed(?:s|ed|ing)?|"
    "mehr als|weniger als|mindestens|höchstens|über|unter|nach|vor|seit"
)

_ADJECTIVE = re.compile(r"\b\w{3,}(?:an|ese|ish|ic|isch|ische[nrs]?)\b")
_PAIR = re.compile(r"\b(?=(\w+ \w+))\b")
AVERAGE = re.compile(r"\baverages?\b|\bmean (?!by|to\b)|\bdurchschnitt\w*|\bmittelwert\w*", re.IGNORECASE)
COMPARED = re.compile(
    rf"\b(?P<word>(?:{_THAN}) than|{_BOUNDS})\s+(?:the year |an? \w+ of |\$|€|£)?(?P<number>\d[\d,.]*)",
    re.IGNORECASE,
)
COUNT = re.compile(
    r"\bhow (?:many|often)\b|\bcount (?:the|of|all)\b|\bnumber of\b|\bwie viele\b|\banzahl\b",
    re.IGNORECASE,
)
_HOW_MANY = "how many|(?:total )?number of|wie viele|anzahl der"
COUNTED = re.compile(rf"\b(?:{_HOW_MANY})\s+(?P<noun>[\w'’-]+)", re.IGNORECASE)
ONE_OF_TWO = re.compile(
    r"""
    \b (?:more|most|higher|highest|longer|larger|bigger|older|earlier|later|better|fewer|less) \b
    [^?]{0,200} \b (?P<one>\w{1,40}) \s or \s (?P<other>\w{1,40}) \s? \?
    """,
    re.IGNORECASE | re.VERBOSE,
)
TOTAL_OF = re.compile(rf"\b(?:{_HOW_MANY}|total(?: of)?) (?P<noun>\w{{3,}})", re.IGNORECASE)
"""A number of something that a column may hold, as in "total wins" and "how many points"."""
DIFFERENCE = re.compile(
    r"\bdifferences? (?:between|in|of|from)\b"
    r"|\bhow (?:many|much) (?:more|less|fewer|longer|older|higher|taller|larger|faster|greater|younger|later|earlier|"
    r"bigger|heavier|shorter)\b[^?.]{0,200}\bthan\b"
    r"|\bhow many (?:years|days|months|weeks|hours) (?:after|before|between|passed|later|earlier|apart)\b"
    r"|\bby how (?:much|many)\b|\bunterschied zwischen\b|\bum wie ?viel\b",
    re.IGNORECASE,
)
ENDS = re.compile(
    rf"\b(?:the|his|her|their|its|'s|whose) (?:very )?(?P<word>first|last)\b(?! (?:{_NO_LAST}))",
    re.IGNORECASE,
)
EXTREME = re.compile(
    r"(?<!\bat )(?<!\bat the )(?<!\bnext )(?<!\bsecond )(?<!\bthird )(?<!\d(?:st|nd|rd|th) )"
    rf"\b(?P<word>(?P<high>{MOST_WORDS})|(?P<low>{LEAST_WORDS})|{_OTHER})\b(?! of (?:the|these|those|his|her|its)\b)",
    re.IGNORECASE,
)
ORDER = re.compile(r"(?:\A|(?<=[.!?;]) {1,3})(?:Do not|Don't)\b[^.!?]{0,300}")
"""An order such as "Do not round.": it tells how to answer, and leaves nothing out."""
_BESIDE = re.compile(
    r"""
    \b (?: next | previous | preceding | following | above | below
        | (?:comes?|came|is|was|listed|right|directly|immediately|name|one) \s (?:before|after)
        ) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)
LISTED = re.compile(
    r"""
    \b (?:first|last|top|bottom) \b [^?.]{0,80} \b (?:listed | (?:on|in) \s (?:the|this) \s (?:chart|list|table)) \b
    | \b listed \s (?:first|last|before|after) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A row by its place, as in "the last stadium listed" and "the name listed before Ida"."""
MOST_OF = re.compile(r"\b(?:most|fewest|meisten|wenigsten) (?P<noun>[^\W\d_]{3,})", re.IGNORECASE)
"""The most of something, as in "the most cyclists": things are counted, amounts are not."""
NOT = re.compile(
    r"\b(?:did|do|does|was|were|is|are|has|have|had|could) not\b|n't\b|\bnever\b|\bwithout\b|\bnicht\b|\bohne\b",
    re.IGNORECASE,
)
RANGE = re.compile(
    r"\b(?P<word>between|from) (?:\w+ ){0,2}(?P<number>\d[\d,.]*) (?:and|to|until|through) ",
    re.IGNORECASE,
)
TOTAL = re.compile(
    r"\btotal\b|\bcombined\b|\baltogether\b|\bin all\b|\bsum of\b|\btogether\b|\binsgesamt\b|\bsumme\b",
    re.IGNORECASE,
)
WHEN = re.compile(r"^\W*when\b|\b(?:what|which) (?:year|date|day)\b|^\W*wann\b", re.IGNORECASE)
WHERE = re.compile(r"^\W*where\b|^\W*wo\b", re.IGNORECASE)
WHO = re.compile(r"^\W*who(?:m)?\b|^\W*wer\b", re.IGNORECASE)
_ASKED_FOR = re.compile(
    r"(?:^|[.,:;?>]\s+|\n|\band )(?:(?:in |on |at |for |from )?(?:which|what)|name (?:of )?the|list (?:all )?the)\s+"
    r"(?:(?:is|was|are|were) the |other |of the |the |kind of |type of )?"
    r"(?P<noun>[a-z][\w'’-]*(?:\s+[a-z][\w'’-]*){0,2})",
    re.IGNORECASE,
)


def numbers_in(question: str) -> list[str]:
    """Returns the numbers that a question names, years and ranks such as 5th among them; none of decades."""
    found = _NUMBER.finditer(question)
    written = (f"{each['digits'].replace(',', '')}{each['rank'] or ''}" for each in found)
    return list(dict.fromkeys(number.lower() for number in written))


def is_year(number: str) -> bool:
    """True for a whole number that may be a year."""
    return _YEAR.fullmatch(number) is not None


def counts_all(question: str, number: str) -> bool:
    """True if a number counts all there are, as in "all 50 states": it chooses nothing."""
    return re.search(rf"\b(?:all|the|alle)\s{re.escape(number)}\b", question, re.IGNORECASE) is not None


def is_bound(question: str, number: str) -> bool:
    """True if rows are compared with a number, as in "at least 50": none of them need have it."""
    bounds = [*COMPARED.finditer(question), *RANGE.finditer(question)]
    return any(bound["number"].strip(",.").replace(",", "") == number for bound in bounds)


def choices_in(question: str) -> list[tuple[str, str]]:
    """Returns the words on both sides of each "or": whoever has one of them may know the other."""
    return [(each[1].lower(), each[2].lower()) for each in _CHOICE.finditer(question)]


def adjectives_in(question: str) -> list[str]:
    """Returns the words that may be the adjective of a country, in small letters."""
    return _ADJECTIVE.findall(question.lower())


def pairs_in(question: str) -> list[str]:
    """Returns all two words that stand side by side, in small letters."""
    return [*dict.fromkeys(_PAIR.findall(question.lower()))]


def without_exceptions(question: str) -> str:
    """Returns a question without the names that it leaves out, as in "besides Seattle"."""
    return _EXCEPTED.sub(" ", question)


def may_mean(question: str) -> bool:
    """True if a mean may answer a question, in whatever words."""
    return _LIKE_AVERAGE.search(question) is not None


def may_take_an_end(question: str) -> bool:
    """True if the highest or lowest of something may answer a question, in whatever words."""
    return _LIKE_EXTREME.search(question) is not None


def asks_for_a_place(question: str) -> bool:
    """True if the order of the rows may answer a question, as in "what comes after Ida?"."""
    return bool(LISTED.search(question) or _BESIDE.search(question))


def nouns_asked_for(question: str) -> list[str]:
    """Returns the nouns behind "which", "what", "name the" and "list the"."""
    return [found["noun"].lower() for found in _ASKED_FOR.finditer(question)]
