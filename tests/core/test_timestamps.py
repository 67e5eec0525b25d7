"""Times: every one has a zone, also as a number in a column."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Case, Transaction
from acefraud.support.timestamps import UNKNOWN, NaiveTimeWarning, in_utc, micros_of, time_of

NAIVE = datetime(2025, 1, 6, 9, 30)
AWARE = NAIVE.replace(tzinfo=UTC)
ELSEWHERE = AWARE.astimezone(timezone(timedelta(hours=5, minutes=30)))


def time_of_transaction(time: object) -> datetime | None:
    return Transaction.model_validate({"id": "t", "text": "x", "time": time}).time


def known_at_of_case(time: object) -> datetime | None:
    case = {"transaction": {"id": "t", "text": "x"}, "is_fraud": True, "known_at": time}
    return Case.model_validate(case).known_at


def at_of_outcome(time: object) -> datetime | None:
    return Outcome.model_validate({"transaction_id": "t", "is_fraud": True, "at": time}).at


Place = Callable[[object], datetime | None]
PLACES = [time_of_transaction, known_at_of_case, at_of_outcome]


@pytest.mark.parametrize("given_as", [NAIVE, "2025-01-06T09:30:00", "2025-01-06 09:30"])
@pytest.mark.parametrize("place", PLACES)
def test_a_time_without_a_zone_is_read_as_utc_and_that_is_said(place: Place, given_as: object) -> None:
    with pytest.warns(NaiveTimeWarning, match="without a zone is read as UTC") as said:
        found = place(given_as)
    assert found == AWARE, "which it could not be without a zone"
    assert len(said) == 1


@pytest.mark.parametrize("given_as", [AWARE, ELSEWHERE, "2025-01-06T09:30:00Z", "2025-01-06T15:00:00+05:30"])
@pytest.mark.parametrize("place", PLACES)
def test_a_time_with_a_zone_is_taken_as_it_is_and_nothing_is_said(place: Place, given_as: object) -> None:
    with warnings.catch_warnings(action="error"):
        found = place(given_as)
    assert found == AWARE
    if isinstance(given_as, datetime) and found is not None:
        assert found.utcoffset() == given_as.utcoffset()


@pytest.mark.parametrize("place", PLACES)
def test_no_time_is_no_time(place: Place) -> None:
    with warnings.catch_warnings(action="error"):
        assert place(None) is None


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_time_is_refused(place: Place) -> None:
    with pytest.raises(ValidationError):
        place("yesterday")


def test_the_warning_can_be_turned_off() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=NaiveTimeWarning)
        assert in_utc(NAIVE) == AWARE
    assert said == []


@given(st.datetimes(timezones=st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))))
def test_a_time_comes_back_from_a_column(time: datetime) -> None:
    # Near the first and the last year a time may have no UTC form that Python could write.
    if datetime(2, 1, 1, tzinfo=UTC) < time < datetime(9998, 1, 1, tzinfo=UTC):
        assert time_of(micros_of(time)) == time


def test_no_time_in_a_column() -> None:
    assert micros_of(None) == UNKNOWN
    assert time_of(UNKNOWN) is None
    assert micros_of(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1
