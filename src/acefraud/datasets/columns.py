"""What the readers of columns share: cells as plain text, what names say, labels, and times in all usual formats.

Times are in one column, in several, or the time between two. Naive times are UTC.
"""

from __future__ import annotations

import re
import unicodedata
from calendar import month_name, monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import polars as pl

from acefraud.core.table import Flags
from acefraud.datasets.mapping import SchemaMapping, TimeParts
from acefraud.datasets.table import FACTS, Column
from acefraud.facts.time_facts import DAY
from acefraud.support.arrays import FloatArray, IntArray
from acefraud.support.package_data import read_package_toml
from acefraud.support.timestamps import UNKNOWN, micros_of

BadCells = list[tuple[int, str]]
"""Rows with what is wrong in them."""
HEAD = 2000
"""Rows to look at where a sample is enough."""
T = TypeVar("T")
UNKNOWN_WORDS = frozenset({"na", "n/a", "n.a.", "#n/a", "#nv", "null", "-", "--", "–", "—", "?", "none"}) | frozenset(
    # of German, Spanish, French and Italian exports
    {"k.a.", "k. a.", "n.v.", "n. v.", "s/d", "n/d", "n.d.", "n. d.", "nc"}
)
"""What people and programs write, in any case, where there is no value."""


def folded(text: str) -> str:
    """A text without case and accents, so that ``SÍ`` and ``si`` are the same word.

    >>> folded("Rückbuchung"), folded("Não"), folded("Straße")
    ('ruckbuchung', 'nao', 'strasse')
    """
    if text.isascii():
        return text.lower()
    return "".join(sign for sign in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(sign))


def plain_text(column: Column) -> pl.Series:
    """Cells as trimmed text, null where empty: the form in which ids, labels and times are read.

    >>> plain_text([7, " x ", None, True, ""]).to_list()
    ['7', 'x', None, 'true', None]
    """
    if isinstance(column, list) or column.dtype.is_nested() or column.dtype == pl.Object:
        cells = column if isinstance(column, list) else column.to_list()
        return pl.Series([plain_cell(value) for value in cells], dtype=pl.String)
    is_float = column.dtype.is_float()
    text = (column.fill_nan(None) if is_float else column).cast(pl.String, strict=False)
    if is_float:
        text = text.str.replace(r"\.0$", "")
    text = text.str.strip_chars()
    return text.set(text == "", None)


