"""What a question asks of a table: a period, a superlative, a change, a total."""

import re
from dataclasses import dataclass

from standin.words import key_stems, stems

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH = re.compile(
    rf"\b({'|'.join(_MONTHS)}|{'|'.join(m[:3] for m in _MONTHS)})\.?,?\s+((?:1[5-9]|20|21)\d\d)\b", re.I
)
_POINT = r"((?:1[5-9]|20|21)\d\d(?:-(?:0[1-9]|1[0-2]))?)(?!\d)"
_RANGES = (
    re.compile(
        rf"\b(?:between|from)\s+(?:the\s+\w+\s+of\s+)?{_POINT}"
        rf"\s+(?:and|to|until|till|through|up to)\s+(?:\w+\s+of\s+)?{_POINT}",
        re.IGNORECASE,
    ),
    re.compile(rf"\b{_POINT}\s*(?:-|–|—|to|until|till|through)\s*{_POINT}"),
)
_DECADE = re.compile(r"\b((?:1[5-9]|20)\d)0['’]?s\b")
_SINCE = re.compile(rf"\b(?:since|after|from|starting in|beginning in)\s+(?:\w+\s+)?{_POINT}", re.I)
_UNTIL = re.compile(rf"\b(?:before|until|till|up to|through)\s+{_POINT}", re.I)
_ANY = re.compile(rf"\b{_POINT}")
_LATEST = re.compile(r"\b(latest|most recent|newest|nowadays|today|currently)\b", re.I)
_HIGH = re.compile(
    r"\b(highest|largest|biggest|greatest|maximum|top|best|longest|richest|most|peak\w*|fastest|strongest|leading)\b",
    re.I,
)
_LOW = re.compile(r"\b(lowest|smallest|fewest|minimum|worst|shortest|poorest|least|slowest|weakest|bottom)\b", re.I)
_NO_SUPERLATIVE = re.compile(r"\b(at least|at most|most of|most recent|the most important|last but not least)\b", re.I)
_COUNT = re.compile(
    r"\b(?:top|bottom|the)?\s*(\d{1,2}|two|three|five|ten)\s+(?:\w+\s+){0,2}?(?:with|highest|lowest|largest|best|most)",
    re.I,
)
_TOP = re.compile(r"\b(?:top|bottom)\s+(\d{1,2}|two|three|five|ten)\b", re.I)
_CHANGE = re.compile(
    r"\b(chang|grow|grew|growth|ris(e|en|ing)\b|rose|increas|fall|fell|declin|decreas|drop|gain|los[est]|lost|improv|develop|evol|trend|shrink|shrank)",
    re.I,
)
_DOWN = re.compile(r"\b(fall|fell|declin|decreas|drop|los[est]|lost|shrink|shrank|worsen)", re.I)
_RATE = re.compile(r"\b(percent\w*|%|rate|fastest|slowest|relative|proportion\w*)", re.I)
_TOTAL = re.compile(r"\b(total|sum|altogether|combined|overall|in all)\b", re.I)
_WHEN = re.compile(r"\b(when|(which|what) (year|month|date|day|quarter))\b", re.I)
_EVENT = re.compile(r"\b[\w-]+ (crisis|bubble|boom|recession|crash|depression|pandemic)\b", re.I)
_NUMBERS = {"two": 2, "three": 3, "five": 5, "ten": 10}


@dataclass(frozen=True)
class Period:
    """Years or months (`YYYY`, `YYYY-MM`): an open or closed range, or single points; empty is all of time."""

    first: str = ""
    last: str = ""
    points: tuple[str, ...] = ()

    @property
    def is_range(self) -> bool:
        """Whether it has a beginning or an end."""
        return bool(self.first or self.last)

    def __bool__(self) -> bool:
        return self.is_range or bool(self.points)


@dataclass(frozen=True)
class Question:
    """The parts of a question that SQL can say; `direction` is DESC, ASC or empty."""

    text: str
    stems: tuple[str, ...]
    keys: tuple[str, ...]
    period: Period
    direction: str = ""
    top: int = 5
    latest: bool = False
    change: bool = False
    down: bool = False
    rate: bool = False
    total: bool = False
    when: bool = False


def ask(text: str) -> Question:
    """The question in `text`."""
    plain = _NO_SUPERLATIVE.sub(" ", text)
    high, low = _HIGH.search(plain), _LOW.search(plain)
    count = _TOP.search(plain) or _COUNT.search(plain)
    things = _EVENT.sub(r"\1", text)
    return Question(
        text=text,
        stems=tuple(stems(things)),
        keys=tuple(stem for stem in key_stems(things) if not stem.isdigit()),
        period=period(text),
        direction="ASC" if low and not high else "DESC" if high else "",
        top=min(50, _amount(count.group(1))) if count else 5,
        latest=bool(_LATEST.search(text)),
        change=bool(_CHANGE.search(text)),
        down=bool(_DOWN.search(text)),
        rate=bool(_RATE.search(text)),
        total=bool(_TOTAL.search(text)),
        when=bool(_WHEN.search(text)),
    )


def period(text: str) -> Period:
    """The time that `text` speaks of."""
    dated = _MONTH.sub(lambda m: f"{m.group(2)}-{_month(m.group(1)):02d}", text)
    if decade := _DECADE.search(dated):
        return Period(first=f"{decade.group(1)}0", last=f"{decade.group(1)}9")
    for pattern in _RANGES:
        if found := pattern.search(dated):
            first, last = sorted((found.group(1), found.group(2)))
            return Period(first, last)
    since, until = _SINCE.search(dated), _UNTIL.search(dated)
    if since or until:
        return Period(since.group(1) if since else "", until.group(1) if until else "")
    return Period(points=tuple(sorted(set(_ANY.findall(dated)))))


def _month(name: str) -> int:
    return next(at for at, month in enumerate(_MONTHS, 1) if month.startswith(name.lower()[:3]))


def _amount(text: str) -> int:
    return _NUMBERS.get(text.lower()) or max(1, int(text))
