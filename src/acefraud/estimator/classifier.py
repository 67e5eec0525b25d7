"""The learner as a scikit-learn classifier, and a scorer that lets the labels of test rows arrive."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from acefraud import (
    Backtest,
    BulletPlaybook,
    Dataset,
    FactTable,
    Learner,
    LearnerOptions,
    Outcome,
    SchemaMapping,
    backtest,
    load_transactions,
    open_playbook,
)
from acefraud.display.frames import is_dask_frame
from acefraud.errors import ConfigurationError
from acefraud.estimator import plots, tables
from acefraud.estimator.inputs import Column, Labels, ReadsRows, point_out_times


class AceFraudClassifier(ClassifierMixin, TransformerMixin, ReadsRows, BaseEstimator):  # type: ignore[misc]
    """A playbook of readable rules as a scikit-learn classifier.

    It learns what `acefraud train` learns and adds up every bullet that fires, without a selection or a draw: the score
    of a row depends on that row alone and, if the mapping declares a history, on what happened before it.

    X is a data frame (pandas, polars, pyarrow, Dask) or an array. Categories, texts, times and missing values may stay
    as they are. The columns of a frame are read and guessed as those of a file, unless a `mapping` says how.

    Parameters
    ----------
    mapping : SchemaMapping, dict or path, optional
        How the columns of X are read. It may name the column with the label, so that `fit` needs no y.
    most_bullets : int, optional
        The most bullets to learn; 150 by default.
    plain : bool, default False
        Whether only short bullets are learnt: at most two tests, and lists of at most three values.
    threshold : float or str, default 0.5
        The probability from which `predict` says fraud, or a rule by which `fit` chooses it on the latest cases, as
        `acefraud train` does: "accuracy", "f1", "fpr=0.01" or "cost=5:100".
    class_weight : "balanced" or dict, optional
        The weight of each class.
    monotonic_cst : dict or sequence, optional
        1 for a feature whose higher values never lower the risk, -1 for one whose higher values never raise it, 0 for
        others: by name, or one for each column.
    pos_label : optional
        The label that means fraud. By default it is found if the labels are words such as "fraud" and "legit";
        otherwise it is the greater one.
    random_state : int, RandomState or None, default 0
        The seed of the samples that learning draws. Equal seeds give equal playbooks.

    Attributes
    ----------
    playbook_ : BulletPlaybook
        What was learnt.
    learner_ : Learner
        The learner on that playbook.
    rules_ : data frame
        The bullets with what was measured of them.
    mapping_ : SchemaMapping
        How the columns were read.
    report_ : ReadingReport
        What was guessed, left out or read in a special way, with the line of a mapping that changes it.

    Examples
    --------
    >>> import polars as pl
    >>> amounts = [float(5 + n % 50) for n in range(400)]
    >>> frame = pl.DataFrame({"amount": amounts, "country": ["FR", "DE", "ES", "IT"] * 100})
    >>> y = [int(amount > 40 and n % 7 > 0) for n, amount in enumerate(amounts)]
    >>> model = AceFraudClassifier().fit(frame, y)
    >>> model.predict(pl.DataFrame({"amount": [12.0, 48.0], "country": ["FR", "IT"]})).tolist()
    [0, 1]
    >>> model.rules_["sql"][0]
    '"amount" <= 40'
    """

    def __init__(
        self,
        *,
        mapping: SchemaMapping | Mapping[str, Any] | str | Path | None = None,
        most_bullets: int | None = None,
        plain: bool = False,
        threshold: float | str = 0.5,
        class_weight: Mapping[Any, float] | str | None = None,
        monotonic_cst: Mapping[str, int] | Sequence[int] | None = None,
        pos_label: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.mapping = mapping
        self.most_bullets = most_bullets
        self.plain = plain
        self.threshold = threshold
        self.class_weight = class_weight
        self.monotonic_cst = monotonic_cst
        self.pos_label = pos_label
        self.random_state = random_state

    # --- learning ---

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn bullets from labelled rows. What was learnt before is forgotten.

        `sample_weight`, such as the amount at risk, says how much each row counts when bullets are weighed; only ratios
        matter. What is measured of a bullet counts rows. Rows that cannot be read are left out with a warning.

        X may be a data frame of Dask, with a Dask series as y or a label among its columns. It is learnt from in parts,
        with the result of `fit` on the same rows in memory, as far as the `mapping` leaves nothing to guess: guesses
        come from the first partition. Weights need rows in memory.
        """
        if is_dask_frame(X):
            return self._fit_parts(X, y, sample_weight)
        data = self._labelled(X, y, sample_weight, reset=True)
        self._start(BulletPlaybook())
        self._study(data)
        return self

    def _fit_parts(self, X: Any, y: Any, weights: Any) -> Self:  # noqa: N803
        """Fit on a data frame of Dask: its columns are read as those of the first partition with rows."""
        if weights is not None or self.class_weight is not None:
            raise ConfigurationError("sample_weight and class_weight need rows in memory, and X is a Dask frame")
        first, labels = tables.first_partition(X, y)
        data = self._labelled(first, labels, None, reset=True, classes=None if y is None else y.unique().compute())
        self._start(BulletPlaybook())
        self.mapping_ = self._with_directions(data)
        frame = X if y is None else tables.with_texts(X, self._given_mapping().label, self.mapping_.label or "", y)
        self._learn(frame, dataset=data.name, mapping=self.mapping_, ids=False)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:  # noqa: N803
        """Go on learning from more labelled rows, heard as outcomes in their order.

        The first call studies its rows as `fit` does if they show both labels. `classes` are all labels that will come:
        the first call needs them if its rows show only one.
        """
        if self.class_weight is not None:
            raise ValueError("class_weight cannot be used with partial_fit: outcomes count alike as they come")
        first = not hasattr(self, "playbook_")
        data = self._labelled(X, y, None, reset=first, classes=classes if first else self.classes_)
        if first:
            self._start(BulletPlaybook())
        if first and 0 < data.frauds < len(data):
            self._study(data)
        else:
            self._hear(data)
        return self

    def _start(self, playbook: BulletPlaybook) -> None:
        self.playbook_ = playbook
        self.seed_ = _seed(self.random_state)
        self.heard_ = playbook.outcomes
        self.learner_ = self._new_learner()

    def _new_learner(self) -> Learner:
        options = LearnerOptions(seed=self.seed_, most_bullets=self.most_bullets, plain=bool(self.plain))
        return Learner(self.playbook_, options=options)

    def _study(self, data: Dataset) -> None:
        self.mapping_ = self._with_directions(data)
        cases, weights = data.train, data.train.weights
        if weights is not None:
            cases, weights = cases.take(weights > 0), weights[weights > 0]
            if not 0 < cases.labels.sum() < len(cases):
                raise ValueError("rows with a weight must have two classes, fraud and honest, got fewer classes")
            cases = cases.weighted(weights / weights.mean())
        self._learn(cases, dataset=data.name, mapping=self.mapping_.describe(), waiting=data.waiting)

    def _learn(self, history: Any, **options: Any) -> None:
        threshold = None if self.threshold == 0.5 else str(self.threshold)
        if not self.learner_.study(history, threshold=threshold, **options):
            warnings.warn(f"no bullet was learnt: {self.learner_.nothing_learnt()}", UserWarning, stacklevel=4)
        self._name_facts()

    def _hear(self, data: Dataset) -> None:
        if not hasattr(self, "mapping_"):
            self.mapping_ = self._with_directions(data)
            self.learner_.use_mapping(self.mapping_)
        self.learner_.playbook.assume_complete_feed()
        rows = data.train.transactions
        ids = [f"heard-{self.heard_ + index}" for index in range(len(rows))]
        labels = data.train.labels.tolist()
        outcomes = [Outcome(transaction_id=name, is_fraud=label) for name, label in zip(ids, labels, strict=True)]
        self.learner_.hear_all_sync(outcomes, rows.with_ids(np.array(ids, dtype=object)))
        self.heard_ += len(rows)
        self._name_facts()

    def _name_facts(self) -> None:
        """Name the facts that `transform` gives: those of the columns in their order, then derived ones."""
        names = self._feature_names() if hasattr(self, "n_features_in_") else []
        given = list(self.mapping_.facts_by_column(names).values())
        known = self.learner_.additive_score().facts.union(self.learner_.remembered().facts.names)
        self.facts_ = [*given, *sorted(known.difference(given))]

    def _facts(self, X: Any) -> FactTable:  # noqa: N803
        check_is_fitted(self)
        frame = self._frame(X, self.mapping_, reset=False)
        rows = load_transactions(frame, remembered=self.mapping_, name="X", ids=False)
        point_out_times(self.learner_, rows)
        return self.learner_.facts_of(rows)

    # --- deciding ---

    def decision_function(self, X: Any) -> Any:  # noqa: N803
        """The log-odds of `classes_[1]`: those of fraud, or their negative if fraud is `classes_[0]`."""
        if is_dask_frame(X):
            return tables.by_partition(self.decision_function, X, np.empty(0))
        odds: Column = self._score(X).log_odds
        return odds if self._fraud_at == 1 else -odds

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """The probability of each class, in the order of `classes_`.

        Of a data frame of Dask it is a Dask array, as are `predict` and `decision_function`. Each partition is scored
        by itself: with a history, its rows do not count for those of other partitions.
        """
        if is_dask_frame(X):
            return tables.by_partition(self.predict_proba, X, np.empty((0, 2)))
        fraud = self._score(X).probabilities
        columns = (1 - fraud, fraud) if self._fraud_at == 1 else (fraud, 1 - fraud)
        return np.column_stack(columns)

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The label of each row: fraud from the threshold on."""
        if is_dask_frame(X):
            return tables.by_partition(self.predict, X, self.classes_[:0])
        fraud = self._score(X).probabilities
        return self.classes_[np.where(fraud >= self.threshold_, self._fraud_at, 1 - self._fraud_at)]

    @property
    def threshold_(self) -> float:
        """The probability from which `predict` says fraud."""
        check_is_fitted(self)
        return self.learner_.threshold

    def _score(self, X: Any) -> Any:  # noqa: N803
        facts = self._facts(X)  # first, since it says so if nothing was fitted
        return self.learner_.score_facts(facts)

    # --- measuring ---

    def backtest(self, X: Any, y: Any = None) -> Backtest:  # noqa: N803
        """The figures of `predict` and `predict_proba` on labelled rows, and what they say of each bullet.

        Pass later rows than those that it was fitted on. If the mapping declares a history, each row sees the labels
        that would have arrived by then, and never its own; `predict_proba`, which is given no labels, lacks them.
        """
        check_is_fitted(self)
        return backtest(self.learner_, self._measured(X, y, self.mapping_), every_bullet=True)

    def _backtested(self, X: Any, y: Any) -> Any:  # noqa: N803
        """The facts, labels and scores of labelled rows; without rows, the facts and labels that are remembered."""
        check_is_fitted(self)
        if X is None:
            return self.learner_.remembered()
        data = self._measured(X, y, self.mapping_)
        return self.learner_.backtest_scores(data.train, data.waiting, every_bullet=True)

    # --- reading what was learnt ---

    @property
    def rules_(self) -> Any:
        """The bullets as a data frame, the heaviest first: English, SQL, what was measured, and the weight."""
        check_is_fitted(self)
        return self.playbook_.to_frame(tables.backend_for(self._backend))

    @property
    def feature_importances_(self) -> Column:
        """How much of the score comes from each column of X. They sum to one, or are all zero if nothing was learnt.

        A rule's weight is shared equally by the facts that it tests, and a fact belongs to the columns that it is made
        from: the hour to the time, a count of past payments to the entity. The importance of a fact is the mean
        distance of what it adds to the log-odds of a case from its mean, on the cases that the playbook remembers.
        """
        check_is_fitted(self)
        return tables.importances(self.learner_, self.mapping_, self._feature_names())

    def explain(self, X: Any, rows: Any = None) -> Any:  # noqa: N803
        """One row for each reason of each row of X. The contributions of a row add up to its log-odds of fraud.

        `rows` are the places in X to explain, if not all. With a history that differs from passing those rows alone,
        which would then lack the rows before them.
        """
        facts = self._facts(X)
        places = np.arange(len(facts)) if rows is None else np.arange(len(facts))[np.asarray(rows)].reshape(-1)
        found = tables.reason_columns(self.learner_, facts.take(places))
        return tables.result_frame({**found, "row": places[found["row"]]}, tables.library_of(X))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:  # noqa: N803
        """Fit, then `transform` of the same rows, each with the history that it had at its own time."""
        data = self._labelled(X, y, sample_weight, reset=True)
        self._start(BulletPlaybook())
        self._study(data)
        if not self.mapping_.entities:
            return self.transform(X)
        if len(data) != len(tables.eager(X)):
            raise ValueError("fit_transform with a history needs rows that can all be read and have a label")
        known = data.with_history().with_read_facts().train
        place = {name: at for at, name in enumerate(known.transactions.ids.tolist())}
        return self._given(
            X, known.facts.take(np.array([place[name] for name in data.train.transactions.ids.tolist()]))
        )

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Every fact that the score looks at: the columns, and what was derived from texts, times and history.

        A data frame comes back as one, an array as an array. With `to_sql`, it gives the score in a database.
        """
        return self._given(X, self._facts(X))

    def _given(self, X: Any, facts: FactTable) -> Any:  # noqa: N803
        """Facts in the form in which X came, with its index if it has one."""
        columns, library = tables.fact_columns(facts, self.facts_), tables.library_of(X)
        if library == tables.ARRAY:
            return np.column_stack([column.to_numpy() for column in columns.values()])
        frame = tables.result_frame(columns, library)
        return frame.set_axis(X.index) if library == "pandas" else frame

    def get_feature_names_out(self, input_features: Any = None) -> Column:  # noqa: ARG002 - scikit-learn passes it
        """The names of the facts that `transform` returns."""
        check_is_fitted(self)
        return np.array(self.facts_, dtype=object)

    def to_sql(self, table: str = "facts") -> str:
        """A query that adds `log_odds` and `probability` of fraud to a table with the columns of `transform`."""
        check_is_fitted(self)
        name = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
        return (
            f"SELECT scored.*, 1e0 / (1e0 + EXP(-scored.log_odds)) AS probability\n"
            f"FROM (\nSELECT facts.*,\n  {self.learner_.additive_score().to_sql()}\n"
            f"  AS log_odds\nFROM {name} AS facts\n) AS scored"
        )

    def plot_rules(self, most: int = 20, ax: Any = None) -> Any:
        """What was measured of the heaviest bullets, with intervals. Returns the axes; needs matplotlib."""
        check_is_fitted(self)
        return plots.plot_rules(self.playbook_.get_bullets_for_node(self.learner_.options.node), most, ax)

    def plot_learning(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:  # noqa: N803
        """How well fraud is told apart as bullets are added, the heaviest first. Returns the axes; needs matplotlib.

        Without X and y it shows the cases that the playbook remembers, which it has learnt from. With a history, each
        row of X sees the labels that would have arrived; so in the other plots.
        """
        shown = self._backtested(X, y)
        return plots.plot_learning(self.learner_, shown.facts, shown.labels, ax, seen=X is None)

    def plot_coverage(self, X: Any = None, y: Any = None, most: int = 20, ax: Any = None) -> Any:  # noqa: N803
        """On which share of frauds and of honest cases the heaviest bullets hold. Returns the axes."""
        shown = self._backtested(X, y)
        return plots.plot_coverage(self.learner_, shown.facts, shown.labels, most, ax)

    def plot_shape(self, fact: str, X: Any = None, y: Any = None, ax: Any = None) -> Any:  # noqa: N803
        """What a fact adds to the log-odds of fraud, by its value. Returns the axes.

        A rule's weight is shared equally by the facts that it tests, so the band shows how far other facts matter.
        """
        return plots.plot_shape(self.learner_, self._backtested(X, y).facts, fact, ax)

    def plot_calibration(self, X: Any, y: Any = None, ax: Any = None) -> Any:  # noqa: N803
        """The share of fraud where the probability is about the same, in ten equal groups. Returns the axes."""
        scores = self._backtested(X, y)
        return plots.plot_calibration(scores.scores.probabilities, scores.labels, ax)

    def plot_precision_recall(self, X: Any, y: Any = None, ax: Any = None) -> Any:  # noqa: N803
        """Precision by the share of frauds caught, with a dot where `predict` stands. Returns the axes."""
        scores = self._backtested(X, y)
        return plots.plot_precision_recall(scores.scores.probabilities, scores.labels, self.threshold_, ax)

    # --- files ---

    def save(self, path: str | Path) -> None:
        """Write the playbook to a new file, for `acefraud decide`, `open_playbook` and `load`."""
        check_is_fitted(self)
        self.playbook_.save(path)

    @classmethod
    def load(cls, path: str | Path, *, read_only: bool = False, **parameters: Any) -> Self:
        """A classifier on the playbook in a file. `partial_fit` goes on learning there, unless it is `read_only`.

        Its labels are those that the playbook was trained with. It reads the columns of data frames by their names, and
        is pickled as the path of its file.
        """
        model = cls(**parameters)
        model._start(open_playbook(path, create=False, read_only=read_only))
        model.mapping_ = model.learner_.mapping or SchemaMapping()
        labels = Labels.from_mapping(model.mapping_)
        model.classes_, model._fraud_at, model._backend = labels.classes, labels.fraud_at, tables.ARRAY
        model.threshold = parameters.get("threshold", model.threshold_)
        model._name_facts()
        return model

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "learner_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "playbook_"):
            self.learner_ = self._new_learner()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _seed(random_state: Any) -> int:
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


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