def plain_cell(value: Any) -> str | None:
    """One cell as `plain_text` gives it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() or None


def json_column(name: str, values: list[Any]) -> Column:
    """A series if one type fits all, so that it can be read column-wise; else the cells as they are."""
    types = {type(value) for value in values} - {type(None)}
    if len(types) != 1:
        return values
    (only,) = types
    if only is int and any(value is not None and abs(value) >= 2**53 for value in values):
        return values
    dtype = {str: pl.String, bool: pl.Boolean, int: pl.Int64, float: pl.Float64}.get(only)
    return values if dtype is None else pl.Series(name, values, dtype=dtype)


def thinned(column: Column) -> Column:
    """Cells from all over a column, as many as a guess needs."""
    return column[:: max(1, len(column) // HEAD)]


def is_null_word(text: str | None) -> bool:
    """Whether a text only says that there is none."""
    return text is None or text.casefold() in UNKNOWN_WORDS


def unknown_words(column: Column) -> pl.Series:
    """Whether each cell holds a word that only says that there is no value. An empty cell holds none.

    >>> unknown_words(pl.Series(["5", " N/A ", "", None])).to_list()
    [False, True, False, False]
    """
    if isinstance(column, pl.Series) and column.dtype != pl.String:
        return pl.repeat(False, len(column), eager=True)
    texts = [cell if isinstance(cell, str) else None for cell in column] if isinstance(column, list) else column
    words = pl.Series(texts, dtype=pl.String).str.strip_chars().str.to_lowercase()
    return words.is_in(UNKNOWN_WORDS).fill_null(False)


def distinct_cells(column: Column) -> tuple[Column, IntArray]:
    """The cells that have to be read, and for each row the place of its own among them.

    Mixed, nested and fractional cells come as they are: they are unhashable, or equal without being written alike.

    >>> cells, places = distinct_cells(pl.Series(["web", None, "web"]))
    >>> cells.to_list(), places.tolist()
    (['web', None], [0, 1, 0])
    """
    if isinstance(column, list):
        return column, np.arange(len(column))
    dtype = column.dtype
    if dtype in (pl.String, pl.Boolean) or dtype.is_integer() or dtype.is_temporal():
        return distinct_values(column)
    return column, np.arange(len(column))


def distinct_values(column: pl.Series) -> tuple[pl.Series, IntArray]:
    """The distinct values of a column whose cells can be compared, and for each row the place of its own."""
    values = column.unique(maintain_order=True)
    places = pl.DataFrame({"cell": values, "place": np.arange(len(values))})
    joined = pl.DataFrame({"cell": column}).join(places, on="cell", how="left", nulls_equal=True, maintain_order="left")
    return values, joined["place"].to_numpy()


def read_distinct(
    column: Column, read: Callable[[str | None], T | None], expected: Callable[[str], str]
) -> tuple[list[T | None], IntArray, BadCells]:
    """What ``read`` makes of each distinct text, for each row the place of its own, and the cells it cannot read."""
    texts, places = distinct_values(plain_text(column))
    found = [read(text) for text in texts]
    bad = [
        (at, expected(text))
        for at, (text, value) in enumerate(zip(texts, found, strict=True))
        if value is None and not is_null_word(text)
    ]
    return found, places, spread(bad, places)


def spread(bad: Sequence[tuple[int, str]], places: IntArray) -> BadCells:
    """The bad rows: what is wrong with a distinct cell is wrong with every row that holds it.

    >>> spread([(1, "expected a number, got 'x'")], np.array([0, 1, 1]))
    [(1, "expected a number, got 'x'"), (2, "expected a number, got 'x'")]
    """
    if not bad:
        return []
    messages: dict[int, str] = {}
    for cell, message in bad:
        messages.setdefault(cell, message)
    rows = np.flatnonzero(np.isin(places, list(messages)))
    return [(int(row), messages[int(places[row])]) for row in rows]


USUAL_WORDS = read_package_toml("acefraud.datasets", "usual_words.toml", dict[str, dict[str, tuple[str, ...]]])


# --- labels

USUAL = "expected a label such as 0/1, yes/no, fraud/legit or APPROVE/DECLINE"


def label_word(value: object) -> str:
    """A label in the form in which labels are compared.

    >>> label_word(" Charged-Back "), label_word(1.0), label_word(True)
    ('charged back', '1', 'true')
    """
    text = folded(str(value).strip())
    word = re.sub(r"[\s_-]+", " ", text).strip() or text
    return word[:-2] if re.fullmatch(r"\d+\.0", word) else word


FRAUD_WORDS, LEGIT_WORDS = (frozenset(map(label_word, USUAL_WORDS["labels"][side])) for side in ("fraud", "legit"))


class LabelReader:
    """Reads labels by the usual words, or by what a mapping says counts as fraud and what as not.

    If only one side is listed, the usual words stand for the other. A value on neither side is never guessed. An empty
    cell, or one that says that there is none, is no label yet, unless it is listed: ``legit=[""]``.

    >>> LabelReader()("DECLINE"), LabelReader()("genuine"), LabelReader()("maybe")
    (True, False, None)
    >>> LabelReader(fraud=["2", "3"])("3"), LabelReader(fraud=["2", "3"])("0"), LabelReader(fraud=["2", "3"])("1")
    (True, False, None)
    """

    def __init__(self, fraud: Sequence[str] = (), legit: Sequence[str] = ()) -> None:
        self.is_given = bool(fraud or legit)
        asked_fraud, asked_legit = {label_word(v) for v in fraud}, {label_word(v) for v in legit}
        self._fraud = asked_fraud or (FRAUD_WORDS - asked_legit)
        self._legit = asked_legit or (LEGIT_WORDS - asked_fraud)

    def __call__(self, value: object) -> bool | None:
        word = "" if value is None else label_word(value)
        if word in self._fraud:
            return True
        return False if word in self._legit else None

    def expected(self, value: object) -> str:
        """The message for a label that is neither."""
        wanted = USUAL
        if self.is_given:
            wanted = f"expected a fraud value ({_some(self._fraud)}) or a legit value ({_some(self._legit)})"
        return f"{wanted}, got {str(value)[:60]!r}"


def _some(words: frozenset[str] | set[str]) -> str:
    return ", ".join(word or '""' for word in sorted(words)[:5]) + (", ..." if len(words) > 5 else "")


def read_labels(column: Column, reader: LabelReader) -> tuple[Flags, BadCells]:
    """1 for fraud, 0 for legitimate, -1 where there is no label yet; and the cells that cannot be read.

    >>> labels, bad = read_labels(["fraud", None, "0", "maybe"], LabelReader(["fraud"], ["0"]))
    >>> labels.tolist(), bad
    ([1, -1, 0, -1], [(3, "expected a fraud value (fraud) or a legit value (0), got 'maybe'")])
    """
    words = {text and label_word(text) for text in plain_text(column).unique()}
    if words == {"f", None} and not reader.is_given:  # "fraud" as likely as "false"
        reader = LabelReader(legit=sorted(LEGIT_WORDS - {"f"}))
    found, places, bad = read_distinct(column, reader, reader.expected)
    return np.array([-1 if is_fraud is None else is_fraud for is_fraud in found], dtype=np.int8)[places], bad


# --- what the name of a column says

_ENTITY = re.compile(
    r"(?:^|_)(?:id|uuid|guid|iban|e_?mail|ip|ip_address)$"
    r"|(?:^|_)(?:card|cc|account|acct|policy|phone|iban|passport|ssn)_?(?:number|num|no|nr|hash)$"
)
_ENTITIES, _NUMBERS, _IDS = (
    frozenset(map(folded, USUAL_WORDS["entities"][key])) for key in ("words", "numbers", "ids")
)
_COMPOUND = re.compile(rf"(\w{{3,}})(?:{'|'.join(map(folded, USUAL_WORDS['entities']['endings']))})")
_ASKING, _ANSWERED = frozenset({"is", "has", "was"}), frozenset({"flag", "indicator", "yn", "bool"})
_NUMBERED = re.compile(r"\w{3,}(?:nummer|nr|id|kennung)")


def plain_name(column: str) -> str:
    """A name without case, accents and punctuation, so that ``isFraud`` and ``is_fraud`` are the same.

    >>> plain_name("TX_Fraud"), plain_name("FraudFound_P"), plain_name("Rückbuchung?")
    ('txfraud', 'fraudfoundp', 'ruckbuchung')
    """
    return re.sub(r"[^0-9a-z]+", "", folded(column))


def name_parts(column: str) -> list[str]:
    """The words that a name is made of.

    >>> name_parts("customer.ageOfAccount_days"), name_parts("Geräte-ID")
    (['customer', 'age', 'of', 'account', 'days'], ['gerate', 'id'])
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column.removeprefix(FACTS))
    return [part for part in re.split(r"[^0-9a-z]+", folded(snake)) if part]


