"""A scorer for scikit-learn that lets the labels of test rows arrive, as they would in production."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline

from acefraud.estimator.classifier import AceFraudClassifier


def backtest_scorer(scoring: str | Callable[..., Any] = "average_precision") -> Callable[[Any, Any, Any], Any]:
    """A scorer for `cross_val_score`, `cross_validate` and searches that is true of a classifier with a history.

    scikit-learn's own scorers call `predict_proba(X)`, so the labels of earlier test rows never arrive, and facts such
    as the known frauds of a card stand still. This one scores the same rows as `AceFraudClassifier.backtest` does: each
    sees the labels that would have arrived by then, and never its own. `scoring` is the name of a metric of
    scikit-learn, or a scorer. Use it with `TimeSeriesSplit` on rows in the order of time.

    >>> import polars as pl
    >>> from datetime import datetime, timedelta
    >>> from sklearn.model_selection import TimeSeriesSplit, cross_val_score
    >>> times = [datetime(2025, 1, 1) + timedelta(hours=n) for n in range(600)]
    >>> payments = pl.DataFrame({"time": times, "card": [f"c{n % 20}" for n in range(600)], "amount": [9.0] * 600})
    >>> y = [int(n % 20 < 3 and n % 7 > 0) for n in range(600)]
    >>> model = AceFraudClassifier(mapping={"time": "time", "history": {"entities": ["card"], "label_delay": "1d"}})
    >>> found = cross_val_score(model, payments, y, cv=TimeSeriesSplit(2), scoring=backtest_scorer())
    >>> len(found), bool(found.min() > 0.5)
    (2, True)
    """
    return partial(_score, get_scorer(scoring))


def _score(scorer: Callable[..., Any], estimator: Any, X: Any, y: Any) -> Any:  # noqa: N803
    if isinstance(estimator, Pipeline):
        X, estimator = estimator[:-1].transform(X) if len(estimator) > 1 else X, estimator[-1]  # noqa: N806
    if not isinstance(estimator, AceFraudClassifier):
        raise TypeError(f"backtest_scorer scores an AceFraudClassifier or a pipeline with one, got {estimator!r}")
    view, scores = copy(estimator), estimator._backtested(X, y).scores
    view.__dict__["_score"] = lambda _: scores
    return scorer(view, X, y)
