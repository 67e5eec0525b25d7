"""The mapping: which column of a file has which role, as TOML that a person can read and correct."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from acefraud.core.fact_names import Kind, words_for
from acefraud.core.outcome import MOST_SILENCE_DAYS, FeedKind
from acefraud.datasets.table import FACTS
from acefraud.display.short_repr import ShortRepr
from acefraud.errors import ConfigurationError
from acefraud.facts.history.plan import HistoryPlan

ROLES = ("id", "time", "clock", "label", "amount", "text", "known_at", "difficulty")
_LISTS = ("decimal_commas", "known", "ignore", "numbers", "flags", "marked", "categories")
KINDS: Mapping[str, Kind] = {"categories": "category", "flags": "flag", "numbers": "number"}
"""The kind of the columns that each list of a mapping holds."""
_DISJOINT = (
    ("known", "ignore", "column"),
    ("rising", "falling", "fact"),
    ("numbers", "flags", "column"),
    ("numbers", "categories", "column"),
    ("flags", "categories", "column"),
    ("fraud_values", "legit_values", "value"),
)


def _label_text(value: Any) -> Any:
    """Labels are compared as text, but TOML may have them as 1 or true."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


LabelText = Annotated[str, BeforeValidator(_label_text)]


class TimeParts(BaseModel):
    """The columns with the parts of a time. Without day and week, it is the first of the month.

    >>> TimeParts(year="Year", month="Month", week="Week", day="Day")
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: 'time_parts.week' and 'time_parts.day' exclude each other
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True)

    year: str
    month: str
    """As a number or by its name."""
    week: str = ""
    """Week of the month."""
    day: str = ""
    """Day of the month; without week and day, the first of the month."""

    @model_validator(mode="after")
    def _check(self) -> TimeParts:
        if self.week and self.day:
            raise ConfigurationError("'time_parts.week' and 'time_parts.day' exclude each other")
        owners: dict[str, str] = {}
        for key, column in self.named_columns():
            if (other := owners.setdefault(column, key)) != key:
                raise ConfigurationError(f"'{other}' and '{key}' both name the column '{column}'")
        for key in ("year", "month"):
            if not getattr(self, key):
                raise ConfigurationError(f"'time_parts.{key}': expected the name of a column")
        return self

    def are_in(self, columns: Container[str]) -> bool:
        """Whether a file has all of these columns."""
        return all(column in columns for _, column in self.named_columns())

    def named_columns(self) -> Iterator[tuple[str, str]]:
        """Every column that is named, with the key that names it."""
        for key in type(self).model_fields:
            if column := getattr(self, key):
                yield f"time_parts.{key}", column


class SchemaMapping(ShortRepr, BaseModel):
    """How the columns of a file are read. What is left out is guessed; ``""`` means that there is none.

    `describe` writes the docstring of each field as its comment.

    >>> mapping = SchemaMapping(label="chargeback", time="booked_at", rename={"ip_proxy": "vpn"}, ignore=("row",))
    >>> dict(mapping.roles())
    {'time': 'booked_at', 'label': 'chargeback'}
    >>> SchemaMapping(label="is_fraud", text="is_fraud")
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: 'label' and 'text' both name the column 'is_fraud'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True)

    id: str | None = None
    """Column with the id of a transaction; "" makes ids from the content."""
    time: str | None = None
    """Column with the time of a transaction."""
    clock: str | None = None
    """Column with the time of day, if the one with the time holds only the day."""
    time_format: str | None = None
    """One of "iso", "epoch" and "epoch_ms", or a pattern like "%d/%m/%Y %H:%M"."""
    label: str | None = None
    """Column with the label: what turned out to be true."""
    fraud_values: tuple[LabelText, ...] = ()
    """Label values that mean fraud; empty: the usual words."""
    legit_values: tuple[LabelText, ...] = ()
    """Label values that mean no fraud; empty: the usual words."""
    amount: str | None = None
    """Column that becomes the fact 'amount'."""
    text: str | None = None
    """Column with free text."""
    decimal: Literal[".", ","] | None = None
    """Decimal sign of numbers in text cells; without it, a point."""
    decimal_commas: tuple[str, ...] = ()
    """Columns with a decimal comma, in a file where others have a point."""
    known_at: str | None = None
    """Column with the time at which the label became known."""
    difficulty: str | None = None
    """Column that says how hard a case is; never a fact."""
    known: tuple[str, ...] = ()
    """Columns to keep as facts; empty: all that have no other role."""
    ignore: tuple[str, ...] | None = None
    """Columns that never become facts."""
    numbers: tuple[str, ...] = ()
    """Columns that hold numbers."""
    flags: tuple[str, ...] = ()
    """Columns that hold true or false."""
    marked: tuple[str, ...] = ()
    """Columns with a mark such as "x" for true and an empty cell for false."""
    categories: tuple[str, ...] = ()
    """Columns that hold categories, even if they look like numbers."""
    time_facts: tuple[Literal["hour", "night", "weekday", "weekend"], ...] | None = None
    """Facts made from the time: "hour", "night", "weekday" and "weekend", in UTC."""
    rising: tuple[str, ...] = ()
    """Facts where a higher value never lowers the risk."""
    falling: tuple[str, ...] = ()
    """Facts where a higher value never raises the risk."""
    sensitive: tuple[str, ...] = ()
    """Columns or facts that no language model may see; they are masked before any call."""
    rename: Mapping[str, str] = Field(default_factory=dict)
    """Column = fact name."""
    time_parts: TimeParts | None = None
    """Columns with the parts of the time, where no single column holds it."""
    elapsed: Mapping[str, tuple[str, str]] = Field(default_factory=dict)
    """Fact = [column with a time, column with a later time]: the seconds in between."""
    days_between: Mapping[str, tuple[str, str]] = Field(default_factory=dict)
    """Fact = [column with a time, column with a later time]: the days in between."""
    history: HistoryPlan | None = None
    """Entities whose past becomes facts; no entities: no history."""
    feed: FeedKind | None = None
    """How outcomes arrive: "complete", "fraud_only" or "reviewed_only"; left out, it is recognised."""
    silence_days: float | None = Field(default=None, gt=0, le=MOST_SILENCE_DAYS)
    """Days without a report after which a decision counts as legitimate; left out, silence says nothing."""
    why: Mapping[str, str] = Field(default_factory=dict)
    """Why the guess ignores a column, or what it has against one that you keep; only for you to read."""

    @model_validator(mode="after")
    def _check(self) -> SchemaMapping:
        parts: dict[str, str] = {}
        for role, column in self.roles():
            if (other := parts.setdefault(column, role)) != role:
                raise ConfigurationError(f"'{other}' and '{role}' both name the column '{column}'")
        for key in ("ignore", "known"):
            for column in getattr(self, key) or ():
                if column in parts and not (key == "known" and parts[column] == "amount"):
                    raise ConfigurationError(f"'{parts[column]}' and '{key}' both name the column '{column}'")
        if self.amount and self.rename.get(self.amount, "amount") != "amount":
            raise ConfigurationError(f"'amount' and 'rename' give the column '{self.amount}' two names")
        self._check_times(parts)
        self._check_entities(parts)
        if self.text and self.text in self.sensitive:
            raise ConfigurationError(f"'text' and 'sensitive' both name the column '{self.text}'")
        for key, other, what in _DISJOINT:
            for name in getattr(self, key) or ():
                if name in (getattr(self, other) or ()):
                    raise ConfigurationError(f"'{key}' and '{other}' both name the {what} '{name}'")
        return self

    def _check_times(self, parts: Mapping[str, str]) -> None:
        """There is one time, and columns that are known only with the label make no fact."""
        if self.time and self.time_parts:
            raise ConfigurationError(f"'time' names the column '{self.time}', and 'time_parts' says the time too")
        for key, column in self.named_times():
            other = parts.get(column)
            if other and not (other == "time" and key.startswith(("elapsed.", "days_between."))):
                raise ConfigurationError(f"'{other}' and '{key}' both name the column '{column}'")

    def _check_entities(self, parts: Mapping[str, str]) -> None:
        """An entity has no other role. It is a fact only if it is declared as a category too."""
        facts = {column: key for key in ("known", "numbers", "flags") for column in getattr(self, key)}
        for column in self.entities:
            other = parts.get(column) or facts.get(column) or ("rename" if column in self.rename else None)
            if other:
                raise ConfigurationError(f"'{other}' and 'history.entities' both name the column '{column}'")

    def named_times(self) -> Iterator[tuple[str, str]]:
        """The columns that hold parts of the time, and those between which time is measured."""
        if self.time_parts:
            yield from self.time_parts.named_columns()
        for key, pairs in (("elapsed", self.elapsed), ("days_between", self.days_between)):
            for fact, columns in pairs.items():
                for column in columns:
                    yield f"{key}.{fact}", column

    @property
    def has_time(self) -> bool:
        """Whether it names the time of a transaction."""
        return bool(self.time or self.time_parts)

    @property
    def day_order(self) -> str:
        """A format whose order of day and month counts in doubt: that of the time, or the day first with commas."""
        return self.time_format or ("%d" if self.decimal == "," or self.decimal_commas else "")

    @classmethod
    def load(cls, path: str | Path) -> SchemaMapping:
        """The mapping in a TOML file."""
        file = Path(path)
        try:
            text = file.read_text("utf-8")
        except OSError as problem:
            raise ConfigurationError(f"{file}: the mapping cannot be read: {problem.strerror or problem}") from None
        except UnicodeDecodeError as problem:
            raise ConfigurationError(f"{file}: the mapping is not valid UTF-8 at byte {problem.start}") from None
        return parse_mapping(text, place=str(file))

    def is_fraud(self, label: object) -> bool | None:
        """What a label means by this mapping, or by the usual words; None if it says nothing of it.

        >>> SchemaMapping().is_fraud("DECLINE"), SchemaMapping().is_fraud("honest"), SchemaMapping().is_fraud("b")
        (True, False, None)
        """
        from acefraud.datasets.columns import LabelReader  # noqa: PLC0415  # imports polars, which is slow to import

        return LabelReader(self.fraud_values, self.legit_values)(label)

    def facts_by_column(self, columns: Sequence[str]) -> dict[str, str]:
        """Those of the columns that become facts, each with the name of its fact.

        >>> SchemaMapping(amount="TX_AMOUNT", label="y").facts_by_column(["TX_AMOUNT", "Make", "y"])
        {'TX_AMOUNT': 'amount', 'Make': 'Make'}
        """
        used = {column for role, column in self.roles() if role != "amount"} | set(self.ignore or ())
        wanted = [name for name in columns if name not in used]
        if self.known:
            wanted = [name for name in wanted if name in self.known or name == self.amount]
        renamed = {self.amount or "": "amount", **self.rename}
        named = {name: renamed.get(name) or name.removeprefix(FACTS) for name in wanted}
        for column, fact in named.items():
            known_name = fact.lower()
            if column not in self.rename and words_for(known_name) and known_name not in named.values():
                named[column] = known_name
        owners: dict[str, str] = {}
        for column, fact in named.items():
            clash = None
            if between := next((key for key in ("elapsed", "days_between") if fact in getattr(self, key)), None):
                clash = f"the column '{column}' and '{between}'"
            elif (other := owners.setdefault(fact, column)) != column:
                clash = f"the columns '{other}' and '{column}'"
            if clash:
                raise ConfigurationError(f"mapping: {clash} both become the fact '{fact}'; rename or ignore one")
        return named

    def columns_of(self, fact: str, columns: Sequence[str]) -> list[str]:
        """Those of the columns that a fact is made from, also one that is derived from a time, a text or a history.

        >>> mapping = SchemaMapping(time="when", amount="sum", history={"entities": ("card_id",)})
        >>> columns = ["when", "sum", "card_id"]
        >>> [mapping.columns_of(fact, columns) for fact in ("amount", "night", "card_count_24h")]
        [['sum'], ['when'], ['card_id']]
        """
        own = [column for column, name in self.facts_by_column(columns).items() if name == fact]
        if own or (not self.text and fact.startswith("amount_to_usual")):
            usual = fact.replace("amount_to_usual", "usual_amount")
            return own or [*self.columns_of("amount", columns), *self.columns_of(usual, columns)]
        names = {self.history.name_of(column): column for column in self.entities} if self.history else {}
        if entities := [name for name in names if fact.startswith(f"{name}_")]:
            return [names[max(entities, key=len)]]
        parts = [column for role, column in self.named_times() if role.startswith("time_parts")]
        times = dict.fromkeys(("hour", "night", "weekday", "weekend"), (self.time, self.clock, *parts))
        made = {**(times if self.has_time else {}), **self.elapsed, **self.days_between}.get(fact, (self.text,))
        return [column for column in columns if column in made]

    @property
    def sensitive_facts(self) -> tuple[str, ...]:
        """The sensitive columns, and the facts that they become.

        >>> SchemaMapping(sensitive=("mail", "sum"), rename={"mail": "contact"}, amount="sum").sensitive_facts
        ('mail', 'sum', 'contact', 'amount')
        """
        renamed = {**self.rename, **({self.amount: "amount"} if self.amount else {})}
        facts = (renamed.get(column, column.removeprefix(FACTS)) for column in self.sensitive)
        return tuple(dict.fromkeys([*self.sensitive, *facts]))

    @property
    def names_facts(self) -> bool:
        """Whether it says which columns are facts, as the mapping of a history that was read does."""
        return bool(self.known or self.numbers or self.flags or self.categories or self.amount or self.text)

    @property
    def entities(self) -> tuple[str, ...]:
        """The columns that name entities."""
        return self.history.entities if self.history else ()

    def roles(self) -> Iterator[tuple[str, str]]:
        """The roles that are filled, each with its column.

        >>> list(SchemaMapping(label="chargeback", amount="TX_AMOUNT").roles())
        [('label', 'chargeback'), ('amount', 'TX_AMOUNT')]
        """
        for role in ROLES:
            if column := getattr(self, role):
                yield role, column

    def named_columns(self) -> Iterator[tuple[str, str]]:
        """Every column that is named, with the key that names it.

        >>> list(SchemaMapping(label="chargeback", flags=("vpn",)).named_columns())
        [('label', 'chargeback'), ('flags', 'vpn')]
        """
        yield from self.roles()
        for key in _LISTS:
            for column in getattr(self, key) or ():
                yield key, column
        for column in self.rename:
            yield "rename", column
        yield from self.named_times()
        if self.history:
            yield from self.history.named_columns()

    def require_columns(
        self, columns: Sequence[str], *, file: str, place: str = "mapping", optional: frozenset[str] = frozenset()
    ) -> None:
        """Raise an error for a column that the file does not have.

        >>> SchemaMapping(label="chargeback").require_columns(["id", "amount"], file="orders.csv")
        Traceback (most recent call last):
        acefraud.errors.ConfigurationError: mapping: 'label' names the column 'chargeback', which orders.csv does not
        have; its columns are: id, amount
        """
        there = set(columns)
        for key, column in self.named_columns():
            if column not in there and key not in optional:
                raise ConfigurationError(
                    f"{place}: '{key}' names the column '{column}', which {file} does not have; "
                    f"its columns are: {', '.join(columns)}"
                )

    def only(self, columns: Collection[str]) -> SchemaMapping:
        """The part of the mapping that concerns these columns; the rest is left to be guessed.

        >>> SchemaMapping(label="class", text="", numbers=("a", "b")).only(["a", "text"]).numbers
        ('a',)
        """
        changes: dict[str, Any] = {role: None for role in ROLES if getattr(self, role) not in columns}
        changes |= {key: tuple(name for name in getattr(self, key) or () if name in columns) for key in _LISTS}
        changes["rename"] = {column: fact for column, fact in self.rename.items() if column in columns}
        for key in ("elapsed", "days_between"):
            changes[key] = {fact: pair for fact, pair in getattr(self, key).items() if set(pair) <= set(columns)}
        if self.time_parts and not self.time_parts.are_in(columns):
            changes["time_parts"] = None
        if self.label not in columns:
            changes |= {"fraud_values": (), "legit_values": ()}
        if self.time not in columns:
            changes["time_format"] = None
        return self.model_copy(update=changes)

    def describe(self, *, beside: SchemaMapping | None = None) -> str:
        """The mapping as TOML with a comment on every key, to save, correct and pass back.

        ``beside`` another one, only what that leaves open.

        >>> print(*SchemaMapping(label="chargeback", fraud_values=("yes",)).describe().splitlines()[:4], sep="\\n")
        # Column with the label: what turned out to be true.
        label = "chargeback"
        # Label values that mean fraud; empty: the usual words.
        fraud_values = ["yes"]
        >>> from acefraud.datasets import parse_mapping
        >>> parse_mapping(SchemaMapping(label="class").describe()).label
        'class'
        """
        keys, tables = _as_toml(self, beside=beside)
        return "".join(keys + tables)