def names_an_id(column: str) -> bool:
    """Whether the name of a column says that it holds ids.

    >>> names_an_id("customer_id"), names_an_id("CustomerID"), names_an_id("Kundennummer"), names_an_id("paid")
    (True, True, True, False)
    """
    parts = name_parts(column)
    if _ENTITY.search("_".join(parts)) is not None:
        return not names_a_flag(column)
    return names_an_entity(column) and bool(_NUMBERS & set(parts) or any(map(_COMPOUND.fullmatch, parts)))


def names_a_flag(column: str) -> bool:
    """Whether a name asks a question that has the answer yes or no.

    >>> names_a_flag("is_overnight"), names_a_flag("has_ip"), names_a_flag("issuer_flag"), names_a_flag("items")
    (True, True, True, False)
    """
    parts = name_parts(column) or [""]
    return parts[0] in _ASKING or parts[-1] in _ANSWERED


def names_a_transaction(column: str) -> bool:
    """Whether a name says that a column holds ids, and not those of an entity.

    >>> [names_a_transaction(name) for name in ("Zahlungs-Nr", "Auftragsnummer", "ref_pago", "Kundennummer", "Betrag")]
    [True, True, True, False, False]
    """
    parts = name_parts(column)
    return not names_an_entity(column) and any(part in _IDS or _NUMBERED.fullmatch(part) for part in parts)


