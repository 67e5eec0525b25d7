"""The two labels of y, and which of them means fraud."""

from __future__ import annotations

import warnings
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
        fraud, honest = (str(self.classes[place]) for place in (self.fraud_at, 1 - self.fraud_at))
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
