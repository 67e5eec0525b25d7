"""The pictures of a fitted classifier."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score, precision_score, recall_score

from acefraud import AceFraudClassifier

pytestmark = pytest.mark.wide

mpl.use("agg")


def payments(seed: int) -> tuple[pl.DataFrame, pl.Series]:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"amount": rng.uniform(0, 100, 600), "vpn": rng.random(600) < 0.3})
    return frame, (frame["amount"] > 70) & frame["vpn"]


LATER, LATER_Y = payments(4)


@pytest.fixture(scope="module")
def model() -> AceFraudClassifier:
    return AceFraudClassifier().fit(*payments(3))


def test_plot_rules_shows_as_many_rules_as_asked(model: AceFraudClassifier) -> None:
    axes = model.plot_rules(most=2)
    assert axes.get_title() == "The 2 heaviest rules"
    assert len(axes.get_yticklabels()) == 2


def test_plot_rules_draws_on_the_axes_that_are_given(model: AceFraudClassifier) -> None:
    axes = mpl.figure.Figure().subplots()
    assert model.plot_rules(ax=axes) is axes


def test_plot_precision_recall_shows_where_predict_stands(model: AceFraudClassifier) -> None:
    axes = model.plot_precision_recall(LATER, LATER_Y)
    reached = average_precision_score(LATER_Y, model.predict_proba(LATER)[:, 1])
    assert f"AP = {reached:.2f}" in axes.get_legend().get_texts()[0].get_text()
    dot = [float(axes.lines[-1].get_xdata()[0]), float(axes.lines[-1].get_ydata()[0])]
    predicted = model.predict(LATER)
    assert dot == pytest.approx([recall_score(LATER_Y, predicted), precision_score(LATER_Y, predicted)])


def test_plot_calibration_shows_the_share_of_fraud_in_each_group(model: AceFraudClassifier) -> None:
    axes = model.plot_calibration(LATER, LATER_Y)
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(dots) == 10
    shares = [float(dot.get_ydata()[0]) for dot in dots]
    assert np.mean(shares) == pytest.approx(LATER_Y.mean())
    assert shares[0] == 0
    assert shares[-1] > 0.8


def test_plot_coverage_shows_the_shares_on_which_rules_hold(model: AceFraudClassifier) -> None:
    axes = model.plot_coverage(LATER, LATER_Y, most=2)
    assert len(axes.get_yticklabels()) == 2
    assert "holds on 100% of frauds" in axes.get_title(loc="right")
    assert model.plot_coverage().get_xlabel() == "share on which the rule holds"


@pytest.mark.parametrize("fact", ["amount", "vpn"])
def test_plot_shape_shows_what_a_fact_adds(model: AceFraudClassifier, fact: str) -> None:
    axes = model.plot_shape(fact, LATER, LATER_Y)
    added = axes.lines[0].get_ydata()
    if fact == "amount":
        assert added[-1] > added[0]
    else:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["false", "true"]
        assert added[1] > added[0]
    with pytest.raises(ValueError, match="no rule tests 'nothing'; the facts that rules test are: amount, vpn"):
        model.plot_shape("nothing")