def names_an_entity(column: str) -> bool:
    """Whether a name consists of words for an entity, such as a customer, a card or a device, in a known language.

    >>> [names_an_entity(name) for name in ("Customer", "Kartennummer", "número de tarjeta", "N° client", "Card type")]
    [True, True, True, True, False]
    """
    parts = [part for part in name_parts(column) if part not in _NUMBERS]
    whole = [
        compound[1] if part not in _ENTITIES and (compound := _COMPOUND.fullmatch(part)) else part for part in parts
    ]
    return bool(whole) and all(part in _ENTITIES for part in whole)


_AFTERWARDS = tuple(map(plain_name, USUAL_WORDS["leaks"]["names"]))
_BEFOREHAND = frozenset(map(folded, USUAL_WORDS["leaks"]["beforehand"]))


def names_what_comes_after(column: str) -> bool:
    """Whether a name says that a column is filled after the fact. What came before the transaction is none.

    >>> names_what_comes_after("Rückbuchungsgrund"), names_what_comes_after("refunds_last_90_days")
    (True, False)
    """
    plain = plain_name(column)
    return any(word in plain for word in _AFTERWARDS) and not _BEFOREHAND & set(name_parts(column))


# --- times

ISO = "iso"
EPOCH = "epoch"
EPOCH_MS = "epoch_ms"
_DAYS, _NAMED_DAYS, _CLOCKS, _COMPACT, _FILLERS = USUAL_WORDS["dates"].values()
_MONTH_NAMES = {name: int(month) for month, names in USUAL_WORDS["months"].items() for name in names}
_SHAPES = (
    (r"\d\s*[/.-]\s*[-+]?\d", _DAYS),
    ("(?i)" + "|".join(sorted({name[:3] for name in _MONTH_NAMES})), _NAMED_DAYS),
)
"""What is in every cell that these can read. Trying all of them on a column of words takes long."""
_EARLIEST = micros_of(datetime(1900, 1, 1, tzinfo=UTC))
_TIMES_LOOKED_AT = 1000
_SLIPS = 0.05
"""Up to this share of cells that need the other order of day and month, they are slips and make bad rows."""
_BEGINNINGS = [(folded(name)[:n], month) for name, month in _MONTH_NAMES.items() for n in range(3, len(name) + 1)]
_MONTHS = {start: month for start, month in _BEGINNINGS if {m for s, m in _BEGINNINGS if s == start} == {month}}
_HALF_DAY = re.compile(r"\b([ap])\.?\s?m\.?$")
_ZONE = re.compile(r" ([-+]\d\d:?\d\d)$")
_MISSING = 0
_TIME_PARTS = {
    "year": (range(1900, 2101), "a year from 1900 to 2100"),
    "month": (range(1, 13), "a month as 1 to 12 or by its name"),
    "week": (range(1, 7), "a week of the month from 1 to 6"),
    "day": (range(1, 32), "a day of the month from 1 to 31"),
}
"""The figures that each part of a time may have, and how an error names them."""
_EXPECTED_TIMES = {
    ISO: "like 2025-01-31T14:05:00",
    EPOCH: "in seconds since 1970",
    EPOCH_MS: "in milliseconds since 1970",
}


@dataclass(frozen=True, slots=True)
class Times:
    """A column of times, the cells that cannot be read, and the format that was found."""

    values: IntArray
    bad: BadCells
    format: str
    unsure: str = ""
    """What was assumed, if every cell could be read with day and month the other way round."""
    mixed: tuple[int, str] | None = None
    """A row and what is wrong, if some cells need the day first and others the month."""


