"""Pydantic models: its errors in our words, and models of values that were validated before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError

from acefraud.display.short_repr import given, shown_text
from acefraud.errors import InputError, StoreError
from acefraud.support.arguments import nearest

T = TypeVar("T")
_TIME: Final = "expected a time such as 2026-03-01T02:14:00Z"
_OBJECT: Final = "expected a JSON object"
_WORDS: Final[Mapping[str, str]] = {
    "bool_parsing": "expected true or false",
    "bool_type": "expected true or false",
    "datetime_from_date_parsing": _TIME,
    "datetime_object_invalid": _TIME,
    "datetime_parsing": _TIME,
    "datetime_type": _TIME,
    "dict_type": _OBJECT,
    "finite_number": "expected a finite number",
    "float_parsing": "expected a number",
    "float_type": "expected a number",
    "greater_than": "expected a number above {gt:,.16g}",
    "greater_than_equal": "expected a number of at least {ge:,.16g}",
    "int_from_float": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_parsing_size": "expected a smaller whole number",
    "int_type": "expected a whole number",
    "less_than": "expected a number below {lt:,.16g}",
    "less_than_equal": "expected a number of at most {le:,.16g}",
    "list_type": "expected a list",
    "mapping_type": _OBJECT,
    "missing": "this field is missing",
    "model_attributes_type": _OBJECT,
    "model_type": _OBJECT,
    "string_pattern_mismatch": "expected a text of the form {pattern}",
    "string_too_long": "expected at most {max_length:,} characters",
    "string_type": "expected a text",
    "string_unicode": "expected valid UTF-8",
    "too_long": "expected at most {max_length:,} of them",
    "tuple_type": "expected a list",
}
"""By the type of the error. The names in braces are those of its context."""


def _choices(context: Mapping[str, Any]) -> str:
    return f"expected {context['expected']}".replace("'", '"')


def _at_least(least: int, one: str, many: str) -> str:
    return f"expected {one}" if least == 1 else f"expected at least {least:,} {many}"


_FROM_CONTEXT: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "enum": _choices,
    "literal_error": _choices,
    "string_too_short": lambda context: _at_least(context["min_length"], "a text that is not empty", "characters"),
    "too_short": lambda context: _at_least(context["min_length"], "at least one", "of them"),
    "value_error": lambda context: str(context["error"]),
}
_WITHOUT_VALUE: Final = frozenset({"missing", "extra_forbidden"})
"""Errors of which the given value says nothing."""


class Misfit(NamedTuple):
    """What is wrong with which field."""

    field: str
    """The names of the fields on the way to it, joined by dots; empty if it is the whole."""
    message: str


def misfit(error: Mapping[str, Any], shape: Any) -> Misfit:
    """What an error of pydantic says, of a value that should have had a shape: a model, or another type.

    The message never has the value.

    >>> class Order(BaseModel, extra="forbid"):
    ...     amount: float
    >>> try:
    ...     Order.model_validate({"amount": "?", "amuont": 5})
    ... except ValidationError as problem:
    ...     print(*(misfit(one, Order) for one in problem.errors()), sep="\\n")
    Misfit(field='amount', message='expected a number')
    Misfit(field='amuont', message='there is no such field; did you mean amount?')
    """
    names, model = _way(shape, error["loc"])
    field = ".".join(shown_text(name) for name in names)
    if error["type"] == "extra_forbidden":
        fields = list(model.model_fields) if model else []
        there_are = f"; there are {', '.join(fields)}" if fields else ""
        return Misfit(field, f"there is no such field{nearest(names[-1], fields) or there_are}")
    return Misfit(field, _in_words(error))


def _in_words(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx") or {}
    if (say := _FROM_CONTEXT.get(kind)) is not None:
        return say(context)
    return _WORDS[kind].format(**context) if kind in _WORDS else str(error["msg"])


def first_fault(error: ValidationError, shape: Any = None) -> InputError:
    """What is wrong with the first field that a model refuses, and what kind of value it was given."""
    fault = error.errors(include_url=False)[0]
    field, message = misfit(fault, shape)
    place = f"{field}: " if field else ""
    got = "" if fault["type"] in _WITHOUT_VALUE or not field else f", got {given(fault['input'])}"
    return InputError(f"{place}{shown_text(message, 300)}{got}")


def read_stored(read: Callable[[str], T], body: str, failure: str) -> T:
    """What a body in the store says. Raises StoreError, with what failed and which field is wrong."""
    try:
        return read(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise StoreError(f"{failure}: {'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}") from error


def _way(shape: Any, loc: Sequence[int | str]) -> tuple[list[str], type[BaseModel] | None]:
    """The names on the way to a place in a shape, without the tags of unions, and the model that the last one is in."""
    names: list[str] = []
    model: type[BaseModel] | None = None
    for part in loc:
        members = dict(_members(shape))
        if part in members:
            shape = members[part]
            continue
        names.append(str(part))
        model = next(
            (member for member in members.values() if isinstance(member, type) and issubclass(member, BaseModel)), None
        )
        shape = _inside(members.values(), part) if model is None else _field(model, part)
    return names, model


def _members(shape: Any, tag: object = None) -> Iterator[tuple[object, Any]]:
    """The types that a shape may be, by their tags; by themselves if they have none."""
    if get_origin(shape) is Annotated:
        inner, *notes = get_args(shape)
        yield from _members(inner, next((note.tag for note in notes if isinstance(note, Tag)), tag))
    elif get_origin(shape) in (Union, UnionType):
        for one in get_args(shape):
            yield from _members(one)
    else:
        yield tag or shape, shape


def _field(model: type[BaseModel], name: object) -> Any:
    info = model.model_fields.get(str(name))
    return None if info is None else info.annotation


def _inside(members: Any, part: int | str) -> Any:
    """The type of the items of a list, or of the values of a dict."""
    wanted = dict if isinstance(part, str) else list
    return next((get_args(member)[-1] for member in members if get_origin(member) is wanted), None)


M = TypeVar("M", bound=BaseModel)


def construct_unchecked(model: type[M], /, **fields: Any) -> M:
    """A model of these values, without validation. Give every field that has no plain default; all count as set.

    Like `model_construct`, but it does not look for aliases and default factories, which takes time at thousands a
    second.

    >>> class Point(BaseModel):
    ...     x: int = 0
    >>> construct_unchecked(Point, x=3)
    Point(x=3)
    """
    made = model.__new__(model)
    defaults, names = _defaults(model)
    object.__setattr__(made, "__dict__", fields if len(fields) == len(defaults) else {**defaults, **fields})
    object.__setattr__(made, "__pydantic_fields_set__", names)
    object.__setattr__(made, "__pydantic_extra__", None)
    object.__setattr__(made, "__pydantic_private__", None)
    return made


@cache
def _defaults(model: type[BaseModel]) -> tuple[dict[str, Any], set[str]]:
    """All fields in order with their defaults, and one set of names for all instances: nothing writes to it."""
    return {name: field.default for name, field in model.model_fields.items()}, set(model.model_fields)
