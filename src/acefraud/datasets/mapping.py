"""Which column of a file plays which part, written down so that a person can read and correct it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from acefraud.errors import ConfigurationError

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
    "rename": "column = fact name",
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
    rename: Mapping[str, str] = Field(default_factory=dict)
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
        _disjoint(self, "known", "ignore")
        _disjoint(self, "numbers", "flags")
        _disjoint(self, "numbers", "categories")
        _disjoint(self, "flags", "categories")
        _disjoint(self, "fraud_values", "legit_values", what="value")
        return self

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
        plain, tables = [], []
        for key in type(self).model_fields:
            value = getattr(self, key)
            if value is None:
                continue
            if isinstance(value, Mapping):
                entries = "".join(f"{_quoted(name)} = {_quoted(text)}\n" for name, text in value.items())
                tables.append(f"\n# {_COMMENTS[key]}\n[{key}]\n{entries}" if entries else "")
            elif isinstance(value, tuple):
                plain.append(f"# {_COMMENTS[key]}\n{key} = [{', '.join(map(_quoted, value))}]\n")
            else:
                plain.append(f"# {_COMMENTS[key]}\n{key} = {_quoted(value)}\n")
        return "".join(plain + tables)


def _disjoint(mapping: SchemaMapping, one: str, other: str, *, what: str = "column") -> None:
    for name in getattr(mapping, one) or ():
        if name in (getattr(mapping, other) or ()):
            raise ConfigurationError(f"'{one}' and '{other}' both name the {what} '{name}'")


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
        return f"unknown key '{key}'; the keys are: {', '.join(SchemaMapping.model_fields)}"
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
