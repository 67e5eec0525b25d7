"""Learners that people use for the same task, with ordinary settings. Each library is imported only if it is used."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from acefraud import Cases
from acefraud.errors import ConfigurationError
from acefraud.evaluation.lightgbm_model import LightGbm as LightGbmModel
from benchmarks.arrays import Counts, Numbers
from benchmarks.quality.encodings import MOST_WORDS, OneHot

_ONE_HOT = f"the {MOST_WORDS} most frequent words of a category as columns, the rest as one"
_FILLED = f"{_ONE_HOT}; empty cells as medians with a column that says so"


def needed(module: str, extra: str = "bench") -> Any:
    """A module of an extra. If it is missing, the error says how to install it."""
    # Threads that spin while they wait make small models fifty times slower on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        with quiet():
            return importlib.import_module(module)
    except ImportError as missing:
        raise ConfigurationError(f"the benchmark needs {module} ({missing}): pip install '.[{extra}]'") from None


@contextmanager
def quiet() -> Iterator[None]:
    """Hide the warnings that other libraries raise about each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class LightGbm:
    """Gradient boosting, as `acefraud compare` runs it."""

    settings = LightGbmModel.settings
    rows_cap: int | None = None
    cited: Counts | None = None

    def __init__(self, seed: int) -> None:
        needed("lightgbm")
        self._model = LightGbmModel(seed)

    @property
    def size(self) -> int | None:
        """Leaves of all trees."""
        return self._model.leaves

    def fit(self, train: Cases, _: str) -> None:
        """Learn from all rows at once."""
        self._model.fit(train.facts, train.labels)

    def score(self, test: Cases) -> Numbers:
        """The probability of fraud."""
        return self._model.score(test.facts)


class _OnMatrix:
    """A classifier with the interface of scikit-learn."""

    rows_cap: int | None = None
    cited: Counts | None = None

    def __init__(self, model: Any, encoder: OneHot) -> None:
        self._model, self._encoder = model, encoder

    def fit(self, train: Cases, _: str) -> None:
        """Learn from all rows at once."""
        with quiet():
            matrix = self._encoder.fit(train.facts).matrix(train.facts)
            self._model.fit(matrix, train.labels.astype(np.int64))

    def score(self, test: Cases) -> Numbers:
        """The fraud probability, or the model's own score."""
        with quiet():
            return np.asarray(self._model.predict_proba(self._encoder.matrix(test.facts))[:, 1], dtype=np.float64)


class Logistic(_OnMatrix):
    """Logistic regression on numbers and their ranks. Ranks help with long tails; ranks alone do worse."""

    settings = f"C=1, numbers twice: scaled, and as ranks in a normal distribution; {_FILLED}"
    size: int | None = None

    def __init__(self, seed: int) -> None:
        library, forms, chain = (needed(f"sklearn.{name}") for name in ("linear_model", "preprocessing", "pipeline"))
        ranks = forms.QuantileTransformer(output_distribution="normal", subsample=100_000, random_state=seed)
        numbers = chain.make_union(forms.StandardScaler(), chain.make_pipeline(ranks, forms.StandardScaler()))
        super().__init__(
            library.LogisticRegression(C=1.0, max_iter=1000, random_state=seed), OneHot(fill=True, numbers=numbers)
        )


class Tree(_OnMatrix):
    """One small decision tree."""

    settings = f"depth 4; {_ONE_HOT}"

    def __init__(self, seed: int) -> None:
        library = needed("sklearn.tree")
        super().__init__(library.DecisionTreeClassifier(max_depth=4, random_state=seed), OneHot(fill=False))

    @property
    def size(self) -> int | None:
        """Leaves."""
        return int(self._model.get_n_leaves())


class _OfImodels(_OnMatrix):
    """A classifier of imodels. Some of these draw from the global generator and ignore their seed."""

    def __init__(self, name: str, seed: int, **options: Any) -> None:
        super().__init__(getattr(needed("imodels"), name)(random_state=seed, **options), OneHot())
        self._seed = seed

    def fit(self, train: Cases, mapping: str) -> None:
        """Learn from all rows at once."""
        before = np.random.get_state()
        np.random.seed(self._seed)
        try:
            super().fit(train, mapping)
        finally:
            np.random.set_state(before)


class Figs(_OfImodels):
    """A sum of small trees."""

    settings = f"imodels, max_rules=12, at most 100,000 rows; {_FILLED}"
    rows_cap = 100_000

    def __init__(self, seed: int) -> None:
        super().__init__("FIGSClassifier", seed, max_rules=12)

    @property
    def size(self) -> int | None:
        """Splits of all trees."""
        return int(self._model.complexity_)


class RuleFit(_OfImodels):
    """A sparse linear model of rules. Cross-validation took six times as long for the same scores."""

    settings = (
        f"imodels, max_rules=30, the weakest penalty that keeps to these (cv=False), at most 5,000 rows; {_FILLED}"
    )
    rows_cap = 5_000

    def __init__(self, seed: int) -> None:
        super().__init__("RuleFitClassifier", seed, max_rules=30, cv=False)

    @property
    def size(self) -> int | None:
        """Rules and linear terms with a weight."""
        rules = self._model._get_rules()
        return int((rules["coef"] != 0).sum())


class SkopeRules(_OfImodels):
    """Rules that are precise on their own and vote."""

    settings = f"as in imodels, else defaults, at most 50,000 rows; scores are no probabilities; {_FILLED}"
    rows_cap = 50_000

    def __init__(self, seed: int) -> None:
        super().__init__("SkopeRulesClassifier", seed)

    @property
    def size(self) -> int | None:
        """Rules."""
        return len(self._model.rules_)
