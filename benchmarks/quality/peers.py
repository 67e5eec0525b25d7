"""Learners that people use for the same task, with ordinary settings; each is imported only when it takes part."""

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
from benchmarks.arrays import Counts, Numbers
from benchmarks.quality.encodings import MOST_WORDS, OneHot, coded_matrix

HOW_TO_INSTALL = "pip install '.[bench]'"
_ONE_HOT = f"the {MOST_WORDS} most frequent words of a category as columns, the rest as one"
_FILLED = f"{_ONE_HOT}; empty cells as medians with a column that says so"


def needed(module: str) -> Any:
    """A module of the bench extra, or how to get it."""
    # Threads that spin while they wait make small models fifty times slower on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        with _quiet():
            return importlib.import_module(module)
    except ImportError as missing:
        raise ConfigurationError(f"the benchmark needs {module} ({missing}): {HOW_TO_INSTALL}") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """What other libraries warn of among themselves is not for the reader of a table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class LightGbm:
    """Gradient boosting."""

    settings = "300 trees, learning rate 0.05, 31 leaves, native categories, deterministic; else defaults"
    rows_cap: int | None = None
    cited: Counts | None = None

    def __init__(self, seed: int) -> None:
        library = needed("lightgbm")
        self.model = library.LGBMClassifier(
            n_estimators=300, learning_rate=0.05, num_leaves=31, random_state=seed, deterministic=True, verbose=-1
        )

    @property
    def size(self) -> int | None:
        """Leaves of all trees."""
        return sum(int(tree["num_leaves"]) for tree in self.model.booster_.dump_model()["tree_info"])

    def fit(self, train: Cases, _: str) -> None:
        """Learn from all rows at once."""
        matrix, categories = coded_matrix(train.facts)
        with _quiet():
            self.model.fit(matrix, train.labels, categorical_feature=categories)

    def score(self, test: Cases) -> Numbers:
        """The probability of fraud."""
        with _quiet():
            return np.asarray(self.model.predict_proba(coded_matrix(test.facts)[0])[:, 1], dtype=np.float64)


class _OnMatrix:
    """A classifier in the manner of scikit-learn."""

    rows_cap: int | None = None
    cited: Counts | None = None

    def __init__(self, model: Any, encoder: OneHot) -> None:
        self._model, self._encoder = model, encoder

    def fit(self, train: Cases, _: str) -> None:
        """Learn from all rows at once."""
        with _quiet():
            matrix = self._encoder.fit(train.facts).matrix(train.facts)
            self._model.fit(matrix, train.labels.astype(np.int64))

    def score(self, test: Cases) -> Numbers:
        """The probability of fraud, or what the model takes for it."""
        with _quiet():
            return np.asarray(self._model.predict_proba(self._encoder.matrix(test.facts))[:, 1], dtype=np.float64)


class Logistic(_OnMatrix):
    """Logistic regression. Ranks tame numbers with long tails; without the numbers themselves it would do worse."""

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
    """A classifier of imodels. Some of these draw from the global generator, whatever seed they are given."""

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
    """A sparse linear model of rules. Cross-validation takes six times as long, for the same scores where tried."""

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
    """Rules that are precise on their own, voting."""

    settings = f"as in imodels, else defaults, at most 50,000 rows; scores are no probabilities; {_FILLED}"
    rows_cap = 50_000

    def __init__(self, seed: int) -> None:
        super().__init__("SkopeRulesClassifier", seed)

    @property
    def size(self) -> int | None:
        """Rules."""
        return len(self._model.rules_)
