"""The learner as a river classifier: one row at a time, with labels that come later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from river import base

from acefraud import BulletPlaybook, FactTable, Learner, LearnerOptions, Outcome, SchemaMapping, Transaction
from acefraud.errors import InputError


class StreamClassifier(base.MiniBatchClassifier):
    """A playbook that learns from a stream, for `river.evaluate.progressive_val_score` and river's pipelines.

    It runs the loop of `Learner.hear`: each label is an outcome, and the playbook is reviewed when enough have arrived.
    Every bullet that fires counts. Labels may come late, as with river's `delay`: a row counts for the history of its
    entities once its label is heard.

    A row is a dict of facts, or as the `mapping` says. Labels are flags, 0 and 1, or words such as "fraud" and "legit".
    What is learnt depends on the order of the labels and on the `seed` alone.

    >>> model = StreamClassifier()
    >>> for number in range(300):
    ...     model.learn_one({"amount": float(number % 60), "country": "FR"}, number % 60 > 45)
    >>> model.predict_one({"amount": 55.0, "country": "FR"}), model.predict_one({"amount": 5.0, "country": "FR"})
    (True, False)
    """

    def __init__(self, mapping: SchemaMapping | None = None, most_bullets: int | None = None, seed: int = 0) -> None:
        self.mapping = mapping
        self.most_bullets = most_bullets
        self.seed = seed
        self._heard = 0
        self._labels: dict[bool, Any] = {False: False, True: True}
        """How the stream writes each label."""
        self._use(BulletPlaybook())
        self.playbook.assume_complete_feed()
        if mapping is not None:
            self.learner.use_mapping(mapping)

    def _use(self, playbook: BulletPlaybook) -> None:
        self.playbook = playbook
        self.learner = Learner(playbook, options=LearnerOptions(seed=self.seed, most_bullets=self.most_bullets))

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Hear the label of one row. A row without any value teaches nothing."""
        if _has_content(x):
            self._hear(self.learner.read([_named(x)]), [y])

    def learn_many(self, X: Any, y: Any) -> None:  # noqa: N803
        """Hear the labels of many rows: a data frame, and the labels in the same order."""
        self._hear(self.learner.read(X), list(y))

    def predict_proba_one(self, x: Mapping[Any, Any], **_: Any) -> dict[Any, float]:
        """The probability of each label for one row."""
        facts = self.learner.facts_of([_named(x)]) if _has_content(x) else FactTable([{}])
        fraud = float(self.learner.score_facts(facts).probabilities[0])
        return {self._labels[False]: 1 - fraud, self._labels[True]: fraud}

    def predict_proba_many(self, X: Any) -> Any:  # noqa: N803
        """The probability of each label for each row of a data frame, in pandas as river gives it."""
        import pandas as pd  # noqa: PLC0415  # river brings it

        fraud = self.learner.score_facts(self.learner.facts_of(X)).probabilities
        columns = {self._labels[False]: 1 - fraud, self._labels[True]: fraud}
        return pd.DataFrame(columns, index=getattr(X, "index", None))

    def _hear(self, rows: Sequence[Transaction], labels: Sequence[Any]) -> None:
        if len(rows) != len(labels):
            raise InputError(f"y: expected a label for each of {len(rows):,} rows, got {len(labels):,}")
        truths = [self._is_fraud(label) for label in labels]
        ids = [f"stream-{self._heard + index}" for index in range(len(rows))]
        named = [row.model_copy(update={"id": name}) for row, name in zip(rows, ids, strict=True)]
        outcomes = [Outcome(transaction_id=name, is_fraud=truth) for name, truth in zip(ids, truths, strict=True)]
        self.learner.hear_all_sync(outcomes, named)
        self._heard += len(rows)

    def _is_fraud(self, label: Any) -> bool:
        plain = label.item() if hasattr(label, "item") else label
        truth = (self.mapping or SchemaMapping()).is_fraud(plain)
        if truth is None:
            raise InputError(f"y: expected a label such as 0/1, True/False or fraud/legit, got {str(plain)[:60]!r}")
        self._labels[truth] = plain
        return truth

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "learner"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._use(self.playbook)


def _has_content(x: Mapping[Any, Any]) -> bool:
    return any(value is not None and value == value and value != "" for value in x.values())  # noqa: PLR0124  # NaN


def _named(x: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in x.items()}
