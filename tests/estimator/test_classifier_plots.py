"""The pictures of a fitted classifier."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest

from acefraud import AceFraudClassifier

mpl.use("agg")


@pytest.fixture(scope="module")
def model() -> AceFraudClassifier:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"amount": rng.uniform(0, 100, 600), "vpn": rng.random(600) < 0.3})
    return AceFraudClassifier().fit(frame, (frame["amount"] > 70) & frame["vpn"])


def test_plot_rules_shows_as_many_rules_as_asked(model: AceFraudClassifier) -> None:
    axes = model.plot_rules(most=2)
    assert axes.get_title() == "The 2 heaviest rules"
    assert len(axes.get_yticklabels()) == 2


def test_plot_rules_draws_on_the_axes_that_are_given(model: AceFraudClassifier) -> None:
    axes = mpl.figure.Figure().subplots()
    assert model.plot_rules(ax=axes) is axes