def _as_toml(model: BaseModel, path: str = "", *, beside: BaseModel | None = None) -> tuple[list[str], list[str]]:
    """The keys of a model as TOML, and its tables, which have to follow them."""
    keys: list[str] = []
    tables: list[str] = []
    for key, field in type(model).model_fields.items():
        value = getattr(model, key)
        if beside is not None and value == getattr(beside, key):
            continue
        comment = f"# {field.description}\n" if field.description else ""
        if isinstance(value, BaseModel):
            inner, below = _as_toml(value, f"{path}{key}.")
            tables += [f"\n{comment}[{path}{key}]\n{''.join(inner)}", *below]
        elif isinstance(value, Mapping):
            entries = "".join(f"{_quoted(name)} = {_toml(entry)}\n" for name, entry in value.items())
            tables.append(f"\n{comment}[{path}{key}]\n{entries}" if entries else "")
        elif isinstance(value, tuple):
            keys.append(f"{comment}{key} = {_toml(value)}\n")
        elif value is not None:
            keys.append(f"{comment}{key} = {value if isinstance(value, int) else _quoted(value)}\n")
    return keys, tables


def _toml(value: str | tuple[str, ...]) -> str:
    return _quoted(value) if isinstance(value, str) else f"[{', '.join(map(_quoted, value))}]"


