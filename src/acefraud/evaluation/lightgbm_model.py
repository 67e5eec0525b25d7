"""LightGBM on the same facts: what a comparison and the benchmarks hold the playbook against."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud import FactTable
from acefraud.errors import ConfigurationError

HOW_TO_INSTALL = "pip install 'acefraud[bench]'"

Matrix = npt.NDArray[np.float64]


def import_lightgbm() -> Any:
    """The library. A missing or broken installation is a ConfigurationError that says how to install it."""
    # Threads that spin while they wait make small models fifty times slower on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        with warnings.catch_warnings(action="ignore"):
            import lightgbm  # noqa: PLC0415  # an extra, and slow to import
    except (ImportError, OSError) as problem:  # OSError: a system library that it needs is missing
        raise ConfigurationError(f"LightGBM is not installed ({problem}): {HOW_TO_INSTALL}") from None
    return lightgbm


@dataclass(frozen=True, slots=True)
class FactEncoding:
    """Facts as a matrix: numbers as they are, flags as 1 and 0, categories as codes, NaN for what is not known.

    The columns and the codes are those of the training rows, so a word that was not among them is not known.

    >>> encoding = FactEncoding.of(FactTable([{"amount": 5.0, "vpn": True, "channel": "web"}]))
    >>> encoding.matrix(FactTable([{"vpn": False, "channel": "web"}, {"amount": 7.0, "channel": "app"}])).tolist()
    [[nan, 0.0, 0.0], [7.0, nan, nan]]
    """

    numbers: tuple[str, ...]
    flags: tuple[str, ...]
    categories: Mapping[str, tuple[str, ...]]
    """The words of each category, in the order of their codes."""

    @classmethod
    def of(cls, facts: FactTable) -> FactEncoding:
        """The encoding that training rows ask for."""
        columns = facts.columns
        categories = {name: words for name, (_, words) in sorted(columns.categories.items())}
        return cls(tuple(sorted(columns.numbers)), tuple(sorted(columns.flags)), categories)

    @property
    def categorical(self) -> list[int]:
        """Which columns hold codes."""
        first = len(self.numbers) + len(self.flags)
        return list(range(first, first + len(self.categories)))

    def matrix(self, facts: FactTable) -> Matrix:
        """A row for each row of the table."""
        columns = [facts.numbers(name) for name in self.numbers]
        columns += [np.where(facts.flags(name) < 0, np.nan, facts.flags(name)) for name in self.flags]
        for name, words in self.categories.items():
            codes, own = facts.categories(name)
            code = {word: float(index) for index, word in enumerate(words)}
            columns.append(np.array([*(code.get(word, np.nan) for word in own), np.nan])[codes])
        return np.column_stack(columns).astype(np.float64, copy=False) if columns else np.zeros((len(facts), 0))


class LightGbm:
    """Gradient boosting with ordinary settings. It learns once, and gives no reasons."""

    settings = "300 trees, learning rate 0.05, 31 leaves, native categories, deterministic; else defaults"

    def __init__(self, seed: int = 0, *, threads: int | None = None) -> None:
        """`threads` changes the time it takes, never the result; None uses every core."""
        self.classifier = import_lightgbm().LGBMClassifier(
            n_estimators=300,
            learning_rate=0.05,
            num_leaves=31,
            random_state=seed,
            n_jobs=threads,
            deterministic=True,
            verbose=-1,
        )
        self.encoding = FactEncoding((), (), {})

    @property
    def leaves(self) -> int:
        """Leaves of all trees."""
        return sum(int(tree["num_leaves"]) for tree in self.classifier.booster_.dump_model()["tree_info"])

    def fit(self, facts: FactTable, labels: npt.NDArray[np.bool_]) -> None:
        """Learn from all rows at once."""
        self.encoding = FactEncoding.of(facts)
        with warnings.catch_warnings(action="ignore"):
            matrix = self.encoding.matrix(facts)
            self.classifier.fit(matrix, labels, categorical_feature=self.encoding.categorical)

    def score(self, facts: FactTable) -> npt.NDArray[np.float64]:
        """The fraud probability of each row."""
        with warnings.catch_warnings(action="ignore"):
            return np.asarray(self.classifier.predict_proba(self.encoding.matrix(facts))[:, 1], dtype=np.float64)
