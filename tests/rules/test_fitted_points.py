"""The points of the scorecard fitted to labelled cases."""

from __future__ import annotations

import numpy as np
import pytest

from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.rules.induction.fitting import fit_points
from acefraud.rules.scorecard import score_in, scorecard
from acefraud.support.arrays import BoolArray

SHIPPED = {point.line: point.points for point in scorecard()}


def cases(count: int, share_with_vpn: float, share_without: float) -> tuple[FactTable, BoolArray]:
    """Cases of which half use a VPN, with a share of fraud among each half."""
    generator = np.random.default_rng(0)
    vpn = np.arange(count) % 2 == 0
    labels = generator.random(count) < np.where(vpn, share_with_vpn, share_without)
    rows: list[dict[str, FactValue]] = [{"vpn": bool(each), "amount": 20.0} for each in vpn]
    return FactTable(rows), labels


def test_a_line_that_is_wrong_here_is_corrected() -> None:
    fitted = fit_points(*cases(400, 0.05, 0.5))
    assert fitted.points["vpn is true"] < -0.5


def test_a_few_dozen_cases_hardly_move_a_line() -> None:
    few, many = (fit_points(*cases(count, 0.02, 0.8)).points["vpn is true"] for count in (30, 1_000))
    assert SHIPPED["vpn is true"] > few > many
    assert SHIPPED["vpn is true"] - few < 0.5 * (SHIPPED["vpn is true"] - many)


def test_where_the_scorecard_is_right_it_stays_as_it_ships() -> None:
    facts, labels = cases(200, 0.45, 0.27)
    fitted = fit_points(facts, labels)
    assert fitted.points == {}
    assert fitted.sums.tolist() == score_in(facts).tolist()


def test_only_lines_that_apply_to_some_case_are_listed() -> None:
    assert set(fit_points(*cases(400, 0.05, 0.5)).points) == {"vpn is true"}


def test_a_case_is_scored_by_points_that_were_fitted_without_it() -> None:
    facts, labels = cases(400, 0.05, 0.5)
    fitted = fit_points(facts, labels)
    apart = np.unique(np.round(fitted.sums[::2], 6))
    assert len(apart) == 5  # one fit for each fold
    assert apart.mean() == pytest.approx(fitted.points["vpn is true"], abs=0.3)
