"""Short, safe text about any value: on one line, of bounded length, and with personal data masked.

A `repr` ends up in notebooks, logs and error messages, so it shows what a value is and never all that it holds. Of
facts it shows the names, and the values of numbers and flags whose name is not personal; words may name a person, so
they are left out. `html_tables` writes the tables of notebooks from the same texts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from datetime import date
from enum import Enum
from itertools import islice
from pathlib import PurePath
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from acefraud.display.redaction import MASKED, is_personal, mask_named_values, mask_patterns, pattern_of, visible

MOST = 200
"""The longest repr, in characters."""
_LOOKED_AT = 2_000
"""Of a longer text only the beginning is looked at."""
_CUT_IN_TWO = 200
"""Personal data at the end of what is looked at may go on after it, and is then not recognised: it is never shown."""
_ITEMS, _FACTS = 3, 6

ReprArgs: TypeAlias = Iterable[tuple[str | None, Any]]
"""The names and values that a repr shows; None for a value without a name."""


class Plain(str):
    """Text that is shown without quotes.

    >>> [Plain("3 facts")]
    [3 facts]
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ShortRepr:
    """Base of models and dataclasses whose repr is short and safe, and `str` with it.

    It shows the fields that differ from their defaults. A class that says it better overrides `__repr_args__`, where
    pydantic and rich look too.

    >>> @dataclasses.dataclass(repr=False)
    ... class Payment(ShortRepr):
    ...     payer: str
    ...     amounts: tuple[float, ...] = ()
    ...     note: str = ""
    >>> Payment("ann@example.org", (1.0, 2.0, 3.0, 4.0))
    Payment(payer='[email]', amounts=[1, 2, 3, … 1 more])
    """

    __slots__ = ()

    def __repr_args__(self) -> ReprArgs:
        """The names and values that are shown. A value is shown by its repr, so texts of ours are `Plain`."""
        return [(name, Plain(shown_value(value))) for name, value in _changed_fields(self)]

    def __repr__(self) -> str:
        parts = (repr(value) if name is None else f"{name}={value!r}" for name, value in self.__repr_args__())
        return shortened(f"{type(self).__name__}({', '.join(parts)}", MOST - 1) + ")"

    def __str__(self) -> str:
        return repr(self)

    def __rich_repr__(self) -> ReprArgs:
        return self.__repr_args__()


def _changed_fields(thing: object) -> Iterator[tuple[str, object]]:
    """The fields of a model or dataclass that do not have their default value."""
    if isinstance(thing, BaseModel):
        for name, info in type(thing).model_fields.items():
            value = getattr(thing, name)
            default = info.get_default(call_default_factory=True, validated_data={})
            if default is PydanticUndefined or not _same(value, default):
                yield name, value
    elif dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            value = getattr(thing, field.name)
            default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
            if field.repr and not _same(value, default):
                yield field.name, value


def _same(value: object, default: object) -> bool:
    """Whether a value is its default. Arrays and the like, which compare by element, never are."""
    return value is default or (type(value) is type(default) and (value == default) is True)


def shortened(text: str, most: int) -> str:
    """The text, cut to `most` characters.

    >>> shortened("a rule of many words", 7)
    'a rule…'
    """
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def shown_text(text: str, most: int = 60, *, hidden: Iterable[str] = ()) -> str:
    """A text on one line, with personal data and the hidden values masked, cut to `most` characters.

    >>> shown_text("User 'ann' pays\\nwith 4111111111111111 in Paris", 40)
    "User '[name]' pays with [card] in Paris"
    """
    masked = mask_patterns(mask_named_values(visible(text[:_LOOKED_AT])), also=pattern_of(hidden))
    if len(text) > _LOOKED_AT:
        masked = f"{masked[: max(0, len(masked) - _CUT_IN_TWO)]}…"
    return shortened(masked.strip(), most)


