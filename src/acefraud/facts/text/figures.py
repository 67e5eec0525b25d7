"""Figures: the numbers, sums, times and durations in a text, each with its kind and value.

In a document, one marker character replaces each figure. So a pattern can say "all under {money}" without knowing the
many ways to write two hundred dollars.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Annotated, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel

from acefraud.support.package_data import read_package_toml

T = TypeVar("T")

PatternText = Annotated[str, AfterValidator(lambda text: re.sub(r"^ +|\n *", "", text))]
"""A pattern in a vocabulary file. Line breaks are ignored, together with the indentation after them."""


def read_vocabulary(name: str, expected: type[T]) -> T:
    """The content of a vocabulary file."""
    return read_package_toml("acefraud.facts.text", f"vocabulary/{name}.toml", expected)


def fill(pattern: str, parts: dict[str, str]) -> str:
    """A pattern with the parts that it names. A part may name parts that come before it."""
    for name, part in reversed(parts.items()):
        pattern = pattern.replace(f"{{{name}}}", part)
    return pattern


PIECE = re.compile(r"\w+\W?|\W")
"""A word with the character after it, or a single sign. A figure or a pattern can only begin where a piece does."""


class _FigureWords(BaseModel, extra="forbid"):
    """The content of ``vocabulary/figures.toml``, which explains the keys."""

    markers: list[str]
    kinds: list[tuple[str, PatternText]]
    placeholders: dict[str, PatternText]
    values: dict[str, float]
    unit_seconds: dict[str, int]
    currencies: dict[str, str]
    parts: dict[str, PatternText]


FIGURE_WORDS = read_vocabulary("figures", _FigureWords)
# One private-use character per kind. A document removes such characters from the text first.
MARKERS = {kind: chr(0xE000 + index) for index, kind in enumerate(FIGURE_WORDS.markers)}
ALL_MARKERS = f"{MARKERS['money']}-{MARKERS['identifier']}"
"""The range of the markers, for a set of characters in a pattern."""


class MarkedFigure(NamedTuple):
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


_OPENS, _PLAIN, _CURRENCY, _SPAN, _SPAN_RANGE = (
    re.compile(fill(FIGURE_WORDS.parts[name], FIGURE_WORDS.parts))
    for name in ("opening", "plain", "currency", "span", "span_range")
)
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
        amount = FIGURE_WORDS.values.get(number) if number else 1.0
        total += (float(number.replace(",", "")) if amount is None else amount) * _unit_days(unit)
    return (total, total) if found else None


def _unit_days(unit: str) -> float:
    return (FIGURE_WORDS.unit_seconds.get(unit[:2]) or FIGURE_WORDS.unit_seconds[unit[0]]) / 86_400


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
    word = FIGURE_WORDS.values.get(text)
    values = [word] if word is not None else _plain_values(text)
    if not values:
        return None
    low, high = values[0], values[-1] if kind.endswith("_range") else values[0]
    if kind == "distance" and re.search(r"mi(?:les?)?$", text):
        low, high = round(low * 1.609344, 2), round(high * 1.609344, 2)
    return (low, high) if low <= high else None


_KINDS: dict[str | None, str] = {f"k{index}": kind for index, (kind, _) in enumerate(FIGURE_WORDS.kinds)}


@cache
def _figure_regex() -> re.Pattern[str]:
    """Every kind of figure. Compiled for the first text, since it takes a while."""
    kinds = "|".join(f"(?P<k{index}>{pattern})" for index, (_, pattern) in enumerate(FIGURE_WORDS.kinds))
    return re.compile(fill(rf"(?<![\w.])(?<![a-z]-)(?<!\d,)(?!{{no_opening}})(?:{kinds})", FIGURE_WORDS.parts))


@lru_cache(maxsize=20_000)
def _opens(piece: str) -> bool:
    return _OPENS.match(piece) is not None


@lru_cache(maxsize=20_000)
def _meaning(kind: str, text: str) -> tuple[str, float, float, bool, str]:
    """Kind, low and high end, whether it is spelled out, and the currency of a figure."""
    ends = _range_of(kind, text)
    spelled = _DIGIT.search(text) is None and kind != "clock"
    currency = _CURRENCY.search(text) if kind.startswith("money") else None
    name = FIGURE_WORDS.currencies.get(currency[0], currency[0]) if currency else ""
    return (kind, *ends, spelled, name) if ends else ("other", 0.0, 0.0, spelled, name)


class MarkedText(NamedTuple):
    """A text with a marker in place of each figure: its pieces, the figures, and where their markers are."""

    pieces: list[str]
    figures: list[MarkedFigure]
    places: list[int]


def mark_figures(lowered: str) -> MarkedText:
    """A lower-cased text with all its figures found.

    >>> marked = mark_figures("paid $1,250.00 at 3:15 am, account 3 weeks old")
    >>> [(figure.kind, figure.low) for figure in marked.figures]
    [('money', 1250.0), ('clock', 3.25), ('duration', 21.0)]
    """
    marked = MarkedText([], [], [])
    pieces, figures, places = marked
    regex = _figure_regex()
    at = free = dropped = 0
    for piece in PIECE.findall(lowered):
        end = at + len(piece)
        if at >= free and _opens(piece) and (match := regex.match(lowered, at)):
            free = match.end()
            kind, low, high, spelled, currency = _meaning(_KINDS[match.lastgroup], match[0])
            figures.append(MarkedFigure(kind, low, high, at, free, spelled, currency))
            places.append(at - dropped)
            pieces.append(MARKERS[kind])
            dropped += free - at - 1
        if at >= free:
            pieces.append(piece)
        elif end > free:  # a figure can end within a piece
            pieces.append(lowered[free:end])
        at = end
    return marked
