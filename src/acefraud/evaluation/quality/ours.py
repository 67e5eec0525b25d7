"""Our own modes, as the benchmark sees them."""

from __future__ import annotations

import numpy as np

from acefraud.core.phrases import exact_phrases
from acefraud.core.table import Numbers
from acefraud.datasets.columns import LabelledColumns
from acefraud.embedded.induction.boosting import InductionOptions
from acefraud.evaluation.quality.evidence import EvidenceHeld, evidence_held
from acefraud.evaluation.quality.protocol import Counts
from acefraud.learning.columns import ColumnLearner, ColumnOptions
from acefraud.selection.hybrid import HybridSelector


def _at_the_start(seed: int) -> ColumnLearner:
    """An empty learner that has loaded what it uses, as the others' libraries are loaded before the clock starts."""
    learner = ColumnLearner(seed=seed)
    learner.selector.embedder.embed(["loads the model"])
    exact_phrases()
    return learner


class Playbook:
    """Offline: learns a playbook from the training rows, then cites at most ten bullets for each decision."""

    rows_cap = None
    explore = False
    every_bullet = False

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._learner = _at_the_start(seed)
        self.cited: Counts | None = None

    @property
    def settings(self) -> str:
        """The shipped defaults, and what is different here."""
        n = self._learner.options.learner.n_bullets
        picks = "every bullet that fires" if self.every_bullet else f"{n} bullets a decision"
        return f"shipped defaults, {picks}{', exploring' if self.explore else ''}"

    @property
    def size(self) -> int:
        """Bullets in the book."""
        return len(self._learner.bullets)

    def fit(self, train: LabelledColumns) -> None:
        """Learn from all rows at once."""
        induction = InductionOptions(rising=train.mapping.rising, falling=train.mapping.falling)
        selector = HybridSelector(seed=self._seed, explore=self.explore)
        options = ColumnOptions(induction=induction)
        self._learner = ColumnLearner(options=options, selector=selector, seed=self._seed)
        self._learner.study(train.facts, train.labels, train.times)

    def score(self, test: LabelledColumns) -> Numbers:
        """The probability of fraud."""
        decided = self._learner.decide(test.facts, every_bullet=self.every_bullet, ids=list(test.ids))
        self.cited = decided.cited
        return decided.probabilities

    def evidence_held(self, test: LabelledColumns) -> EvidenceHeld:
        """How many bullets keep to the interval that was printed when they were learnt."""
        return evidence_held(self._learner.bullets, test.facts, test.labels)


class WholePlaybook(Playbook):
    """The same, with every bullet that fires instead of ten."""

    every_bullet = True


class ExploringPlaybook(Playbook):
    """The same, with the draws by which the selector explores."""

    explore = True


class OnlinePlaybook:
    """Online only: starts empty, decides, hears labels as they arrive, learns."""

    def __init__(self, seed: int) -> None:
        self._learner = _at_the_start(seed)
        self._cited: list[Counts] = []

    @property
    def settings(self) -> str:
        """The shipped defaults in words."""
        options = self._learner.options
        return f"shipped defaults, starts empty, remembers {options.memory:,} cases"

    @property
    def size(self) -> int:
        """Bullets in the book."""
        return len(self._learner.bullets)

    @property
    def cited(self) -> Counts | None:
        """How many bullets each decision cited."""
        return np.concatenate(self._cited) if self._cited else None

    def learn(self, rows: LabelledColumns) -> None:
        """Hear the labels of some rows."""
        self._learner.hear(rows.facts, rows.labels)

    def predict(self, rows: LabelledColumns) -> Numbers:
        """The probability of fraud."""
        decided = self._learner.decide(rows.facts)
        self._cited.append(decided.cited)
        return decided.probabilities
