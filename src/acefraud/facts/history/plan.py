"""The plan of a history: which entities are remembered and for how long. Facts from history are derived from it.

And transactions as the history sees them, one by one or as columns, with their amounts and places. The batch and the
streaming computation share these measures, so that they agree to the last bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from acefraud.core.table import Codes, Flags
from acefraud.errors import ConfigurationError, InputError
from acefraud.support.arrays import FloatArray, IntArray
from acefraud.support.timestamps import UNKNOWN

HOUR = 3_600_000_000
"""In microseconds, like all times here."""
DAY = 24 * HOUR

T = TypeVar("T", int, IntArray)
_DURATION = re.compile(r"(\d{1,5})([hd])")
_FROM_LABELS = ("known_frauds", "known_fraud_share")
_ID_WORDS = frozenset({"id", "uuid", "guid", "number", "num", "no", "nr", "hash"})


def read_duration(text: str) -> int:
    """A number of hours or days, in microseconds. Raises ValueError for anything else.

    >>> read_duration("24h") == read_duration("1d")
    True
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f'expected a number of hours or days such as "24h" or "7d", got {text!r}')
    return int(match[1]) * (HOUR if match[2] == "h" else DAY)


@lru_cache(maxsize=1024)
def entity_name(column: str) -> str:
    """The name of an entity in facts, unless the plan names it.

    >>> entity_name("CUSTOMER_ID"), entity_name("cardNumber"), entity_name("ip_address"), entity_name("ID")
    ('customer', 'card', 'ip_address', 'id')
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).lower()
    words = [word for word in re.split(r"[\W_]+", snake) if word]
    return "_".join([word for word in words if word not in _ID_WORDS] or words)


EXACT = 128
"""So many latest transactions, and labels, of an entity count exactly in every window..."""
CELLS = 32
"""...and earlier ones if their cell lies wholly in the window, which is so many cells long."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window of the past: its name and its length."""

    name: str
    length: int

    @property
    def cell(self) -> int:
        """The length of its cells. They begin at whole multiples of it, the same for all entities."""
        return self.length // CELLS

    def first_whole_cell(self, time: T) -> T:
        """When the first cell begins that lies wholly in the window which ends at a time."""
        return ((time - self.length) // self.cell + 1) * self.cell


class HistoryPlan(BaseModel):
    """Which columns are entities, and how far back their history reaches.

    >>> plan = HistoryPlan(entities=("CUSTOMER_ID", "TERMINAL_ID"), windows=("24h", "7d"))
    >>> [name for name in plan.facts(amounts=False) if name.startswith("customer_")]
    ['customer_count_24h', 'customer_known_frauds_24h', 'customer_known_fraud_share_24h', 'customer_count_7d',
     'customer_known_frauds_7d', 'customer_known_fraud_share_7d', 'customer_hours_since_last',
     'customer_distinct_terminal_24h', 'customer_distinct_terminal_7d', 'customer_new_terminal']
    >>> HistoryPlan(entities=("CUSTOMER_ID",), windows=("5m",))
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: 'history.windows': expected a number of hours or days such as "24h" or "7d",
    got '5m'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    entities: tuple[str, ...] = ()
    """Columns that name customers, cards, terminals and so on; they never become facts themselves."""
    windows: tuple[str, ...] = ("1h", "24h", "7d", "30d")
    """How far back to look, each as a number of hours or days: "24h", "7d"."""
    label_delay: str = "0h"
    """How long labels take if no column says when they became known."""
    label_patience: str = "180d"
    """How long after the longest window a label is still expected."""
    category: str = ""
    """Column with the kind of purchase, for the usual amount within it."""
    latitude: str = ""
    """Columns with the place, in degrees."""
    longitude: str = ""
    pair_memory: int = Field(default=5000, ge=1)
    """After how many transactions an entity forgets another one it has met."""
    names: Mapping[str, str] = Field(default_factory=dict)
    """Column = name of its entity in facts."""

    @model_validator(mode="after")
    def _sound(self) -> HistoryPlan:
        for key in ("label_delay", "label_patience"):
            _duration(key, getattr(self, key))
        lengths = [_duration("windows", window) for window in self.windows]
        if not lengths or 0 in lengths or len(set(lengths)) < len(lengths):
            raise ConfigurationError("'history.windows': expected windows of different lengths, none of them empty")
        if bool(self.latitude) != bool(self.longitude):
            raise ConfigurationError("'history.latitude' and 'history.longitude' go together; one of them is missing")
        for column in self.names:
            if column not in self.entities:
                raise ConfigurationError(f"'history.names' names '{column}', which is none of 'history.entities'")
        _all_different("history.entities", self.entities)
        names = [self.name_of(column) for column in self.entities]
        for name in names:
            if not re.fullmatch(r"\w+", name):
                raise ConfigurationError(f"'history.names': expected letters, digits and '_', got '{name}'")
        _all_different("history.names", names)
        return self

    def named_columns(self) -> Iterator[tuple[str, str]]:
        """Every column of the plan, with the key that names it."""
        for column in self.entities:
            yield "history.entities", column
        for key in ("category", "latitude", "longitude"):
            if column := getattr(self, key):
                yield f"history.{key}", column

    def name_of(self, column: str) -> str:
        """The name of a column's entity in facts."""
        return self.names.get(column) or entity_name(column)

    @cached_property
    def spans(self) -> tuple[Window, ...]:
        """The windows, the shortest first."""
        spans = [Window(name, read_duration(name)) for name in self.windows]
        return tuple(sorted(spans, key=lambda span: span.length))

    @property
    def longest(self) -> Window:
        """How far back an entity is remembered."""
        return self.spans[-1]

    @cached_property
    def pair_spans(self) -> tuple[Window, ...]:
        """The windows in which distinct partners are counted: the one nearest to a day, and the longest."""
        nearest = min(self.spans, key=lambda span: abs(span.length - DAY))
        return tuple(dict.fromkeys([nearest, self.longest]))

    @cached_property
    def delay(self) -> int:
        """How long labels take if nothing says when they came."""
        return read_duration(self.label_delay)

    @cached_property
    def reach(self) -> int:
        """For how long after a transaction its label is of use and its id is known."""
        return self.longest.length + read_duration(self.label_patience)

    @property
    def has_places(self) -> bool:
        """Whether transactions have a place."""
        return bool(self.latitude)

    def others(self, column: str) -> tuple[tuple[str, str], ...]:
        """The other entities of a transaction, each with its name."""
        return tuple((other, self.name_of(other)) for other in self.entities if other != column)

    @property
    def label_facts(self) -> tuple[str, ...]:
        """The facts that depend on labels, and so on how late these arrive.

        >>> HistoryPlan(entities=("card_id",), windows=("24h",)).label_facts
        ('card_known_frauds_24h', 'card_known_fraud_share_24h')
        """
        names = map(self.name_of, self.entities)
        return tuple(f"{name}_{figure}_{span.name}" for name in names for span in self.spans for figure in _FROM_LABELS)

    def facts(self, *, amounts: bool, only: str = "") -> dict[str, Literal["number", "flag"]]:
        """Every fact of this plan with its kind, always in the same order; `only` those of the entities in a column."""
        found: dict[str, Literal["number", "flag"]] = {}
        columns = [column for column in self.entities if only in ("", column)]
        for column in columns:
            found |= dict.fromkeys(self._numbers_of(self.name_of(column), amounts=amounts), "number")
        for entity, other in ((self.name_of(column), other) for column in columns for _, other in self.others(column)):
            found |= dict.fromkeys((f"{entity}_distinct_{other}_{span.name}" for span in self.pair_spans), "number")
            found[f"{entity}_new_{other}"] = "flag"
        return found

    def _numbers_of(self, entity: str, *, amounts: bool) -> Iterator[str]:
        figures = ["sum", "mean", "max"] if amounts else []
        for span in self.spans:
            for figure in ["count", *figures, *_FROM_LABELS]:
                yield f"{entity}_{figure}_{span.name}"
        if amounts:
            yield f"{entity}_amount_to_usual"
        if amounts and self.category:
            yield f"{entity}_amount_to_usual_in_category"
        yield f"{entity}_hours_since_last"
        if self.has_places:
            yield f"{entity}_km_from_last"
            yield f"{entity}_kmh_from_last"


def _duration(key: str, text: str) -> int:
    try:
        return read_duration(text)
    except ValueError as problem:
        raise ConfigurationError(f"'history.{key}': {problem}") from None


def _all_different(key: str, names: tuple[str, ...] | list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"'{key}': two entities are called '{name}'")


UNITS = 10_000
"""Amounts are summed as whole ten-thousandths, so that a sum is the same in any order."""
MOST = 1e11
"""Larger amounts count as unknown: their sums would not fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One transaction: when, how much, and which entities took part. Unknown values are absent or None."""

    id: str
    time_us: int | None
    amount: float | None = None
    entities: Mapping[str, str] = field(default_factory=dict)
    """The values of the entity columns, by column."""
    category: str | None = None
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True, slots=True)
class HistoryEvents:
    """Transactions as columns, in the order in which they arrived.

    Rows with the same code have the same value; -1 is unknown. Labels are 1 for fraud, 0 for none, -1 for unlabelled.
    """

    time: IntArray
    entities: Mapping[str, Codes]
    """Codes by column."""
    ids: npt.NDArray[Any]
    label: Flags
    known_at: IntArray
    """`UNKNOWN` where the label comes with the usual delay."""
    amount: FloatArray | None = None
    """None if the data has no amounts at all."""
    category: Codes | None = None
    latitude: FloatArray | None = None
    longitude: FloatArray | None = None

    def __post_init__(self) -> None:
        columns = [*self.entities.values(), self.ids, self.label, self.known_at, self.amount, self.category]
        columns += [self.latitude, self.longitude]
        if any(column is not None and len(column) != len(self) for column in columns):
            raise InputError(f"the columns of a history must all have {len(self):,} rows, like its times")

    def __len__(self) -> int:
        return len(self.time)


def amount_units(amount: float | None) -> int | None:
    """An amount in whole units, rounded to four decimals; None if it is unknown.

    >>> amount_units(12.34567), amount_units(float("nan"))
    (123457, None)
    """
    if amount is None or not abs(amount) <= MOST:
        return None
    return round(amount * UNITS)


def amounts_units(amounts: FloatArray) -> IntArray:
    """A column of amounts in whole units, `UNKNOWN` where one is unknown."""
    known = np.abs(amounts) <= MOST
    units = np.full(len(amounts), UNKNOWN, dtype=np.int64)
    units[known] = np.rint(amounts[known] * UNITS).astype(np.int64)
    return units


Place = tuple[float, float]
"""Latitude and longitude in degrees."""


def place(latitude: float | None, longitude: float | None) -> Place | None:
    """A place on earth, or None if it is unknown.

    >>> place(48.1, 11.6), place(91.0, 0.0), place(None, 0.0)
    ((48.1, 11.6), None, None)
    """
    if latitude is None or longitude is None or not (abs(latitude) <= 90 and abs(longitude) <= 180):
        return None
    return latitude, longitude
