"""LightGBM and CatBoost with any settings, and the settings that a search may try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np

from acefraud import Cases, FactTable
from acefraud.evaluation.lightgbm_model import FactEncoding
from benchmarks.arrays import Counts, Numbers
from benchmarks.quality.peers import needed, quiet

EXTRA = "tuned"
PATIENCE = 50
"""Trees without a better average precision after which a fit stops."""

Settings = Mapping[str, Any]


class Booster(Protocol):
    """Gradient boosting of one library."""

    ordinary: ClassVar[Settings]
    """The settings that a search tries first."""

    def __init__(self, settings: Settings, *, trees: int, seed: int) -> None: ...

    @staticmethod
    def space(trial: Any) -> Settings:
        """Settings that a trial of Optuna chooses."""
        ...

    @property
    def trees(self) -> int:
        """Trees that are used for scores."""
        ...

    def fit(self, train: Cases, validation: Cases | None = None) -> None:
        """Learn from all rows. With validation rows, use the number of trees that is best for these."""
        ...

    def score(self, rows: Cases) -> Numbers:
        """The probability of fraud."""
        ...


class LightGbmBooster:
    """LightGBM with native categories."""

    ordinary: ClassVar[Settings] = {
        "learning_rate": 0.05,
        "num_leaves": 31,
        "min_child_samples": 20,
        "subsample": 1.0,
        "colsample_bytree": 1.0,
        "reg_lambda": 1e-3,
        "reg_alpha": 1e-3,
        "cat_smooth": 10.0,
        "cat_l2": 10.0,
    }

    def __init__(self, settings: Settings, *, trees: int, seed: int) -> None:
        self._library = needed("lightgbm", EXTRA)
        self._model = self._library.LGBMClassifier(
            **settings,
            n_estimators=trees,
            subsample_freq=1,
            metric="average_precision",
            random_state=seed,
            deterministic=True,
            verbose=-1,
        )
        self._encoding = FactEncoding((), (), {})

    @staticmethod
    def space(trial: Any) -> Settings:
        """Settings that a trial of Optuna chooses."""
        return {
            "learning_rate": trial.suggest_float("learning_rate", 0.03, 0.2, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 4, 256, log=True),
            "min_child_samples": trial.suggest_int("min_child_samples", 5, 300, log=True),
            "subsample": trial.suggest_float("subsample", 0.5, 1.0),
            "colsample_bytree": trial.suggest_float("colsample_bytree", 0.3, 1.0),
            "reg_lambda": trial.suggest_float("reg_lambda", 1e-3, 100.0, log=True),
            "reg_alpha": trial.suggest_float("reg_alpha", 1e-3, 10.0, log=True),
            "cat_smooth": trial.suggest_float("cat_smooth", 1.0, 200.0, log=True),
            "cat_l2": trial.suggest_float("cat_l2", 1.0, 100.0, log=True),
        }

    @property
    def trees(self) -> int:
        """Trees that are used for scores."""
        return int(self._model.best_iteration_ or self._model.n_estimators_)

    def fit(self, train: Cases, validation: Cases | None = None) -> None:
        """Learn from all rows. With validation rows, use the number of trees that is best for these."""
        self._encoding = FactEncoding.of(train.facts)
        options: dict[str, Any] = {"categorical_feature": self._encoding.categorical}
        if validation is not None:
            options["eval_X"] = self._encoding.matrix(validation.facts)
            options["eval_y"] = validation.labels
            options["callbacks"] = [self._library.early_stopping(PATIENCE, verbose=False)]
        with quiet():
            self._model.fit(self._encoding.matrix(train.facts), train.labels, **options)

    def score(self, rows: Cases) -> Numbers:
        """The probability of fraud."""
        with quiet():
            scores = self._model.predict_proba(self._encoding.matrix(rows.facts))[:, 1]
        return np.asarray(scores, dtype=np.float64)


class CatBoostBooster:
    """CatBoost with native categories. Ordered boosting is not tried: a fit takes five times as long."""

    ordinary: ClassVar[Settings] = {
        "learning_rate": 0.1,
        "depth": 6,
        "l2_leaf_reg": 3.0,
        "random_strength": 1.0,
        "bagging_temperature": 1.0,
        "one_hot_max_size": 2,
        "max_ctr_complexity": 2,
    }

    def __init__(self, settings: Settings, *, trees: int, seed: int) -> None:
        self._library = needed("catboost", EXTRA)
        self._model = self._library.CatBoostClassifier(
            **settings,
            iterations=trees,
            bootstrap_type="Bayesian",
            eval_metric="PRAUC",
            random_seed=seed,
            allow_writing_files=False,
            verbose=False,
        )
        self._encoding = FactEncoding((), (), {})

    @staticmethod
    def space(trial: Any) -> Settings:
        """Settings that a trial of Optuna chooses."""
        return {
            "learning_rate": trial.suggest_float("learning_rate", 0.03, 0.3, log=True),
            "depth": trial.suggest_int("depth", 3, 8),
            "l2_leaf_reg": trial.suggest_float("l2_leaf_reg", 1.0, 30.0, log=True),
            "random_strength": trial.suggest_float("random_strength", 0.1, 10.0, log=True),
            "bagging_temperature": trial.suggest_float("bagging_temperature", 0.0, 2.0),
            "one_hot_max_size": trial.suggest_int("one_hot_max_size", 2, 50, log=True),
            "max_ctr_complexity": trial.suggest_int("max_ctr_complexity", 1, 3),
        }

    @property
    def trees(self) -> int:
        """Trees that are used for scores."""
        return int(self._model.tree_count_)

    def fit(self, train: Cases, validation: Cases | None = None) -> None:
        """Learn from all rows. With validation rows, use the number of trees that is best for these."""
        self._encoding = FactEncoding.of(train.facts)
        options: dict[str, Any] = {}
        if validation is not None:
            options = {"eval_set": self._pool(validation), "early_stopping_rounds": PATIENCE, "use_best_model": True}
        with quiet():
            self._model.fit(self._pool(train), **options)

    def score(self, rows: Cases) -> Numbers:
        """The probability of fraud."""
        with quiet():
            return np.asarray(self._model.predict_proba(self._pool(rows))[:, 1], dtype=np.float64)

    def _pool(self, rows: Cases) -> Any:
        """Rows as CatBoost takes them: categories are whole numbers, one for each word of the training rows."""
        encoding, facts = self._encoding, rows.facts
        matrix = encoding.matrix(facts)
        columns: dict[int, Any] = dict(enumerate(matrix.T))
        for at, name in zip(encoding.categorical, encoding.categories, strict=True):
            columns[at] = category_codes(matrix[:, at], facts, name)
        frame = needed("pandas", EXTRA).DataFrame(columns)
        return self._library.Pool(frame, rows.labels.astype(np.int64), cat_features=encoding.categorical)


def category_codes(codes: Numbers, facts: FactTable, name: str) -> Counts:
    """Codes as whole numbers: -1 for what is not known, -2 for a word that is not among the training rows.

    >>> facts = FactTable([{"channel": "web"}, {"channel": "app"}, {"vpn": True}])
    >>> category_codes(np.array([0.0, np.nan, np.nan]), facts, "channel").tolist()
    [0, -2, -1]
    """
    own, _ = facts.categories(name)
    return np.where(np.isnan(codes), np.where(own < 0, -1, -2), np.nan_to_num(codes)).astype(np.int64)
