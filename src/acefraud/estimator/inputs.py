"""X and y of a classifier, read as labelled cases or as facts, and which of the two labels means fraud."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, column_or_1d, validate_data

from acefraud import Dataset, Learner, ReadingReport, SchemaMapping, Transactions, load_dataset
from acefraud.errors import point_out
from acefraud.estimator import tables

Column = npt.NDArray[Any]
_NEEDS_Y = "requires y to be passed, but the target y is None; or pass a data frame whose mapping names the label"


@dataclass(frozen=True, slots=True)
class Labels:
    """Two labels in the order of scikit-learn, and the place of the one that means fraud."""

    classes: npt.NDArray[Any]
    fraud_at: int

    @classmethod
    def of(cls, y: Any, mapping: SchemaMapping, pos_label: Any = None, classes: Any = None) -> Labels:
        """The labels in y, or those that are announced as `classes`."""
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        found = np.unique(column_or_1d(y) if classes is None else np.asarray(classes))
        if len(found) != 2:
            raise ValueError(f"y must have two classes, fraud and honest, got {len(found)} class: {found[:3].tolist()}")
        return cls(found, _place_of_fraud(found, mapping, pos_label))

    @classmethod
    def from_mapping(cls, mapping: SchemaMapping) -> Labels:
        """The labels that a playbook was trained with, as far as its mapping has them; else 0 and 1."""
        if len(mapping.fraud_values) != 1 or len(mapping.legit_values) != 1:
            return cls(np.array([0, 1]), 1)
        fraud, honest = (_plain(values[0]) for values in (mapping.fraud_values, mapping.legit_values))
        classes = np.unique(np.array([honest, fraud]))
        return cls(classes, int(np.flatnonzero(classes == fraud)[0]))

    def written_to(self, mapping: SchemaMapping) -> SchemaMapping:
        """The mapping with these labels, so that whoever loads the playbook knows them."""
        fraud, honest = (str(self.classes[at]) for at in (self.fraud_at, 1 - self.fraud_at))
        return mapping.model_copy(update={"fraud_values": (fraud,), "legit_values": (honest,)})

    def are_fraud(self, y: Any) -> npt.NDArray[np.bool_]:
        """For each label whether it means fraud."""
        given = column_or_1d(y, warn=True)
        unknown = given[~np.isin(given, self.classes)]
        if len(unknown):
            raise ValueError(f"y has the label {unknown[0]!r}, which is none of the classes {self.classes.tolist()}")
        return np.asarray(given == self.classes[self.fraud_at], dtype=np.bool_)


def _plain(label: str) -> bool | int | float | str:
    """A label as it was before it was written down."""
    if label in ("True", "False"):
        return label == "True"
    for kind in (int, float):
        try:
            return kind(label)
        except ValueError:
            continue
    return label


def _place_of_fraud(classes: npt.NDArray[Any], mapping: SchemaMapping, pos_label: Any) -> int:
    if pos_label is not None:
        there = np.flatnonzero(classes == pos_label)
        if not len(there):
            raise ValueError(f"pos_label={pos_label!r} is none of the labels {classes.tolist()}")
        return int(there[0])
    meant = [mapping.is_fraud(label) for label in classes.tolist()]
    if meant.count(True) == 1:
        return meant.index(True)
    if meant.count(False) == 1:
        return 1 - meant.index(False)
    if isinstance(classes[1], str):
        honest, fraud = classes.tolist()
        warnings.warn(f"{fraud!r} is taken for fraud, and {honest!r} not; pos_label= says it", stacklevel=6)
    return 1


class ReadsRows:
    """What a classifier does with X and y before it learns or scores. It leaves what scikit-learn expects of a fit."""

    mapping: SchemaMapping | Mapping[str, Any] | str | Path | None
    class_weight: Mapping[Any, float] | str | None
    monotonic_cst: Mapping[str, int] | Sequence[int] | None
    pos_label: Any
    classes_: Column
    n_features_in_: int
    feature_names_in_: Column
    report_: ReadingReport
    _fraud_at: int
    """The place of the label that means fraud among the classes."""
    _backend: str
    """The library of the frames that it was fitted on, in which results are given."""

    def _labelled(self, X: Any, y: Any, weights: Any, *, reset: bool, classes: Any = None) -> Dataset:  # noqa: N803
        given = mapping = self._given_mapping()
        if y is None:
            data = self._labelled_by_column(X, weights, mapping, reset=reset)
        else:
            frame = self._frame(X, mapping, reset=reset)
            if not tables.has_names(X):
                mapping = mapping.model_copy(update=tables.ROLELESS | {"numbers": _number_columns(frame)})
            else:  # a direction needs an order, which flags have not
                directions = self._directions()
                ordered = (name for name in _number_columns(frame) if directions.get(name))
                mapping = mapping.model_copy(update={"numbers": (*mapping.numbers, *ordered)})
            labels = Labels.of(y, mapping, self.pos_label, classes)
            is_fraud = labels.are_fraud(y)
            check_consistent_length(frame, is_fraud)
            rows = X if tables.has_names(X) else frame  # with when labels became known
            labelled, mapping = tables.with_labels(rows, mapping, is_fraud)
            checked = _checked_weights(weights, frame)
            data = load_dataset(labelled, mapping=mapping, name="X", weights=checked, ids=False, labels_apart=True)
            self.classes_, self._fraud_at = labels.classes, labels.fraud_at
            data = replace(data, mapping=labels.written_to(data.mapping))
        remarks = []
        if data.bad_rows:
            more = f", and {len(data.bad_rows) - 1:,} more" if len(data.bad_rows) > 1 else ""
            remarks.append(f"rows that cannot be read are left out: {data.bad_rows[0]}{more}")
        if reset and (remark := data.delay_remark(given)):
            remarks.append(remark)
        for remark in remarks:
            warnings.warn(remark, UserWarning, stacklevel=3)
        self.report_ = ReadingReport((*data.report, *remarks))
        return self._with_class_weights(data)

    def _labelled_by_column(self, X: Any, weights: Any, mapping: SchemaMapping, *, reset: bool) -> Dataset:  # noqa: N803
        if not tables.has_names(X):
            raise ValueError(f"This {type(self).__name__} estimator {_NEEDS_Y}")
        data = load_dataset(X, mapping=mapping, name="X", weights=_checked_weights(weights, X), ids=False)
        self._frame(X, data.mapping, reset=reset)
        self.classes_, self._fraud_at = np.array([0, 1]), 1
        return data

    def _measured(self, X: Any, y: Any, mapping: SchemaMapping) -> Dataset:  # noqa: N803
        """Labelled rows to measure what was learnt with, read as those to predict are."""
        frame = self._frame(X, mapping, reset=False)
        rows = X if tables.has_names(X) else frame  # with when labels became known
        if y is not None:
            check_consistent_length(frame, y)
            is_fraud = Labels(self.classes_, self._fraud_at).are_fraud(y)
            rows, mapping = tables.with_labels(rows, mapping, is_fraud)
        return load_dataset(rows, remembered=mapping, name="X", strict=True, ids=False, labels_apart=y is not None)

    def _with_class_weights(self, data: Dataset) -> Dataset:
        if self.class_weight is None:
            return data
        labels = data.train.labels.astype(np.int64)
        codes = labels if self._fraud_at == 1 else 1 - labels
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[codes])
        weights = np.ones(len(codes)) if data.train.weights is None else data.train.weights
        return replace(data, train=data.train.weighted(weights * by_class[codes]))

    def _given_mapping(self) -> SchemaMapping:
        if self.mapping is None:
            return SchemaMapping()
        if isinstance(self.mapping, Mapping):
            return SchemaMapping(**self.mapping)
        return self.mapping if isinstance(self.mapping, SchemaMapping) else SchemaMapping.load(self.mapping)

    def _with_directions(self, data: Dataset) -> SchemaMapping:
        """The mapping with the directions of `monotonic_cst`, by the names of the facts that features become."""
        if not (given := self._directions()):
            return data.mapping
        names = self._feature_names()
        for name, direction in given.items():
            if name not in names:
                raise ValueError(f"monotonic_cst names {name!r}, and the features of X are: {', '.join(names[:20])}")
            if direction not in (-1, 0, 1):
                raise ValueError(f"monotonic_cst takes -1, 0 or 1, got {direction!r} for {name!r}")
        facts = data.mapping.facts_by_column(names)
        rising, falling = (tuple(facts.get(n, n) for n, to in given.items() if to == side) for side in (1, -1))
        directions = {"rising": (*data.mapping.rising, *rising), "falling": (*data.mapping.falling, *falling)}
        return data.mapping.model_copy(update=directions)

    def _directions(self) -> Mapping[str, int]:
        """`monotonic_cst` by the names of features."""
        given = self.monotonic_cst
        if given is None or isinstance(given, Mapping):
            return given or {}
        names = self._feature_names()
        if len(given) != len(names):
            raise ValueError(f"monotonic_cst must have {len(names)} directions, one for each feature, got {len(given)}")
        return dict(zip(names, given, strict=True))

    def _feature_names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{index}" for index in range(self.n_features_in_)]

    def _frame(self, X: Any, mapping: SchemaMapping, *, reset: bool) -> Any:  # noqa: N803
        """X as a data frame of features: without the label and the time at which it became known."""
        if tables.has_names(X):
            features = tables.without_columns(X, (mapping.label, mapping.known_at))
            if reset or hasattr(self, "n_features_in_"):
                validate_data(self, features, reset=reset, skip_check_array=True)
            else:  # a playbook from a file knows the names of its columns alone
                _require_columns(features, mapping)
            if reset:
                self._backend = tables.backend_of(features)
            return features
        cells = validate_data(self, X, dtype=None, ensure_all_finite="allow-nan", reset=reset)
        if reset:
            self._backend = tables.ARRAY
        return tables.array_frame(cells, self._feature_names())


def point_out_times(learner: Learner, rows: Transactions) -> None:
    """Warn if the history of rows to score lacks what it would have in production."""
    memory = learner.memory()
    if memory is None:
        return
    newest, known = memory.past(rows, learner.playbook.ledger)
    span = rows.take(~known).span
    if newest is None or span is None:
        return
    first, last = span
    if first < newest:
        point_out(
            f"X begins at {first}, before the latest row in the history of this model ({newest}): its rows get a past "
            "that they did not have. Score later rows; split with TimeSeriesSplit in the order of time, not by chance"
        )
    uses_labels = learner.additive_score().facts.intersection(memory.plan.label_facts)
    if uses_labels and last - newest > timedelta(microseconds=memory.plan.delay):
        point_out(
            f"X reaches {last - newest} past the latest row in the history of this model, and labels take "
            f"{memory.plan.label_delay} (label_delay): those that would have arrived are unknown here, so known frauds "
            "are missing. backtest(X, y) and scoring=acefraud.backtest_scorer() count them; partial_fit(X, y) adds them"
        )


def _require_columns(frame: Any, mapping: SchemaMapping) -> None:
    there = tables.eager(frame).columns
    missing = [name for name in (*mapping.numbers, *mapping.flags, *mapping.categories) if name not in there]
    if missing:
        raise ValueError(f"X lacks columns that the playbook was trained with: {', '.join(missing[:20])}")


def _number_columns(frame: Any) -> tuple[str, ...]:
    return tuple(column.name for column in tables.eager(frame).iter_columns() if column.dtype.is_numeric())


def _checked_weights(weights: Any, frame: Any) -> Column | None:
    if weights is None:
        return None
    checked: Column = _check_sample_weight(weights, frame, ensure_non_negative=True, ensure_same_device=False)
    if not checked.any():
        raise ValueError("sample_weight must have a weight above zero")
    return checked