def read_times(column: Column, time_format: str | None = None, *, like: str = "") -> Times:
    """Read a column of times in the given format, or in the one that reads most of its cells.

    Where every cell can be read with day and month in either order, the order of the format ``like`` counts.

    >>> read_times(pl.Series(["2/24/15 22:55", "soon"])).bad
    [(1, "expected a time like '%m/%d/%y %H:%M', got 'soon'")]
    """
    if isinstance(column, pl.Series) and column.dtype.is_temporal():
        return Times(_stamps(column), [], time_format or ISO)
    texts = plain_text(column)
    chosen = time_format or find_format(texts, like=like) or ISO
    distinct, places = distinct_values(texts)
    values = _parse(distinct, chosen)
    shape = _EXPECTED_TIMES.get(chosen, f"like {chosen!r}")
    bad = [
        (int(at), f"expected a time {shape}, got {text[:60]!r}")
        for at in np.flatnonzero(values == UNKNOWN)
        if not is_null_word(text := distinct[int(at)])
    ]
    unsure, mixed = ("", None) if time_format else _order_of_days(distinct, values, chosen)
    if "%d" in like and "%m" in like:  # other times have said it
        unsure = ""
    if mixed:
        mixed = int(np.flatnonzero(places == mixed[0])[0]), mixed[1]
    return Times(values[places], spread(bad, places), chosen, unsure, mixed)


def _order_of_days(texts: pl.Series, values: IntArray, chosen: str) -> tuple[str, tuple[int, str] | None]:
    """Whether day and month could change places in all cells, or would have to in some."""
    day, sign, month = chosen[:2], chosen[2:3], chosen[3:5]
    if {day, month} != {"%d", "%m"} or sign not in "/-":
        return "", None
    others = _parse(texts, f"{month}{sign}{day}{chosen[5:]}")
    one, other = values != UNKNOWN, others != UNKNOWN
    words = {"%d": "day first", "%m": "month first"}
    sure, against = int((one & ~other).sum()), int((other & ~one).sum())
    if against > _SLIPS * (sure + against):
        place = int(np.flatnonzero(other & ~one)[0])
        told = f"expected {words[day]} as in other rows, got {texts[place]!r}; say which by `time_format` in a mapping"
        return "", (place, told)
    if sure or not (one & other & (values != others)).any():
        return "", None
    example = texts[int(np.flatnonzero(one & other & (values != others))[0])]
    return f"{example!r} could be day first or month first; it is read as {words[day]} ({chosen})", None