def _quoted(text: str) -> str:
    """A TOML basic string: as in JSON, but DEL has to be escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def parse_mapping(text: str, *, place: str = "mapping") -> SchemaMapping:
    """A mapping from TOML; ``place`` names it in errors."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as broken:
        raise ConfigurationError(f"{place}: not valid TOML: {broken}") from None
    try:
        return SchemaMapping(**content)
    except ConfigurationError as problem:
        raise ConfigurationError(f"{place}: {problem}") from None
    except ValidationError as problem:
        raise ConfigurationError(f"{place}: {_first_problem(problem)}") from None


@lru_cache(maxsize=16)
def mapping_of(written: str) -> SchemaMapping | None:
    """The mapping that a playbook was trained with, from its TOML; None if there was none."""
    return parse_mapping(written, place="the mapping this playbook was trained with") if written else None


def _first_problem(problem: ValidationError) -> str:
    first = problem.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        tables: dict[str, type[BaseModel]] = {"history": HistoryPlan, "time_parts": TimeParts}
        model = tables.get(str(first["loc"][0]), SchemaMapping)
        return f"unknown key '{key}'; the keys are: {', '.join(model.model_fields)}"
    return f"key '{key}': {first['msg']}"


def with_given(given: SchemaMapping | None, earlier: SchemaMapping | None) -> SchemaMapping | None:
    """An earlier mapping, with what is given for columns added and put in its place; None if there is neither."""
    if given is None or earlier is None:
        return given or earlier
    own = {key: getattr(given, key) for key in given.model_fields_set}
    moved = set(given.named_columns()) - set(earlier.named_columns())
    gone = {column for _, column in moved} | {getattr(earlier, key) for key, _ in moved if key in ROLES}
    kept = earlier.only([column for _, column in earlier.named_columns() if column not in gone])
    lists = {key: (*dict.fromkeys([*(getattr(kept, key) or ()), *(own[key] or ())]),) for key in _LISTS if key in own}
    return kept.model_copy(update=own | lists)


def declared_kind(mapping: SchemaMapping, column: str) -> Kind | None:
    """The kind that the mapping gives a column, or None."""
    listed = (kind for key, kind in KINDS.items() if column in getattr(mapping, key))
    return next(listed, "number" if column == mapping.amount else None)
