"""Stream learners of river, which take rows one by one as dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from acefraud import Cases
from benchmarks.arrays import Counts, Numbers
from benchmarks.quality.encodings import MOST_WORDS, CommonWords, row_dicts
from benchmarks.quality.peers import needed

_WORDS = f"of a category the {MOST_WORDS} most frequent words of the first rows, the rest as one"


class _OfRiver:
    """A classifier of river."""

    cited: Counts | None = None
    size: int | None = None

    def __init__(self, model: Any) -> None:
        self.model, self._common = model, CommonWords()

    def learn(self, rows: Cases) -> None:
        """Learn from rows whose labels have arrived, one by one."""
        self._common.hear(rows.facts)
        for row, label in zip(row_dicts(rows.facts, self._common), rows.labels.tolist(), strict=True):
            self.model.learn_one(row, label)

    def predict(self, rows: Cases) -> Numbers:
        """The probability of fraud of each row."""
        given = row_dicts(rows.facts, self._common)
        return np.array([self.model.predict_proba_one(row).get(True, 0.0) for row in given])


class HoeffdingTree(_OfRiver):
    """One tree that regrows branches when they get worse."""

    settings = f"river HoeffdingAdaptiveTreeClassifier, defaults; {_WORDS}"

    def __init__(self, seed: int) -> None:
        super().__init__(needed("river.tree").HoeffdingAdaptiveTreeClassifier(seed=seed))


class AdaptiveForest(_OfRiver):
    """Ten trees that are replaced when they get worse."""

    settings = f"river ARFClassifier, n_models=10, else defaults; {_WORDS}"

    def __init__(self, seed: int) -> None:
        super().__init__(needed("river.forest").ARFClassifier(n_models=10, seed=seed))


class OnlineLogistic(_OfRiver):
    """A logistic regression by stochastic gradient descent: numbers and flags are standardised, words are one-hot."""

    settings = f"river StandardScaler, OneHotEncoder, LogisticRegression, defaults; {_WORDS}"

    def __init__(self, seed: int) -> None:  # noqa: ARG002  # nothing is drawn
        compose, preprocessing = needed("river.compose"), needed("river.preprocessing")
        numbers = compose.SelectType((int, float, bool)) | preprocessing.StandardScaler()
        words = compose.SelectType(str) | preprocessing.OneHotEncoder()
        super().__init__((numbers + words) | needed("river.linear_model").LogisticRegression())
