"""Figures: the numbers, sums, times and durations in a text, each with its kind and value.

In a document, one marker character replaces each figure. So a pattern can say "all under {money}" without knowing the
many ways to write two hundred dollars.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

PIECE = re.compile(r"\w+\W?|\W")
"""A word with the character after it, or a single sign. A figure or a pattern can only begin where a piece does."""

# One private-use character per kind. A document removes such characters from the text first.
MARKERS: dict[str, str] = {
    kind: chr(0xE000 + place)
    for place, kind in enumerate(
        (
            "money",
            "money_range",
            "duration",
            "clock",
            "rating",
            "percent",
            "distance",
            "ordinal",
            "count",
            "count_range",
            "day_word",
            "multiple",
            "factor",
            "other",
            "identifier",
        )
    )
}

_UNIT_DAYS: dict[str, float] = {
    "s": 1 / 86_400,
    "mi": 1 / 1_440,
    "h": 1 / 24,
    "d": 1.0,
    "w": 7.0,
    "mo": 30.0,
    "mt": 30.0,
    "y": 365.0,
}
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_ORDINALS = ["zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_WORD_VALUE: dict[str, float] = (
    {word: float(value) for value, word in enumerate(_WORDS)}
    | {
        "a dozen": 12.0,
        "fifteen": 15.0,
        "twenty": 20.0,
        "thirty": 30.0,
        "a": 1.0,
        "an": 1.0,
        "half": 0.5,
    }
    | {word: float(value) for value, word in enumerate(_ORDINALS)}
)


class Figure(NamedTuple):
    """One figure. ``low`` and ``high`` differ for a range only; durations are in days, distances in km."""

    kind: str
    low: float
    high: float
    start: int
    end: int
    spelled: bool = False
    """Written in words. A spelled figure that was not understood is not reported."""
    currency: str = ""

    @property
    def middle(self) -> float:
        """The value, or the middle of a range."""
        return (self.low + self.high) / 2


# Every quantifier is bounded, and a figure never starts inside a run of digits: no text can make this slow.
_NUM = r"(?:\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,6})?|\d{1,12}(?:\.\d{1,6})?)(?!\d|[.,]\d)"
_SUM_DIGITS = rf"(?:\d{{1,3}}(?:\.\d{{3}}){{0,4}},\d{{2}}(?![\d,])|\.\d{{1,4}}(?!\d)|{_NUM})"
_SUM = rf"{_SUM_DIGITS}(?:k\b|m\b| ?thousand\b| ?million\b)?"
_CODE = r"(?:usd|eur|gbp|cad|aud|inr|brl|jpy|chf|mxn|ngn|zar|sgd|hkd|nzd|sek|nok|dkk|pln|cny)\b"
_SIGN = r"(?:(?:us|ca|au|nz|hk|a|r|s)?\$|[€£¥₹])"
_BEFORE = rf"(?:{_SIGN}|{_CODE}) ?"
_AFTER = rf" ?(?:{_CODE}|(?:us )?dollars?\b|bucks\b|euros?\b|pounds?\b|rupees\b|reais\b|yen\b|[€£¥₹]|\$(?!\d))"
_UNIT = (
    r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|h|days?|d(?! ?secure)|weeks?|wks?|w|months?|mths?|mos?|years?"
    r"|yrs?|y)\b"
)
_WORD = rf"(?:{'|'.join(_WORDS[1:])}|fifteen|twenty|thirty)\b"
_TO = r" ?(?:-|to|through) ?"
# "$71 - 7,850 km" and "$71 - 4 prior orders" are two points of a list, "$15 - 60" and "$15 - 60 per visit" a range
_RANGE_ENDS = rf"(?= ?{_CODE}| (?:per|on|in|at|for|each|is|as|a)\b|(?![ -]?[a-z]))"
_HHMM = r"(?:[01]?\d|2[0-3])[:h][0-5]\d(?::[0-5]\d(?:[.,]\d{1,6})?)?(?!\d)"
_AMPM = r" ?[ap]\.?m\b"
_DATE = r"(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4})(?!\d)"
_CLOCK_CUE = r"(?:(?<=at )|(?<=@)|(?<=@ )|(?<=time=)|(?<=time:)|(?<=time: ))"
_IDENTIFIER_CUE = r"(?:(?<=#)|(?<=ending )|(?<=ending in )|(?<= id )|(?<= id: )|(?<= no\. )|(?<=case )|(?<=ticket ))"

_KINDS: tuple[tuple[str, str], ...] = (
    ("identifier", rf"\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?!\d)|24/7\b|{_IDENTIFIER_CUE}\d{{2,20}}\b"),
    # names of checks that begin with a digit
    ("factor", r"3-?d ?s(?:ecure)?\b|2fa\b|2-factor(?: authentication)?\b"),
    (
        "clock",
        rf"(?:\d{{4}}-\d\d-\d\d[t ] ?)?{_HHMM}(?:{_AMPM})?(?:z\b)?|(?:1[0-2]|0?[1-9])(?:\.[0-5]\d)?{_AMPM}"
        rf"|{_CLOCK_CUE}(?:[01]?\d|2[0-3])h\b|(?<=at )[0-2]\d[0-5]\d ?(?:hours|hrs|h)\b"
        r"|(?:(?:just|shortly) after )?(?:midday|midnight|noon)\b",
    ),
    ("other", rf"{_DATE}|(?:just|shortly) before (?:midday|midnight|noon)\b|-(?={_SIGN}){_BEFORE}{_SUM}"),
    (
        "rating",
        r"[0-5](?:\.\d{1,2})? ?(?:/ ?|out of )5(?:\.0)?(?![\d/.]\d|\d)(?! \w{0,12}? ?(?:transactions|attempts"
        r"|payments|purchases))"
        r"(?: stars?)?|[0-5](?:\.\d{1,2})?[ -]?(?:stars?\b|★)|[0-5](?:\.\d{1,2})? of 5 stars?|[0-5]\.\d{1,2} of"
        r" 5(?![\d/.]\d|\d)",
    ),
    (
        "money_range",
        rf"between {_BEFORE}{_SUM} and (?:{_BEFORE})?{_SUM}|(?:between "
        rf"|from )?{_BEFORE}{_SUM}{_TO}{_BEFORE}{_SUM}(?:{_AFTER})?"
        rf"|(?:between |from )?{_BEFORE}{_SUM}(?:(?: - ){_SUM}{_RANGE_ENDS}|(?! - ){_TO}{_SUM}(?!-[a-z]))(?:{_AFTER})?"
        rf"|between {_SUM}(?:{_AFTER})? and {_SUM}{_AFTER}|{_SUM}{_TO}{_SUM}{_AFTER}",
    ),
    ("money", rf"{_BEFORE}{_SUM}(?: ?{_CODE})?|{_SUM}{_AFTER}"),
    (
        "duration",
        rf"(?:{_NUM}(?:{_TO}{_NUM})?|{_WORD})\+?[ -]?{_UNIT}(?:,? (?:and )?{_NUM} ?{_UNIT})?"
        rf"|half an? {_UNIT}|an? {_UNIT}(?= (?:ago|earlier|before|old|prior)\b|-old)"
        r"|(?:(?<=last )|(?<=past ))(?:minute|hour|day|week|month|quarter|year)\b",
    ),
    ("distance", rf"{_NUM} ?(?:kilomet(?:er|re)s?|km|kms|miles?|mi)\b"),
    ("percent", rf"{_NUM} ?(?:%|percent\b|pct\b)"),
    ("multiple", rf"{_NUM} ?x\b|{_NUM}-?fold\b"),
    (
        "ordinal",
        rf"\d{{1,4}}(?:st|nd|rd|th)\b|(?:{'|'.join(_ORDINALS[2:])})(?= (?:purchase|order|payment|transaction"
        rf"|visit))",
    ),
    ("count_range", rf"(?!\d+\.\d+ - ){_NUM}{_TO}{_NUM}(?!\w|-[a-z])|between {_NUM} and {_NUM}(?!\w)"),
    ("count", rf"{_NUM}k?(?!\w|:\d)|a dozen\b|zero\b|{_WORD}(?!-)"),
    ("day_word", r"(?:earlier today|today|this (?:morning|afternoon|evening)|tonight|yesterday)\b"),
    ("other", r"\d[\d.,:/-]{0,40}"),
)
_KIND_OF = {f"k{place}": kind for place, (kind, _) in enumerate(_KINDS)}
# Most pieces open no figure. This check spares them a trial of every kind.
_OPENING = (
    rf"[-.\d$€£¥₹]|(?:us|ca|au|nz|hk|a|r|s)\$|{_CODE}|{_WORD}|an? |half |zero|between |from |just |shortly |mid|noon"
    rf"|minute|hour|day|week|month|quarter|year|earlier |to(?:day|night)|this |yesterday|{'|'.join(_ORDINALS[2:])}"
)
_OPENS = re.compile(_OPENING)
# Common words that open a figure only together with the next word.
_NO_OPENING = (
    rf"a (?!dozen|{_UNIT})|an (?!{_UNIT})|this (?!morning|afternoon|evening)|from (?!{_SIGN}|{_CODE})|earlier (?!today)"
    r"|(?:just|shortly) (?!after |before )|(?<!last )(?<!past )(?:minute|hour|day|week|month|quarter|year)"
)
_PLAIN = re.compile(rf"({_SUM_DIGITS})( ?(?:k\b|m\b|thousand|million))?")
_CURRENCY = re.compile(rf"{_SIGN}|{_CODE}|dollar|buck|euro|pound|rupee|reais|yen")
_CURRENCIES = {
    "us$": "$",
    "usd": "$",
    "dollar": "$",
    "buck": "$",
    "eur": "€",
    "euro": "€",
    "gbp": "£",
    "pound": "£",
    "inr": "₹",
    "rupee": "₹",
    "jpy": "¥",
    "yen": "¥",
    "brl": "r$",
    "reais": "r$",
    "cad": "ca$",
    "aud": "au$",
    "a$": "au$",
}
_SPAN = re.compile(rf"({_NUM}|{_WORD}|half|an?\b)?[\s+-]*(?:an? )?(?<![a-z])(sec|min|h|d|w|mo|mth|quarter|y)[a-z]*")

_SPAN_RANGE = re.compile(rf"({_NUM}){_TO}({_NUM})\+?[ -]?([a-z]+)")
_DIGIT = re.compile(r"\d")


def _plain_values(text: str) -> list[float]:
    """The numbers in a figure, with thousands separators, decimal commas and multiples such as "2k" resolved."""
    values: list[float] = []
    multiples: list[float] = []
    for digits, suffix in _PLAIN.findall(text):
        decimal_comma = len(digits) > 3 and digits[-3] == ","
        plain = digits.replace(".", "").replace(",", ".") if decimal_comma else digits.replace(",", "")
        values.append(float(plain))
        multiples.append({"k": 1e3, "t": 1e3, "m": 1e6}.get(suffix.strip()[:1], 1.0))
    # "1-2k" means one to two thousand
    if len(values) == 2 and multiples[0] == 1.0 and values[0] <= values[1]:
        multiples[0] = multiples[1]
    return [value * multiple for value, multiple in zip(values, multiples, strict=True)]


def _days(text: str) -> tuple[float, float] | None:
    """A duration in days: "2 years and 3 months", "2-3 weeks", "a week"."""
    ends = _SPAN_RANGE.fullmatch(text)
    if ends:
        per = _unit_days(ends[3])
        return float(ends[1].replace(",", "")) * per, float(ends[2].replace(",", "")) * per
    total = 0.0
    found = False
    for number, unit in _SPAN.findall(text):
        found = True
        amount = _WORD_VALUE.get(number) if number else 1.0
        total += (float(number.replace(",", "")) if amount is None else amount) * _unit_days(unit)
    return (total, total) if found else None


def _unit_days(unit: str) -> float:
    if unit.startswith("q"):
        return 90.0
    return _UNIT_DAYS[unit[:2]] if unit[:2] in _UNIT_DAYS else _UNIT_DAYS[unit[0]]


def _hour(text: str) -> float | None:
    """A clock time in hours from midnight, rounded to two decimals."""
    if text.endswith("midnight"):
        return 0.0
    if text.endswith(("noon", "midday")):
        return 12.0
    half = re.search(r"([ap])\.?m$", text)
    time = re.search(r"(\d{1,2})(?:[:h.](\d\d))?(?::\d\d(?:[.,]\d+)?)?(?: ?[ap]\.?m| ?hours| ?hrs| ?h|z)?$", text)
    military = re.match(r"(\d\d)(\d\d) ?h", text)
    if military:
        hour, minute = int(military[1]), int(military[2])
    elif time:
        hour, minute = int(time[1]), int(time[2] or 0)
    else:
        return None
    if half and not 1 <= hour <= 12:
        return None  # "15:30 PM" contradicts itself
    if half:
        hour = hour % 12 + (12 if half[1] == "p" else 0)
    return round(hour + minute / 60, 2) if hour < 24 else None


def _range_of(kind: str, text: str) -> tuple[float, float] | None:
    """Low and high end of a figure, or None if its parts contradict each other."""
    match kind:
        case "duration":
            return _days(text)
        case "clock":
            hour = _hour(text)
            return None if hour is None else (hour, hour)
        case "day_word" | "identifier" | "factor" | "other":
            ago = float(text == "yesterday")
            return ago, ago
        case _:
            return _counted(kind, text)


def _counted(kind: str, text: str) -> tuple[float, float] | None:
    """Low and high end of a count, a sum or a distance, in digits or in a word."""
    word = _WORD_VALUE.get(text)
    values = [word] if word is not None else _plain_values(text)
    if not values:
        return None
    low, high = values[0], values[-1] if kind.endswith("_range") else values[0]
    if kind == "distance" and re.search(r"mi(?:les?)?$", text):
        low, high = round(low * 1.609344, 2), round(high * 1.609344, 2)
    return (low, high) if low <= high else None


@cache
def _figure_regex() -> re.Pattern[str]:
    """Every kind of figure. Compiled for the first text, since it takes a while."""
    kinds = "|".join(f"(?P<k{place}>{pattern})" for place, (_, pattern) in enumerate(_KINDS))
    return re.compile(rf"(?<![\w.])(?<![a-z]-)(?<!\d,)(?!{_NO_OPENING})(?:{kinds})")


@lru_cache(maxsize=20_000)
def _opens(piece: str) -> bool:
    return _OPENS.match(piece) is not None


@lru_cache(maxsize=20_000)
def _meaning(kind: str, text: str) -> tuple[str, float, float, bool, str]:
    """Kind, low and high end, whether it is spelled out, and the currency of a figure."""
    ends = _range_of(kind, text)
    spelled = _DIGIT.search(text) is None and kind != "clock"
    currency = _CURRENCY.search(text) if kind.startswith("money") else None
    name = _CURRENCIES.get(currency[0], currency[0]) if currency else ""
    return (kind, *ends, spelled, name) if ends else ("other", 0.0, 0.0, spelled, name)


def find_figures(lowered: str) -> list[Figure]:
    """All figures of a lower-cased text, in order.

    >>> [(figure.kind, figure.low) for figure in find_figures("paid $1,250.00 at 3:15 am, account 3 weeks old")]
    [('money', 1250.0), ('clock', 3.25), ('duration', 21.0)]
    """
    figures: list[Figure] = []
    regex = _figure_regex()
    at = free = 0
    for piece in PIECE.findall(lowered):
        if at >= free and _opens(piece) and (match := regex.match(lowered, at)):
            free = match.end()
            kind, low, high, spelled, currency = _meaning(_KIND_OF[match.lastgroup or ""], match[0])
            figures.append(Figure(kind, low, high, at, free, spelled, currency))
        at += len(piece)
    return figures
