"""One JSON object is read as a file with this one line would be."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.datasets import SchemaMapping, records
from acefraud.datasets.records import RecordReader
from acefraud.datasets.rows import read_outcomes, read_transactions
from acefraud.errors import ConfigurationError, InputError
from acefraud.facts.history.plan import HistoryPlan

MAPPINGS = {
    "none": None,
    "plain": SchemaMapping(id="nr", time="when", time_format="%d/%m/%Y %H:%M", amount="sum", categories=("code",)),
    "commas": SchemaMapping(decimal=",", numbers=("sum",)),
    "parts": SchemaMapping(time_parts={"year": "y", "month": "m", "day": "d"}),
    "times": SchemaMapping(time="time", days_between={"age": ("since", "time")}, time_facts=("hour", "weekday")),
    "lists": SchemaMapping(flags=("tags.gift", "tags.new")),
    "entities": SchemaMapping(
        time="time", history=HistoryPlan(entities=("card_id",), category="shop"), ignore=("secret",), rename={"x": "y"}
    ),
}

ROWS: list[Any] = [
    {"id": "t1", "amount": 5, "vpn": True, "country": "DE", "x": 1.5},
    {"transaction_id": 17, "time": "2024-02-01T10:20:00+02:00", "facts": {"amount": 5, "vpn": 1, "z": "a"}},
    {"transaction": {"id": "t2", "text": "Gift cards for $900 through a VPN"}, "label": "fraud", "metadata": {"a": 1}},
    {"amount": 7, "label": 1, "is_fraud": True},
    {"amount": 7, "device": {"is_new": True, "os": {"name": "x"}}},
    {"tags": ["gift", "other"], "amount": 1},
    {"tags": [], "amount": 1},
    {"nr": 5.0, "when": "03/02/2024 18:05", "sum": "$1,200.50", "code": 7.0, "text": " "},
    {"nr": "a", "when": "soon", "sum": 4},
    {"sum": "1.250,50", "code": "1,5"},
    {"sum": "12,5x"},
    {"y": 2024, "m": "Feb", "d": 3, "amount": 2},
    {"y": 2024, "m": "Feb", "d": 31, "amount": 2},
    {"time": "2024-02-01", "since": "2024-01-01", "amount": 3},
    {"time": 1706788800, "since": "never", "amount": 3},
    {"time": "NA", "amount": "NA", "country": "NA", "vpn": "n/a", "x": 2},
    {"time": "2024-02-01T01:00:00Z", "card_id": 42, "shop": " toys ", "secret": "s", "x": 9, "amount": 1},
    {"id": "", "amount": 5},
    {"id": "i" * 201, "amount": 5},
    {"amount": "much"},
    {"amount": {"a": 1}},
    {"amount": [1]},
    {"facts": {"amount": float("nan")}},
    {"facts": {"vpn": "maybe"}},
    {"facts": 5},
    {"country": "x" * 1001},
    {"text": 5},
    {"text": "x" * 100_001},
    {"a": {"b": 1}, "a.b": 2},
    {"facts": {"x": 1}, "x": 2},
    {"id": "nothing"},
    {},
    [1],
    "text",
]
LINES = [*map(json.dumps, ROWS), "{]", '{"a":' * 100_000, '{"a": ' + "9" * 5000 + "}", '{"id": "\\ud83d", "amount": 1}']


def in_a_file(line: str, remembered: SchemaMapping | None) -> Any:
    try:
        return read_transactions(io.StringIO(line), remembered=remembered, strict=True).rows[0]
    except InputError as problem:
        return problem.field, problem.message
    except ConfigurationError as problem:
        return str(problem)


def alone(line: str, remembered: SchemaMapping | None) -> Any:
    try:
        return RecordReader(remembered=remembered, strict=True).transaction(line)
    except InputError as problem:
        return problem.field, problem.message
    except ConfigurationError as problem:
        return str(problem)


OFTEN = [(LINES.index(line), "none") for line in LINES[::3]]
OFTEN += [(7, "plain"), (8, "plain"), (9, "commas"), (10, "commas"), (11, "parts"), (12, "parts"), (13, "times")]
OFTEN += [(14, "times"), (5, "lists"), (6, "lists"), (16, "entities")]
CASES = [
    pytest.param(
        line, mapping, marks=[] if (index, mapping) in OFTEN else pytest.mark.long, id=f"{line[:60]} {mapping}"
    )
    for mapping in MAPPINGS
    for index, line in enumerate(LINES)
]


@pytest.mark.parametrize(("line", "mapping"), CASES)
def test_an_object_is_read_as_in_a_file(line: str, mapping: str) -> None:
    expected = in_a_file(line, MAPPINGS[mapping])
    found = alone(line, MAPPINGS[mapping])
    assert found == expected
    if hasattr(expected, "facts"):
        assert list(found.facts) == list(expected.facts), "ids of decisions depend on the order"


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.floats(-1e6, 1e6).map(lambda value: round(value, 3)),
    st.sampled_from(["", " a ", "5", "1,5", "yes", "NA", "none", "2024-01-05", "3/4/2024 10:00", "$5.20"]),
)
FIELDS = st.sampled_from(
    ["id", "time", "when", "amount", "vpn", "merchant_category", "text", "label", "x", "card_id", "a.b"]
)


@given(
    st.dictionaries(FIELDS, CELLS, max_size=6),
    st.dictionaries(st.sampled_from(["vpn", "amount", "channel", "q"]), CELLS, max_size=3),
    st.sampled_from(list(MAPPINGS)),
)
def test_any_object_is_read_as_in_a_file(row: dict[str, Any], facts: dict[str, Any], mapping: str) -> None:
    line = json.dumps(row | ({"facts": facts} if facts else {}))
    assert alone(line, MAPPINGS[mapping]) == in_a_file(line, MAPPINGS[mapping])


OUTCOMES: list[dict[str, Any]] = [
    {"transaction_id": "t1", "label": "fraud"},
    {"transaction_id": 7, "label": 0, "source": "Chargeback", "id": "o1", "at": "2024-02-01T00:00:00Z"},
    {"tx_id": "t1", "is_fraud": True, "amount": 5, "time": "2024-01-01T12:00:00Z"},
    {"transaction_id": "t1", "label": "legit", "text": "$5 purchase", "outcome_id": "o2"},
    {"transaction_id": "t1", "label": "perhaps"},
    {"transaction_id": "t1", "label": "fraud", "source": "rumour"},
    {"transaction_id": "t1", "label": "fraud", "at": "soon"},
    {"transaction_id": "", "label": "fraud"},
    {"transaction_id": "t1", "label": "fraud", "amount": "much"},
]


@pytest.mark.parametrize("row", OUTCOMES, ids=str)
def test_an_outcome_is_read_as_in_a_file(row: dict[str, Any]) -> None:
    line = json.dumps(row)
    try:
        expected: Any = read_outcomes(io.StringIO(line), strict=True).rows[0]
    except InputError as problem:
        expected = problem.field, problem.message
    try:
        found: Any = RecordReader().outcome(line, 1)
    except InputError as problem:
        found = problem.field, problem.message
    assert found == expected


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"transaction_id": "t1"}, "expected a label, got the fields transaction_id"),
        ({"label": 1}, "expected a transaction_id, got the fields label"),
        ({}, "expected a label, got the fields of an empty object"),
        ({"transaction_id": "t1", "label": None}, "there is no label yet"),
    ],
)
def test_what_an_outcome_lacks_is_named(row: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        RecordReader().outcome(json.dumps(row), 1)
    assert refused.value.message == message


def test_a_guess_is_made_once_for_all_objects_with_the_same_fields() -> None:
    reader = RecordReader()
    assert reader.transaction('{"id": "a", "when": "2024-01-01T12:00:00Z", "amount": 1}').time is not None
    assert reader.transaction('{"id": "b", "when": null, "amount": 1}').time is None
    with pytest.raises(InputError, match="expected a time"):
        reader.transaction('{"id": "c", "when": "in the evening", "amount": 1}')


def test_only_so_many_guesses_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_MOST_LAYOUTS", 3)
    reader = RecordReader()
    for n in range(5):
        reader.transaction(json.dumps({f"column_{n}": 1}))
    assert len(reader._layouts) == 3
