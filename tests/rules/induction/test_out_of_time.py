"""Whether a condition still holds later: beside the share of fraud that is usual at the time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from acefraud.core.bullet import Record
from acefraud.rules.induction.out_of_time import NARROWEST, WIDEST, Checked, Periods, Tally, check, spread_of

Mask = npt.NDArray[np.bool_]
COUNT, CUT = 1000, 800


def base(share: float = 0.1) -> Mask:
    """Every so-manieth case is fraud."""
    labels: Mask = np.arange(COUNT) % round(1 / share) == 0
    return labels


def checked(mask: Mask, labels: Mask) -> Checked:
    periods = Periods.of(labels, CUT)
    return check(Tally.of(mask, periods.codes, np.arange(COUNT)), periods)


def every(step: int, start: int = 0, end: int = COUNT) -> Mask:
    places = np.arange(COUNT)
    mask: Mask = (places % step == 1) & (places >= start) & (places < end)
    return mask


def test_what_stays_as_it_was_holds_up() -> None:
    mask = every(20)
    one = checked(mask, base() | mask)
    assert (one.holds_up, one.stopped) == (True, False)
    assert (one.learnt, one.later) == (Record(support=40, frauds=40), Record(support=10, frauds=10))
    assert one.span == (1, 981)


def test_what_no_longer_occurs_has_stopped() -> None:
    mask = every(8, end=CUT)
    one = checked(mask, base() | mask)
    assert (one.holds_up, one.stopped) == (False, True)


def test_what_argues_the_other_way_later_does_not_hold_up() -> None:
    mask = every(20)
    one = checked(mask, base() | every(20, end=CUT))
    assert (one.holds_up, one.stopped) == (False, False)


FEW = [811, 821, 831, 841]


def test_few_later_cases_that_may_be_chance_contradict_nothing() -> None:
    # At a base rate of one in ten it is no wonder that none of four is fraud.
    mask = every(40, end=CUT) | np.isin(np.arange(COUNT), FEW)
    assert checked(mask, base() | every(40, end=CUT)).holds_up


def test_few_later_cases_that_contradict_beyond_chance_count() -> None:
    # It argued against fraud, and now all four cases are fraud.
    mask = every(40, end=CUT) | np.isin(np.arange(COUNT), FEW)
    labels = base() & ~mask
    assert checked(mask, labels).holds_up
    labels[FEW] = True
    assert not checked(mask, labels).holds_up


def test_what_says_nothing_does_not_hold_up() -> None:
    assert not checked(np.zeros(COUNT, dtype=np.bool_), base()).holds_up
    assert checked(np.zeros(COUNT, dtype=np.bool_), base()).span is None


def test_a_pattern_is_judged_by_the_base_rate_of_its_own_time() -> None:
    # Fraud falls from one in two to one in twenty. Where it holds, one in four is fraud early and one in five later:
    # less than usual at first, much more than usual now, though less than overall at both times.
    places = np.arange(COUNT)
    labels = np.where(places < CUT, places % 2 == 0, places % 20 == 0)
    mask = places % 5 == 3
    labels[mask] = np.where(places[mask] < CUT, places[mask] % 20 == 3, places[mask] % 25 == 3)
    overall = float(labels.mean())
    assert labels[:CUT][mask[:CUT]].mean() < overall
    assert labels[CUT:][mask[CUT:]].mean() < overall
    assert not checked(mask, labels).holds_up


def test_the_usual_share_follows_the_time() -> None:
    labels = np.arange(COUNT) < 400
    usual = Periods.of(labels, CUT).usual
    assert usual[:390].min() > 0.95
    assert usual[410:].max() < 0.05
    assert len(set(usual[CUT:].tolist())) == 1


def test_the_base_rate_beside_a_record_is_of_the_same_time() -> None:
    mask = every(20)
    labels = base() | mask
    one = checked(mask, labels)
    assert one.base_rate == pytest.approx(labels[CUT:].mean())
    assert one.cases == COUNT - CUT
    rare = checked(every(100), labels)
    assert rare.base_rate == pytest.approx(labels[:CUT].mean())
    assert rare.cases == CUT


def moved(learnt: float, later: float) -> Checked:
    records = Record(support=1000, frauds=round(1000 * learnt)), Record(support=400, frauds=round(400 * later))
    return Checked(*records, base_rate=0.1, cases=1000, side=1.0, holds_up=True, stopped=False, span=(0, 1))


def test_the_spread_stays_within_its_bounds() -> None:
    assert spread_of([]) == NARROWEST
    assert spread_of([moved(0.5, 0.5)] * 30) == NARROWEST
    assert spread_of([moved(0.9, 0.1)] * 30) == WIDEST
    assert spread_of([moved(0.9, 0.1)] * 5) == NARROWEST, "too few to say"
    between = spread_of([moved(0.5, 0.36)] * 30)
    assert NARROWEST < between < WIDEST
    assert between == pytest.approx(0.14 / np.sqrt(0.46 * 0.54 / 400) / 1.96, rel=0.01)
