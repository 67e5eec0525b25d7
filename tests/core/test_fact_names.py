"""The table of named facts: each entry is of one kind, and a mistake in it is named."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from acefraud.core.comparison import ORDERED
from acefraud.core.fact_names import HISTORY_FACTS, NAMED_FACTS, FactWords, _Entry
from acefraud.errors import ConfigurationError


@pytest.mark.parametrize("words", [*NAMED_FACTS.values(), *HISTORY_FACTS], ids=lambda words: words.name)
def test_an_entry_says_all_that_its_kind_needs(words: FactWords) -> None:
    assert words.noun
    assert bool(words.true and words.false) == (words.kind == "flag")
    assert set(words.comparisons) == (ORDERED if words.kind == "number" else set())
    assert all(template.count("{v}") == 1 for template in words.comparisons.values())
    assert all(re.compile(pattern) for pattern in words.also)


@pytest.mark.parametrize(
    "entry",
    [{}, {"number": "height", "category": "height"}, {"ratio_of": "amount"}, {"true": "tall"}, {"flag": "tall"}],
)
def test_an_entry_of_no_kind_or_of_two_is_refused(entry: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"\[height\] needs either number"):
        _Entry.model_validate(entry).words("height")


def test_a_key_that_no_entry_has_is_refused() -> None:
    with pytest.raises(ValidationError, match="nuon"):
        _Entry.model_validate({"nuon": "height"})
