"""The two labels of y, and which of them means fraud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from acefraud import SchemaMapping


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

    def are_fraud(self, y: Any) -> npt.NDArray[np.bool_]:
        """For each label whether it means fraud."""
        given = column_or_1d(y, warn=True)
        unknown = given[~np.isin(given, self.classes)]
        if len(unknown):
            raise ValueError(f"y has the label {unknown[0]!r}, which is none of the classes {self.classes.tolist()}")
        return np.asarray(given == self.classes[self.fraud_at], dtype=np.bool_)


def _place_of_fraud(classes: npt.NDArray[Any], mapping: SchemaMapping, pos_label: Any) -> int:
    if pos_label is not None:
        there = np.flatnonzero(classes == pos_label)
        if not len(there):
            raise ValueError(f"pos_label={pos_label!r} is none of the labels {classes.tolist()}")
        return int(there[0])
    meant = [mapping.is_fraud(label) for label in classes.tolist()]
    return meant.index(True) if set(meant) == {True, False} else 1
