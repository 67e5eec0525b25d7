"""Which column of a file plays which part, written down so that a person can read and correct it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from acefraud.datasets.table import FACTS
from acefraud.datasets.time_parts import TimeParts
from acefraud.errors import ConfigurationError
from acefraud.history.plan import HistoryPlan

ROLES = ("id", "time", "label", "amount", "text", "known_at", "difficulty")
_LISTS = ("known", "ignore", "numbers", "flags", "categories")

_COMMENTS = {
    "id": 'column with the id of a transaction; "" makes ids from the position',
    "time": "column with the time of a transaction",
    "time_format": '"iso", "epoch", "epoch_ms", or a pattern like "%d/%m/%Y %H:%M"',
    "label": "column that says what turned out to be true",
    "fraud_values": "values of the label that mean fraud; empty: the usual words",
    "legit_values": "values of the label that mean no fraud; empty: the usual words",
    "amount": "column that becomes the fact 'amount'",
    "text": "column with free text",
    "known_at": "column with the time at which the label became known",
    "difficulty": "column that says how hard a case is; never a fact",
    "known": "columns to keep as facts; empty: all that play no other part",
    "ignore": "columns that never become facts",
    "numbers": "columns that hold numbers",
    "flags": "columns that hold true or false",
    "categories": "columns that hold categories, even if they look like numbers",
    "rising": "facts of which more never lowers the risk",
    "falling": "facts of which more never raises the risk",
    "sensitive": "columns or facts that no language model may see; they are masked before any call",
    "rename": "column = fact name",
    "time_parts": "columns with the parts of the time, where no single column holds it",
    "time_parts.year": "",
    "time_parts.month": "as a number or by its English name",
    "time_parts.week": "week of the month",
    "time_parts.day": "day of the month; without week and day it is the first",
    "elapsed": "fact = [column with a time, column with a later time]: the seconds in between",
    "history": "what is remembered of whom, for facts with memory; no entities: nothing",
    "history.entities": "columns that say who or what; they never become facts themselves",
    "history.windows": 'how far back is looked, each as a number of hours or days: "24h", "7d"',
    "history.label_delay": "how long labels take where no column says when they became known",
    "history.label_patience": "how long after the longest window a label is still waited for",
    "history.category": "column with the kind of a purchase, for the usual amount in it",
    "history.latitude": "columns with the place, in degrees",
    "history.longitude": "",
    "history.pair_memory": "after how many transactions of an entity one that it met is forgotten",
    "history.names": "column = how its entity is called in facts",
    "why": "what the guess had in mind; read by nobody but you",
}


def _label_text(value: Any) -> Any:
    """In TOML a label may stand as 1 or true; it is compared as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


LabelText = Annotated[str, BeforeValidator(_label_text)]


