"""The patterns of a question: a count, a mean, an extreme, a difference, and the values it names.

In goes the text of a question, out come matches and words. The words are English and German ones:
a question in other words asks for nothing that is known here but its years. Public patterns are
searched by the rules of this room; private ones belong to the functions below them.
"""

import re

from temporal_supervisor.supervision.grounding.rows.superlatives import LEAST_WORDS, MOST_WORDS

_HOW_MANY = "how many|(?:total )?number of|wie viele|anzahl der"
_OF_AMOUNTS = "more|greater|higher|larger|fewer|less|lower|smaller|better"
_OF_TIMES = "older|younger|longer|shorter|later|earlier"
_THAN = f"{_OF_AMOUNTS}|{_OF_TIMES}"
_BOUNDS = (
    "at least|at most|over|under|above|below|after|before|since|prior to|beyond"
    "|exceed(?:s|ed|ing)?"
    "|mehr als|weniger als|mindestens|höchstens|über|unter|nach|vor|seit"
)
# Superlatives beside those of `superlatives`, which compare rows by a measure.
_EXTREMES_OF_TIMES = "oldest|youngest|latest|earliest|fastest|slowest"
_EXTREMES_OF_PLACES = "farthest|furthest|closest|nearest|hottest|coldest"
_OTHER_EXTREMES = f"{_EXTREMES_OF_TIMES}|best|worst|top|{_EXTREMES_OF_PLACES}"
# Nouns behind a "first" or "last" that names something, as in "her last name".
_NO_ENDS = (
    r"names?|places?|rounds?|half|quarters?|legs?|divisions?|class|prizes?|lady|minister|team"
    r"|week|month|day|year|time|decade|century|season|one|two|three|few|\d"
    r"|(?:and|or|to) (?:the )?(?:first|second|third|fourth|last)"
)

# "how many wins", "how often", "the number of goals", "wie viele Tore"; not "how much".
COUNT = re.compile(
    r"\bhow (?:many|often)\b|\bcount (?:the|of|all)\b|\bnumber of\b|\bwie viele\b|\banzahl\b",
    re.IGNORECASE,
)

# The noun `wins` of "how many wins" and of "total number of wins".
COUNTED = re.compile(rf"\b(?:{_HOW_MANY})\s+(?P<noun>[\w'’-]+)", re.IGNORECASE)

# The noun `wins` of "how many wins" and of "total wins": a column may hold its number.
TOTAL_OF = re.compile(rf"\b(?:{_HOW_MANY}|total(?: of)?) (?P<noun>\w{{3,}})", re.IGNORECASE)

# "in total", "altogether", "the sum of all points", "insgesamt".
TOTAL = re.compile(
    r"\btotal\b|\bcombined\b|\baltogether\b|\bin all\b|\bsum of\b|\btogether\b"
    r"|\binsgesamt\b|\bsumme\b",
    re.IGNORECASE,
)

# "the average depth", "its mean height", "im Durchschnitt"; not "What is meant", "mean by".
AVERAGE = re.compile(
    r"\baverages?\b|\bmean (?!by|to\b)|\bdurchschnitt\w*|\bmittelwert\w*",
    re.IGNORECASE,
)

# "the difference between A and B", "how many more goals ... than", "how many years after",
# "by how much".
DIFFERENCE = re.compile(
    r"\bdifferences? (?:between|in|of|from)\b"
    r"|\bhow (?:many|much) (?:more|less|fewer|longer|older|higher|taller|larger|faster|greater"
    r"|younger|later|earlier|bigger|heavier|shorter)\b[^?.]{0,200}\bthan\b"
    r"|\bhow many (?:years|days|months|weeks|hours) "
    r"(?:after|before|between|passed|later|earlier|apart)\b"
    r"|\bby how (?:much|many)\b|\bunterschied zwischen\b|\bum wie ?viel\b",
    re.IGNORECASE,
)

# "the highest tower", "the least visitors", "the oldest"; not "at least", "the second highest", or
# "the largest of these", which are part of a condition.
EXTREME = re.compile(
    r"(?<!\bat )(?<!\bat the )(?<!\bnext )(?<!\bsecond )(?<!\bthird )(?<!\d(?:st|nd|rd|th) )"
    rf"\b(?P<word>(?P<high>{MOST_WORDS})|(?P<low>{LEAST_WORDS})|{_OTHER_EXTREMES})\b"
    r"(?! of (?:the|these|those|his|her|its)\b)",
    re.IGNORECASE,
)

