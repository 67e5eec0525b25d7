"""What is shown of a value is short, on one line and without personal data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from acefraud.display.html_tables import MOST_ROWS, block, summary, table
from acefraud.display.short_repr import (
    MOST,
    ShortRepr,
    shown_facts,
    shown_names,
    shown_number,
    shown_text,
    shown_value,
)
from acefraud.display.short_repr import given as as_given


class Colour(StrEnum):
    RED = "red"


class Model(ShortRepr, BaseModel):
    name: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Holder(ShortRepr):
    array: object = None
    model: Model | None = None


def test_only_fields_that_differ_from_their_defaults_are_shown_and_str_shows_the_same() -> None:
    model = Model(name="plain")
    assert repr(model) == str(model) == "Model(name='plain')"
    assert repr(Holder(np.zeros(3), model)) == "Holder(array=<3 values>, model=Model(name='plain'))"
    assert list(model.__rich_repr__()) == [("name", "'plain'")]


@given(st.text(max_size=3000), st.lists(st.text(max_size=50), max_size=30))
def test_a_repr_has_one_line_of_bounded_length_whatever_it_holds(name: str, tags: list[str]) -> None:
    shown = repr(Holder(model=Model(name=name, tags=tuple(tags))))
    assert len(shown) <= MOST
    assert shown.isprintable()


@pytest.mark.parametrize("start", range(1_700, 2_010, 7))
def test_a_card_number_is_not_shown_where_a_long_text_is_cut(start: int) -> None:
    assert "1111" not in shown_text("." * start + " 4111 1111 1111 1111" + "." * 500, 5_000)
    assert "1111" not in shown_text(
        "4111 1111 1111 1111, " * 90 + "." * (start - 1_700) + "4111111111111111" * 9, 5_000
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None"),
        (True, "True"),
        (Colour.RED, "'red'"),
        (Path("a/b"), "'a/b'"),
        (date(2025, 1, 31), "2025-01-31"),
        (datetime(2025, 1, 31, 12, tzinfo=UTC), "2025-01-31 12:00:00"),
        ({1, 2}, "[1, 2]"),
        (b"1234", "<4 values>"),
        (object(), "<object>"),
        (10**400, "a number too large to show"),
    ],
)
def test_every_kind_of_value_has_a_short_form(value: object, shown: str) -> None:
    assert shown_value(value) == shown


def test_values_with_a_personal_name_are_masked_but_flags_are_not() -> None:
    assert shown_facts({"cvv": 123.0, "ssn": True, "note": "Ann Lee", "x@example.org": 1.0}) == (
        "{cvv: [masked], ssn: True, note, [email]: 1}"
    )


def test_many_facts_are_counted() -> None:
    facts = {f"fact_{index}": float(index) for index in range(100)}
    assert shown_facts(facts).endswith(", fact_5: 5, … 94 more}")
    assert shown_names(list(facts)).startswith("100 facts: fact_0, ")
    assert shown_number(float("nan")) == "nan"


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "None"), ("4111111111111111", "the str '[card]'"), ([1], "a list of 1"), (object(), "an object")],
)
def test_an_error_says_what_was_given_without_personal_data(value: object, said: str) -> None:
    assert as_given(value) == said


def test_html_is_escaped_and_bounded() -> None:
    evil = "<script>alert(1)</script>"
    html = block(evil, table([evil], [[evil]] * 100), summary({evil: evil, "empty": ""}))
    assert "<script" not in html
    assert html.count("<tr>") == 1 + MOST_ROWS + 1
    assert f"… and {100 - MOST_ROWS} more" in html
    assert "empty" not in html


def test_columns_of_figures_are_aligned_to_the_right() -> None:
    html = table(["name", "figure"], [["a", "+1.5"], ["b", "2"]])
    assert html.count("text-align:right") == 2