class SchemaMapping(BaseModel):
    """How the columns of a file are to be read. What is not said is guessed; ``""`` says that there is none.

    >>> SchemaMapping(label="is_fraud", text="is_fraud")
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: 'label' and 'text' both name the column 'is_fraud'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str | None = None
    time: str | None = None
    time_format: str | None = None
    label: str | None = None
    fraud_values: tuple[LabelText, ...] = ()
    legit_values: tuple[LabelText, ...] = ()
    amount: str | None = None
    text: str | None = None
    known_at: str | None = None
    difficulty: str | None = None
    known: tuple[str, ...] = ()
    ignore: tuple[str, ...] | None = None
    numbers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    rising: tuple[str, ...] = ()
    falling: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    rename: Mapping[str, str] = Field(default_factory=dict)
    time_parts: TimeParts | None = None
    elapsed: Mapping[str, tuple[str, str]] = Field(default_factory=dict)
    history: HistoryPlan | None = None
    why: Mapping[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> SchemaMapping:
        parts: dict[str, str] = {}
        for role, column in self.roles():
            if column in parts:
                raise ConfigurationError(f"'{parts[column]}' and '{role}' both name the column '{column}'")
            parts[column] = role
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
        _disjoint(self, "known", "ignore")
        _disjoint(self, "rising", "falling", what="fact")
        _disjoint(self, "numbers", "flags")
        _disjoint(self, "numbers", "categories")
        _disjoint(self, "flags", "categories")
        _disjoint(self, "fraud_values", "legit_values", what="value")
        return self

    def _check_times(self, parts: Mapping[str, str]) -> None:
        """There is one time, and what is known only with the label makes no fact."""
        if self.time and self.time_parts:
            raise ConfigurationError(f"'time' names the column '{self.time}', and 'time_parts' says the time too")
        for key, column in self.named_times():
            other = parts.get(column)
            if other and not (other == "time" and key.startswith("elapsed.")):
                raise ConfigurationError(f"'{other}' and '{key}' both name the column '{column}'")

    def _check_entities(self, parts: Mapping[str, str]) -> None:
        """An entity plays no other part, and is no fact: what would be learnt of it is learnt by heart."""
        facts = {column: key for key in ("known", "numbers", "flags", "categories") for column in getattr(self, key)}
        for column in self.entities:
            other = parts.get(column) or facts.get(column) or ("rename" if column in self.rename else None)
            if other:
                raise ConfigurationError(f"'{other}' and 'history.entities' both name the column '{column}'")

    def named_times(self) -> Iterator[tuple[str, str]]:
        """The columns that hold parts of the time, and those between which time is measured."""
        if self.time_parts:
            yield from self.time_parts.named_columns()
        for fact, columns in self.elapsed.items():
            for column in columns:
                yield f"elapsed.{fact}", column

    @property
    def has_time(self) -> bool:
        """Whether it says when a transaction was."""
        return bool(self.time or self.time_parts)

    @property
    def sensitive_facts(self) -> tuple[str, ...]:
        """What is sensitive, also by the names that the facts of such columns have.

        >>> SchemaMapping(sensitive=("mail", "sum"), rename={"mail": "contact"}, amount="sum").sensitive_facts
        ('mail', 'sum', 'contact', 'amount')
        """
        renamed = {**self.rename, **({self.amount: "amount"} if self.amount else {})}
        facts = (renamed.get(column, column.removeprefix(FACTS)) for column in self.sensitive)
        return tuple(dict.fromkeys([*self.sensitive, *facts]))

    @property
    def entities(self) -> tuple[str, ...]:
        """The columns that say who or what."""
        return self.history.entities if self.history else ()

    def roles(self) -> Iterator[tuple[str, str]]:
        """The parts that are played, each with its column."""
        for role in ROLES:
            column = getattr(self, role)
            if column:
                yield role, column

    def named_columns(self) -> Iterator[tuple[str, str]]:
        """Every column that is named, with the key that names it."""
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
        """Refuse a column that the file does not have, rather than read on without it."""
        there = set(columns)
        for key, column in self.named_columns():
            if column not in there and key not in optional:
                raise ConfigurationError(
                    f"{place}: '{key}' names the column '{column}', which {file} does not have; "
                    f"its columns are: {', '.join(columns)}"
                )

    def only(self, columns: Collection[str]) -> SchemaMapping:
        """What it says of these columns; the rest is left to be guessed.

        >>> SchemaMapping(label="class", text="", numbers=("a", "b")).only(["a", "text"]).numbers
        ('a',)
        """
        changes: dict[str, Any] = {role: None for role in ROLES if getattr(self, role) not in columns}
        changes |= {key: tuple(one for one in getattr(self, key) or () if one in columns) for key in _LISTS}
        changes["rename"] = {column: fact for column, fact in self.rename.items() if column in columns}
        changes["elapsed"] = {fact: pair for fact, pair in self.elapsed.items() if set(pair) <= set(columns)}
        if self.time_parts and not self.time_parts.are_in(columns):
            changes["time_parts"] = None
        if self.label not in columns:
            changes |= {"fraud_values": (), "legit_values": ()}
        if self.time not in columns:
            changes["time_format"] = None
        return self.model_copy(update=changes)

    def describe(self) -> str:
        """The mapping as TOML with a comment on every key, to be saved, corrected and given back.

        >>> parse_mapping(SchemaMapping(label="class").describe()).label
        'class'
        """
        plain, tables = _written(self)
        return "".join(plain + tables)


_TABLES: dict[str, type[BaseModel]] = {"history": HistoryPlan, "time_parts": TimeParts}


def _written(model: BaseModel, path: str = "") -> tuple[list[str], list[str]]:
    """The keys of a model as TOML, and its tables, which have to follow them."""
    plain: list[str] = []
    tables: list[str] = []
    for key in type(model).model_fields:
        value, comment = getattr(model, key), _COMMENTS[f"{path}{key}"]
        said = f"# {comment}\n" if comment else ""
        if isinstance(value, BaseModel):
            keys, below = _written(value, f"{path}{key}.")
            tables += [f"\n{said}[{path}{key}]\n{''.join(keys)}", *below]
        elif isinstance(value, Mapping):
            entries = "".join(f"{_quoted(name)} = {_toml(entry)}\n" for name, entry in value.items())
            tables.append(f"\n{said}[{path}{key}]\n{entries}" if entries else "")
        elif isinstance(value, tuple):
            plain.append(f"{said}{key} = {_toml(value)}\n")
        elif value is not None:
            plain.append(f"{said}{key} = {value if isinstance(value, int) else _quoted(value)}\n")
    return plain, tables


def _disjoint(mapping: SchemaMapping, one: str, other: str, *, what: str = "column") -> None:
    for name in getattr(mapping, one) or ():
        if name in (getattr(mapping, other) or ()):
            raise ConfigurationError(f"'{one}' and '{other}' both name the {what} '{name}'")


def _toml(value: str | tuple[str, ...]) -> str:
    return _quoted(value) if isinstance(value, str) else f"[{', '.join(map(_quoted, value))}]"


def _quoted(text: str) -> str:
    """A TOML basic string: as in JSON, but that DEL has to be escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def parse_mapping(text: str, *, place: str = "mapping") -> SchemaMapping:
    """A mapping from TOML; ``place`` is how errors call it."""
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


def _first_problem(problem: ValidationError) -> str:
    first = problem.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        model = _TABLES.get(str(first["loc"][0]), SchemaMapping)
        return f"unknown key '{key}'; the keys are: {', '.join(model.model_fields)}"
    return f"key '{key}': {first['msg']}"


def load_mapping(path: Path) -> SchemaMapping:
    """A mapping from its file."""
    try:
        text = path.read_text("utf-8")
    except OSError as problem:
        raise ConfigurationError(f"{path}: the mapping cannot be read: {problem.strerror or problem}") from None
    except UnicodeDecodeError as problem:
        raise ConfigurationError(f"{path}: the mapping is not valid UTF-8 at byte {problem.start}") from None
    return parse_mapping(text, place=str(path))