# "the first match", "her last song"; not "her last name", "the first three", "the first to the
# second half".
ENDS = re.compile(
    rf"\b(?:the|his|her|their|its|'s|whose) (?:very )?(?P<word>first|last)\b(?! (?:{_NO_ENDS}))",
    re.IGNORECASE,
)

# "the most cyclists": things are counted. It also matches "the most money", whose column has
# amounts; the rule that searches it asks for a column of names.
MOST_OF = re.compile(
    r"\b(?:most|fewest|meisten|wenigsten) (?P<noun>[^\W\d_]{3,})",
    re.IGNORECASE,
)

# "Were there more in 1967 or 1968?"
ONE_OF_TWO = re.compile(
    r"""
    \b (?:more|most|higher|highest|longer|larger|bigger|older|earlier|later|better|fewer|less) \b
    [^?]{0,200} \b (?P<one>\w{1,40}) \s or \s (?P<other>\w{1,40}) \s? \?
    """,
    re.IGNORECASE | re.VERBOSE,
)

# "more than 50", "after the year 1994", "at least $5"; not "more than half".
COMPARED = re.compile(
    rf"\b(?P<word>(?:{_THAN}) than|{_BOUNDS})\s+"
    r"(?:the year |an? \w+ of |\$|€|£)?(?P<number>\d[\d,.]*)",
    re.IGNORECASE,
)

# "between 1990 and ", "from May 5 to "; the number is the lower one.
RANGE = re.compile(
    r"\b(?P<word>between|from) (?:\w+ ){0,2}(?P<number>\d[\d,.]*) (?:and|to|until|through) ",
    re.IGNORECASE,
)

# "did not finish", "isn't", "without a medal", "nicht".
NOT = re.compile(
    r"\b(?:did|do|does|was|were|is|are|has|have|had|could) not\b"
    r"|n't\b|\bnever\b|\bwithout\b|\bnicht\b|\bohne\b",
    re.IGNORECASE,
)

