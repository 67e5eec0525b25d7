"""Searches for the settings of a booster on the latest training rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from acefraud import Cases
from benchmarks.arrays import Counts, Numbers, Places
from benchmarks.quality.measures import average_precision
from benchmarks.quality.peers import needed, quiet
from benchmarks.quality.splits import Split, require_both, stratified, taken
from benchmarks.tuned.boosters import EXTRA, Booster, Settings

MOST_ROWS = 100_000
"""Rows of a search: the latest ones, or without times any."""
VALIDATION_SHARE = 0.25
MOST_TREES = 1_000


@dataclass(frozen=True, slots=True)
class Limits:
    """A search ends when either is reached; the trial that runs then is finished."""

    trials: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Found:
    """The best settings of a search."""

    settings: Settings
    trees: int
    average_precision: float
    """On the validation rows."""
    rows: int
    """Rows that a trial learnt from."""
    trials: int
    seconds: float

    def trees_for(self, rows: int) -> int:
        """The number of trees for more rows than a trial had: it grows with the square root of theirs.

        >>> Found({}, trees=100, average_precision=0.5, rows=75, trials=1, seconds=1.0).trees_for(100)
        115
        """
        return max(1, round(self.trees * math.sqrt(rows / self.rows)))


class Tuned:
    """A booster with the settings that a search found, fitted on all training rows."""

    rows_cap: int | None = None
    cited: Counts | None = None

    def __init__(self, booster: type[Booster], found: Found, seed: int) -> None:
        self._make, self._found, self._seed = booster, found, seed
        self._model: Booster | None = None

    @property
    def settings(self) -> str:
        """The settings that were found."""
        return ", ".join(f"{name} {shown(value)}" for name, value in self._found.settings.items())

    @property
    def size(self) -> int | None:
        """Trees."""
        return None if self._model is None else self._model.trees

    def fit(self, train: Cases, _: str) -> None:
        """Learn from all rows at once."""
        self._model = self._make(self._found.settings, trees=self._found.trees_for(len(train)), seed=self._seed)
        self._model.fit(train)

    def score(self, test: Cases) -> Numbers:
        """The probability of fraud."""
        if self._model is None:
            raise RuntimeError("fit comes before score")
        return self._model.score(test)


def search(
    booster: type[Booster],
    train: Cases,
    validation: Cases,
    *,
    limits: Limits,
    seed: int = 0,
    progress: Callable[[float], None] = lambda _: None,
) -> Found:
    """The settings with the best average precision on the validation rows. Ordinary settings are tried first."""
    optuna = needed("optuna", EXTRA)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    began = time.monotonic()

    def tried(trial: Any) -> float:
        model = booster(booster.space(trial), trees=MOST_TREES, seed=seed)
        model.fit(train, validation)
        trial.set_user_attr("trees", model.trees)
        return average_precision(model.score(validation), validation.labels)

    def report(study: Any, _: Any) -> None:
        progress(min(1.0, max(len(study.trials) / limits.trials, (time.monotonic() - began) / limits.seconds)))

    with quiet():
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        study.enqueue_trial(dict(booster.ordinary))
        study.optimize(tried, n_trials=limits.trials, timeout=limits.seconds, callbacks=[report])
    best = study.best_trial
    return Found(
        settings=dict(best.params),
        trees=int(best.user_attrs["trees"]),
        average_precision=float(best.value),
        rows=len(train),
        trials=len(study.trials),
        seconds=time.monotonic() - began,
    )


def search_parts(cases: Cases, split: Split, *, name: str, seed: int = 0) -> tuple[Cases, Cases]:
    """Rows to learn from and to validate on, all of them training rows of the split.

    With times, the latest rows validate; otherwise a share of each label at random.
    """
    if cases.transactions.timed:
        rows = split.train[-MOST_ROWS:]
        cut = len(rows) - round(VALIDATION_SHARE * len(rows))
        train, validation = rows[:cut], rows[cut:]
    else:
        rows = _drawn(split.train, seed)
        stay, held = stratified(cases.labels[rows], VALIDATION_SHARE, seed)
        train, validation = rows[stay], rows[held]
    for part, what in ((train, "search"), (validation, "validation")):
        require_both(cases.labels[part], what, name)
    return taken(cases, train), taken(cases, validation)


def _drawn(rows: Places, seed: int) -> Places:
    return np.sort(np.random.default_rng(seed).permutation(rows)[:MOST_ROWS])


def shown(value: Any) -> str:
    """A setting in a few characters.

    >>> shown(0.0512345), shown(31), shown("Plain")
    ('0.0512', '31', 'Plain')
    """
    return f"{value:.3g}" if isinstance(value, float) else str(value)