def find_format(texts: pl.Series, *, like: str = "") -> str | None:
    """The format that reads the most cells of a sample, or None if none reads any.

    The sample is spread over the column: in a file sorted by time, the first days of January can be read both ways.
    """
    present = texts.drop_nulls()
    sample = present[:: max(1, len(present) // _TIMES_LOOKED_AT)]
    if not sample.str.contains(r"\d").any():  # nearly every column of words, and most formats would be tried on it
        return None
    best, best_share = None, 0.0
    numbers = not sample.cast(pl.Float64, strict=False).has_nulls()
    # There may be thousands of columns of numbers.
    for time_format in (EPOCH, EPOCH_MS, *_COMPACT) if numbers else _formats_for(sample, like):
        share = _count_read(sample, time_format) / len(sample)
        if share > best_share:
            best, best_share = time_format, share
        if share == 1.0:
            break
    return best


def _formats_for(texts: pl.Series, like: str) -> Iterator[str]:
    """The formats that may read some of the texts, first those that begin like another."""
    yield from (EPOCH, EPOCH_MS, ISO)
    for shape, days in _SHAPES:
        if texts.str.contains(shape).any():
            ordered = sorted(days, key=lambda day: not (like and day.startswith(like[:2])))
            yield from (day + clock for day in ordered for clock in _CLOCKS)


def shared_format(column: Column, time_format: str | None) -> str | None:
    """The format of another column if it reads most cells of this one too; else None, and it has to be found.

    A single row does not tell day and month apart, so it is read like the column beside it.

    >>> shared_format(["2/1/15"], "%d/%m/%y"), shared_format(["2015-01-02"], "%d/%m/%y")
    ('%d/%m/%y', None)
    """
    sample = plain_text(_head(column)).drop_nulls()
    if time_format is None or sample.is_empty():
        return time_format
    return time_format if 2 * _count_read(sample, time_format) >= len(sample) else None


def look_like_times(column: Column, *, at_least: float = 0.95) -> bool:
    """Whether at least that share of the first cells are times.

    >>> look_like_times(["2025-01-31", "2025-02-01"]), look_like_times([0.0, 31.0])
    (True, False)
    """
    if isinstance(column, pl.Series) and column.dtype.is_temporal():
        return True
    sample = plain_text(_head(column)).drop_nulls()
    found = find_format(sample)
    return found is not None and _count_read(sample, found) >= at_least * len(sample)


def _head(column: Column) -> Column:
    """The first cells that hold something."""
    if isinstance(column, pl.Series):
        return column.drop_nulls().head(_TIMES_LOOKED_AT)
    return [cell for cell in column if cell is not None][:_TIMES_LOOKED_AT]


def _count_read(texts: pl.Series, time_format: str) -> int:
    return int(np.sum(_parse(texts, time_format) != UNKNOWN))


def _stamps(series: pl.Series) -> IntArray:
    if series.dtype == pl.Date:
        series = series.cast(pl.Datetime("us"))
    if not isinstance(series.dtype, pl.Datetime):
        return np.full(len(series), UNKNOWN, dtype=np.int64)
    stamps = series.cast(pl.Datetime("us", series.dtype.time_zone)).to_physical()  # in UTC
    return stamps.fill_null(UNKNOWN).to_numpy()


def _parse(texts: pl.Series, time_format: str) -> IntArray:
    if time_format == ISO:
        return np.array([UNKNOWN if text is None else micros_of(from_iso(text)) for text in texts], dtype=np.int64)
    if time_format in (EPOCH, EPOCH_MS):
        return _from_epoch(texts, 1 if time_format == EPOCH else 1000)
    stamps = _read_as(texts, time_format)
    worded = pl.Series(stamps == UNKNOWN) & texts.str.contains(r"\d.*[\pL,]|\pL.*\d").fill_null(False)
    if worded.any():
        plain = pl.Series([_in_english(text) for text in texts.filter(worded)], dtype=pl.String)
        stamps[worded.to_numpy()] = _read_as(plain, _in_english(time_format))
    return stamps


def _read_as(texts: pl.Series, time_format: str) -> IntArray:
    pattern = time_format.replace(".%f", "%.f")
    stamps = _stamps(texts.str.to_datetime(pattern, strict=False, ambiguous="null"))
    if pattern in _COMPACT:  # the parser takes what is shorter too
        stamps = np.where((texts.str.len_chars() == len(texts[0] or "")).fill_null(False), stamps, UNKNOWN)
    return np.where(stamps >= _EARLIEST, stamps, UNKNOWN)


@lru_cache(maxsize=10_000)
def _in_english(text: str) -> str:
    """A time, or its format, with the month in English and without the words and signs around it.

    >>> _in_english("lunes, 3 de junio de 2024, 2:05 p. m."), _in_english("1er févr. 2024"), _in_english("%d. %B %Y")
    ('3 June 2024 2:05 PM', '1 February 2024', '%d %B %Y')
    """
    if "%" in text:
        return text if "%B" not in text else re.sub(r"[\s,.-]+(?=%[BbdYy])|(?<=%d)\.", " ", text).replace("  ", " ")
    text = _HALF_DAY.sub(lambda half: f"{half[1]}M".upper(), folded(text))
    words = re.split(r"[\s,]+|(?<=\d)[.º]?(?=[a-z]{2})|(?<=\d)[-/.](?=[a-z])|(?<=[a-z])[-/.](?=\d|$)|(?<=\d)\.$", text)
    telling = [word.rstrip(".") for word in words if word and word.rstrip(".") not in _FILLERS]
    return " ".join(month_name[_MONTHS[word]] if word in _MONTHS else word for word in telling)


def from_iso(text: str) -> datetime | None:
    """A time in ISO format, in UTC; None if the text is none."""
    if "-" not in text:  # fromisoformat would read "20250131", and many ids, as a date
        return None
    try:
        value = datetime.fromisoformat(_ZONE.sub(r"\1", text).replace(" UTC", "+00:00"))
    except ValueError:
        return None
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        return None


def _from_epoch(texts: pl.Series, per_second: int) -> IntArray:
    """Only figures between the years 2000 and 2100 count; smaller ones may be seconds since anything."""
    seconds = texts.cast(pl.Float64, strict=False).to_numpy() / per_second
    plausible = (seconds >= 946_684_800) & (seconds <= 4_102_444_800)
    micros = np.full(len(seconds), UNKNOWN, dtype=np.int64)
    micros[plausible] = np.round(seconds[plausible] * 1_000_000)
    return micros


def read_time_parts(columns: Mapping[str, Column], parts: TimeParts) -> tuple[IntArray, list[tuple[str, BadCells]]]:
    """The times that the parts make, `UNKNOWN` where one is missing, and by column the cells that cannot be read.

    >>> from acefraud.support.timestamps import time_of
    >>> columns = {"Year": [1994, 1995, 1996], "Month": ["Dec", 2, "May"], "Week": [3, 5, None]}
    >>> times, _ = read_time_parts(columns, TimeParts(year="Year", month="Month", week="Week"))
    >>> [time and f"{time:%Y-%m-%d}" for time in map(time_of, times)]
    ['1994-12-15', '1995-02-28', None]
    """
    read: dict[str, IntArray] = {}
    bad: list[tuple[str, BadCells]] = []
    for part, (allowed, expected) in _TIME_PARTS.items():
        if column := getattr(parts, part):
            read[part], wrong = _read_part(columns[column], allowed, expected, _MONTHS if part == "month" else {})
            bad.append((column, wrong))
    years, months = read["year"], read["month"]
    days = read.get("day", np.ones(len(years), dtype=np.int64))
    if parts.week:
        days = np.where(read["week"] == _MISSING, _MISSING, 7 * read["week"] - 6)
    dates, places = np.unique(np.column_stack([years, months, days]), axis=0, return_inverse=True)
    made = [_date(*date, clipped=not parts.day) for date in dates.tolist()]
    beyond = [
        (at, f"expected a day of {month_name[month]} {year}, got {str(day)!r}")
        for at, (year, month, day) in enumerate(dates.tolist())
        if made[at] is None and _MISSING not in (year, month, day)
    ]
    bad.append((parts.day, spread(beyond, places)))
    return np.array([micros_of(time) for time in made], dtype=np.int64)[places], bad


def _date(year: int, month: int, day: int, *, clipped: bool) -> datetime | None:
    """The date, or None if a part is missing or the day impossible. A week beyond the month is its last day."""
    if _MISSING in (year, month, day):
        return None
    last = monthrange(year, month)[1]
    if day > last and not clipped:
        return None
    return datetime(year, month, min(day, last), tzinfo=UTC)


def _read_part(column: Column, allowed: range, expected: str, names: Mapping[str, int]) -> tuple[IntArray, BadCells]:
    """The figures of a column, given by their names or within the allowed range, and the cells that are none."""

    def read(text: str | None) -> int | None:
        number = re.fullmatch(r"(\d{1,4})(?:\.0*)?", text or "", re.ASCII)
        figure = int(number[1]) if number and int(number[1]) in allowed else None
        return names.get(folded((text or "").removesuffix("."))) or figure

    found, places, bad = read_distinct(column, read, lambda text: f"expected {expected}, got {text[:60]!r}")
    return np.array([figure or _MISSING for figure in found], dtype=np.int64)[places], bad


def read_elapsed(
    columns: Mapping[str, Column], mapping: SchemaMapping
) -> Iterator[tuple[str, FloatArray, Mapping[str, Times]]]:
    """Each elapsed fact in seconds or days, NaN where a time is missing, and the columns that were read."""
    read: dict[str, Times] = {}
    pairs = [(fact, pair, 1_000_000) for fact, pair in mapping.elapsed.items()]
    pairs += [(fact, pair, DAY) for fact, pair in mapping.days_between.items()]
    for fact, pair, unit in pairs:
        if not all(name in columns for name in pair):
            continue
        for name in pair:
            if name not in read:
                fitting = shared_format(columns[name], mapping.time_format)
                read[name] = read_times(columns[name], fitting, like=mapping.day_order)
        start, end = (read[name].values for name in pair)
        elapsed = np.where((start == UNKNOWN) | (end == UNKNOWN), np.nan, (end - start) / unit)
        yield fact, elapsed, {name: read[name] for name in pair}