# "the last stadium listed", "first name on the chart", "the name listed before Ida": a row by its
# place. Not "the last winner of the games listed", nor "the top speed in the table".
LISTED = re.compile(
    r"""
    \b (?:first|last) \s (?:\w{1,30}\s){0,2}
        (?:listed | (?:on|in) \s (?:the|this) \s (?:chart|list)) \b
    | \b listed \s (?:first|last|before|after) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)

# A sentence such as "Do not round.": it tells how to answer, and leaves nothing out.
ORDER = re.compile(r"(?:\A|(?<=[.!?;]) {1,3})(?:Do not|Don't)\b[^.!?]{0,300}")

# At the beginning of a question "When", "Where", "Who", and anywhere "which year".
WHEN = re.compile(r"^\W*when\b|\b(?:what|which) (?:year|date|day)\b|^\W*wann\b", re.IGNORECASE)
WHERE = re.compile(r"^\W*where\b|^\W*wo\b", re.IGNORECASE)
WHO = re.compile(r"^\W*who(?:m)?\b|^\W*wer\b", re.IGNORECASE)


# "12", "1,234", "0.5", "5th"; not "12%", "the 1990s", "1.2.3".
_NUMBER = re.compile(
    r"(?<![\w.,/])(?P<digits>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?P<rank>st|nd|rd|th)?"
    r"(?![\d%]|['’]?s\b|[.,]\d)",
    re.IGNORECASE,
)


def numbers_in(question: str) -> list[str]:
    """Returns the numbers that a question names, years and ranks such as 5th among them.

    Decades such as "the 1990s" are none.
    """
    found = _NUMBER.finditer(question)
    written = (f"{each['digits'].replace(',', '')}{each['rank'] or ''}" for each in found)
    return list(dict.fromkeys(number.lower() for number in written))


def counts_all(question: str, number: str) -> bool:
    """True if a number counts all there are, as in "all 50 states": it chooses nothing."""
    counted = rf"\b(?:all|the|alle)\s{re.escape(number)}\b"
    return re.search(counted, question, re.IGNORECASE) is not None


def is_bound(question: str, number: str) -> bool:
    """True if rows are compared with a number, as in "at least 50": none of them need have it."""
    bounds = [*COMPARED.finditer(question), *RANGE.finditer(question)]
    return any(bound["number"].strip(",.").replace(",", "") == number for bound in bounds)


# "1967 or 1968", "Rome or in Berlin".
_CHOICE = re.compile(
    r"(?<![\w'’.-])([\w'’.-]++) or (?:the |in |on )?([\w'’.-]+)",
    re.IGNORECASE,
)


def choices_in(question: str) -> list[tuple[str, str]]:
    """Returns the words on both sides of each "or": whoever has one of them may know the other."""
    return [(each[1].lower(), each[2].lower()) for each in _CHOICE.finditer(question)]


# "german", "chinese", "spanish", "italienische"; not "than". "human" matches, too: a rule has to
# find a country with that beginning.
_ADJECTIVE = re.compile(r"\b\w{3,}(?:an|ese|ish|ic|isch|ische[nrs]?)\b")


def adjectives_in(question: str) -> list[str]:
    """Returns the words that may be the adjective of a country, in small letters."""
    return _ADJECTIVE.findall(question.lower())


# Of "the old harbour" both "the old" and "old harbour": a match takes up no characters.
_PAIR = re.compile(r"\b(?=(\w+ \w+))\b")


def pairs_in(question: str) -> list[str]:
    """Returns all two words that stand side by side, in small letters."""
    return [*dict.fromkeys(_PAIR.findall(question.lower()))]


# "besides Seattle", "except for the Hammers", up to a comma or the end of the sentence.
_EXCEPTED = re.compile(
    r"\b(?:besides|except(?: for)?|other than|apart from|außer)\b[^,?.;]*",
    re.IGNORECASE,
)


def without_exceptions(question: str) -> str:
    """Returns a question without the names that it leaves out, as in "besides Seattle"."""
    return _EXCEPTED.sub(" ", question)


# Words in whose company a mean may answer: "per season", "a typical day", "outliers".
_LIKE_AVERAGE = re.compile(
    r"\baverag|\bmean|\btypical|\bexpect|\bper\b|\brat(?:e|io)s?\b|\bshare|\bpercent|\boverall\b"
    r"|\bnormal|\bz-score|\bdeviation|\boutlier|\bcorrelat|\bmedian|\bregress|\bdistribut"
    r"|\bdurchschnitt|\bmittel",
    re.IGNORECASE,
)


def may_mean(question: str) -> bool:
    """True if a mean may answer a question, in whatever words."""
    return _LIKE_AVERAGE.search(question) is not None


# Words in whose company the highest or lowest may answer: "tallest", "up to", "recently".
_LIKE_EXTREME = re.compile(
    r"est\b|\bmost\b|\bleast\b|\bfirst\b|\blast\b|\btop\b|\bmax|\bmin|\brecord\b|\bpeak|\bworst\b"
    r"|\bfinal|\bbegin|\bstart|\bend(?:ed|ing|s)?\b|\brange|\bextreme|\bup to\b|\buntil\b"
    r"|\bsince\b|\bonly\b|\bnext\b|\bafter\b|\bbefore\b|\brecent|ste[nrs]?\b|\berst|\bletzt",
    re.IGNORECASE,
)


def may_take_an_end(question: str) -> bool:
    """True if the highest or lowest of something may answer a question, in whatever words."""
    return _LIKE_EXTREME.search(question) is not None


# "who comes after Ida", "the name before Jon", "is listed above it", "the next stop on the line";
# not "is above 50".
_BESIDE = re.compile(
    r"""
    \b (?:comes?|came|is|was|listed|right|directly|immediately|name|one) \s
        (?: next | before | after | above | below ) \b (?!\s\d)
    | \b the \s (?:next|previous|preceding|following) \s \w{1,30} \s
        (?:listed|after|before|on|in) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def asks_for_a_place(question: str) -> bool:
    """True for a question about the order of rows, such as "What comes after Ida?"."""
    return bool(LISTED.search(question) or _BESIDE.search(question))


# Up to three words behind "Which", "In what", "name the", "list all the": `team had most` of
# "Which team had most wins?", where the first word is the noun.
_ASKED_FOR = re.compile(
    r"(?:^|[.,:;?>]\s+|\n|\band )"
    r"(?:(?:in |on |at |for |from )?(?:which|what)|name (?:of )?the|list (?:all )?the)\s+"
    r"(?:(?:is|was|are|were) the |other |of the |the |kind of |type of )?"
    r"(?P<noun>[a-z][\w'’-]*(?:\s+[a-z][\w'’-]*){0,2})",
    re.IGNORECASE,
)


def nouns_asked_for(question: str) -> list[str]:
    """Returns the things that a question asks for, as `home port` of "Which home port ..."."""
    return [found["noun"].lower() for found in _ASKED_FOR.finditer(question)]