def quoted(text: object, most: int = 60, *, hidden: Iterable[str] = ()) -> str:
    """`shown_text` in quotes."""
    return repr(shown_text(str(text), most, hidden=hidden))


def shown_number(value: float) -> str:
    """A number with few digits, so that one that identifies somebody is not readable.

    >>> shown_number(0.1234567), shown_number(1250.0), shown_number(1234567.8), shown_number(4111111111111111.0)
    ('0.123457', '1250', '1234568', '4.11e+15')
    """
    try:
        if abs(value) >= 1e7:
            return f"{value:.3g}"
        return f"{value:.0f}" if abs(value) >= 1e5 else f"{value:.6g}"
    except OverflowError:
        return "a number too large to show"


def shown_value(value: object) -> str:
    """Any value as text for a repr, bounded and safe.

    >>> shown_value("ann@example.org"), shown_value({"amount": 5.0, "country": "FR"}), shown_value([1, 2])
    ("'[email]'", '{amount: 5, country}', '[1, 2]')
    """
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool | ShortRepr):
        return repr(value)
    if isinstance(value, int | float):
        return shown_number(value)
    if isinstance(value, str | PurePath):
        return quoted(value)
    if isinstance(value, date):
        return f"{value:%Y-%m-%d %H:%M:%S}".removesuffix(" 00:00:00")
    return _shown_many(value) if isinstance(value, Sized) else f"<{type(value).__name__}>"


def _shown_many(values: Sized) -> str:
    if isinstance(values, Mapping):
        return shown_facts(values)
    return shown_items(values) if isinstance(values, tuple | list | set | frozenset) else f"<{len(values):,} values>"


def shown_items(items: Collection[object], most: int = _ITEMS) -> str:
    """The first of some values, and how many there are more.

    >>> shown_items(["b-1", "b-2", "b-3"], 2)
    "['b-1', 'b-2', … 1 more]"
    """
    parts = [shortened(shown_value(item), 60) for item in islice(items, most)]
    return f"[{', '.join([*parts, *_more(len(items), most)])}]"


def shown_facts(facts: Mapping[Any, object], most: int = _FACTS) -> str:
    """The first of some facts, and how many there are more: numbers and flags with their values, words without.

    >>> shown_facts({"amount": 250.0, "vpn": True, "country": "FR", "card_number": 4111111111111111.0})
    '{amount: 250, vpn: True, country, card_number: [masked]}'
    """
    parts = [_shown_fact(str(name), value) for name, value in islice(facts.items(), most)]
    return f"{{{', '.join([*parts, *_more(len(facts), most)])}}}"


def _shown_fact(name: str, value: object) -> str:
    label = shown_text(name, 40)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{label}: {value}" if isinstance(value, bool) else label
    return f"{label}: {MASKED if is_personal(name) else shown_number(value)}"


def shown_names(names: Collection[str], most: int = _FACTS) -> str:
    """How many names there are, and the first of them.

    >>> shown_names(["amount", "vpn"]), shown_names([])
    ('2 facts: amount, vpn', 'no facts')
    """
    if not names:
        return "no facts"
    listed = ", ".join([*(shown_text(name, 40) for name in islice(names, most)), *_more(len(names), most)])
    return f"{len(names):,} fact{'s' if len(names) > 1 else ''}: {listed}"


def _more(count: int, most: int) -> list[str]:
    return [f"… {count - most:,} more"] if count > most else []


def given(value: object) -> str:
    """What was given, for an error message: its type, and a simple value with it.

    >>> given(5), given("yes"), given([1, 2])
    ('the int 5', "the str 'yes'", 'a list of 2')
    """
    if value is None:
        return "None"
    kind = type(value).__name__
    if isinstance(value, str | int | float) and not isinstance(value, ShortRepr):
        return f"the {kind} {shown_value(value)}"
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    return f"{article} {kind} of {len(value):,}" if isinstance(value, Sized) else f"{article} {kind}"
