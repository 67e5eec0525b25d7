"""What must hold for any text at all, and for other people's texts where they are at hand."""

from __future__ import annotations

import json
import math
import os
import random
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.facts.text.test_text_facts import CASES
from tests.facts.text.test_text_facts_phrasings import CASES as PHRASINGS
from tests.growth import assert_linear

from acefraud.core.fact_names import NAMED_FACTS
from acefraud.datasets.world import WorldOptions, generate
from acefraud.facts.text import TextFacts, document, patterns, read_facts

pytestmark = pytest.mark.wide

_KINDS: dict[str, type] = {"number": float, "flag": bool, "category": str}
_PIECES = (
    "$", "€", "1,250.00", "3:15 AM", "23h", "no", "VPN", "not", "account", "age:", "45 days", "2-3 weeks",
    "a year ago", "previous",
    "transactions", "were", "all under", "$200", "$5, $10, $20, $40", "4.2/5", "rating", "12", "in the last",
    "10 minutes", "fraud reports",
    "device", "new", "known", "KYC", "passed", "in Miami, FL.", "usual", "=", ":", ",", ".", ";", "\n", '"', "'",
    "amt=12", "3DS", "%",
    "İstanbul", "ß", "\ue000", "½", "٣", "1.2.3.4", "99,50 €", "-$5", "25:99", "13 pm", "2024-02-31", "0/0", "eighth",
    "8th",
)  # fmt: skip
_ANY_TEXT = st.one_of(st.text(max_size=300), st.lists(st.sampled_from(_PIECES), max_size=40).map(" ".join))


def _check(text: str, read: TextFacts) -> None:
    for name, value in read.facts.items():
        assert type(value) is _KINDS[NAMED_FACTS[name].kind], name
        assert not isinstance(value, float) or (math.isfinite(value) and value >= 0), name
    for name, start, end in read.spans:
        assert name in read.facts
        assert 0 <= start < end <= len(text)
    assert all(piece and piece in text for piece in read.unread)


@given(_ANY_TEXT)
def test_any_text_is_read_without_a_crash_and_with_right_types(text: str) -> None:
    _check(text, read_facts(text))


@given(_ANY_TEXT)
def test_reading_is_a_function_of_the_text(text: str) -> None:
    assert read_facts(text) == read_facts(text)


def _survey_of_everything(pieces: list[str]) -> patterns.Survey:
    """Every pattern may begin at every piece."""
    places = list(accumulate(map(len, pieces), initial=0))
    return patterns.Survey(dict.fromkeys(patterns._PATTERNS, places), held=-1)


def _read_by_trying_everything(text: str) -> TextFacts:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "survey", _survey_of_everything)
        return read_facts(text)


_WORDS = sorted({word for text, _ in (*CASES, *PHRASINGS) for word in text.split()})
_WORDY_TEXT = st.lists(st.sampled_from(_WORDS), max_size=40).map(" ".join)


@given(_ANY_TEXT | _WORDY_TEXT | st.sampled_from([text for text, _ in (*CASES, *PHRASINGS)]))
def test_the_index_spares_work_and_changes_nothing(text: str) -> None:
    assert repr(read_facts(text)) == repr(_read_by_trying_everything(text))


def test_the_index_changes_nothing_in_generated_texts() -> None:
    texts = [case.transaction.text for case in generate(WorldOptions(transactions=15), 31)]
    assert [text for text in texts if repr(read_facts(text)) != repr(_read_by_trying_everything(text))] == []


_LONG = (
    "1", ",", " ", "$", "$1", "1,", "1 ", "$1,", "1.", "1:", "a ", "no ", "a", "-", "1-", "$1-", "previous ",
    "usual ", "vpn ", "no vpn, ",
    "in A", "In Aa ", '"', "account opened ", "{[(", "3 transactions ", "$5, ", "at 3:15 am ", "3:", "\n", "not a ",
    "1/5 ", "é", "k=", "k: v ", "45 days ",
)  # fmt: skip


@pytest.mark.parametrize("unit", _LONG)
def test_long_repetitions_are_read_in_good_time(unit: str) -> None:
    _check_growth((unit * 50_000)[:50_000])


def test_long_mixtures_are_read_in_good_time() -> None:
    draw = random.Random(7)
    _check_growth(" ".join(draw.choice(_PIECES) for _ in range(15_000))[:50_000])


def _check_growth(text: str) -> None:
    assert_linear(lambda one: _check(one, read_facts(one)), text[: len(text) // 5], text)


def _public_texts() -> list[str]:
    folder = Path(os.environ.get("ACEFRAUD_DATA", Path(__file__).parents[3] / ".." / "shared" / "data"))
    path = folder / "complex_fraud_detection.json"
    if not path.is_file():
        pytest.skip(f"public texts not found at {path}; set ACEFRAUD_DATA to their folder")
    return [str(row["query"]) for row in json.loads(path.read_text(encoding="utf-8"))]


def test_public_texts_give_their_main_facts() -> None:
    texts = _public_texts()
    read = [read_facts(text) for text in texts]
    for fact in ("amount", "account_age_days", "hour", "merchant_rating", "fraud_reports", "account_transactions"):
        assert sum(fact in each.facts for each in read) == len(texts), fact
    for text, one in zip(texts, read, strict=True):
        _check(text, one)
