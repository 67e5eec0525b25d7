"""A classifier on data frames of Dask: what is learnt and predicted is that of the same rows in pandas."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.learning.test_parts import COLUMNS, learnt, orders

from acefraud import AceFraudClassifier, SchemaMapping
from acefraud.errors import ConfigurationError

dask = pytest.importorskip("dask.dataframe")
UNTIMED = {"time": "", "history": None, "label": "fraud", "amount": "amount", "known_at": ""}


def rows_of(columns: dict[str, Any], *, labelled: bool = True) -> Any:
    rows = orders(timed=bool(columns["time"]), ids=False).to_pandas()
    return rows[rows["fraud"] != ""] if labelled else rows


def fitted(X: Any, y: Any = None, **parameters: Any) -> AceFraudClassifier:  # noqa: N803
    with warnings.catch_warnings(action="ignore"):
        return AceFraudClassifier(**parameters).fit(X, y)


@pytest.mark.parametrize("columns", [UNTIMED, pytest.param(COLUMNS, marks=pytest.mark.wide)], ids=["plain", "history"])
def test_a_column_of_labels(columns: dict[str, Any]) -> None:
    rows = rows_of(columns, labelled=False)
    mapping = fitted(rows, mapping=SchemaMapping(**columns)).mapping_
    whole, parted = (fitted(X, mapping=mapping) for X in (rows, dask.from_pandas(rows, npartitions=3)))
    assert learnt(whole.playbook_) == learnt(parted.playbook_)
    assert whole.facts_ == parted.facts_
    assert len(parted.rules_) > 1


@pytest.mark.parametrize(
    "labels",
    [("fine", "fraud"), *(pytest.param(pair, marks=pytest.mark.wide) for pair in ((0, 1), (0.0, 1.0), (True, False)))],
)
def test_labels_apart(labels: tuple[Any, Any]) -> None:
    rows = rows_of(UNTIMED)
    y = rows.pop("fraud").map({"0": labels[0], "1": labels[1]})
    mapping = SchemaMapping(**{**UNTIMED, "label": ""})
    parameters = {"mapping": fitted(rows, y, mapping=mapping).mapping_.model_copy(update={"label": ""})}
    whole = fitted(rows, y, pos_label=labels[1], monotonic_cst={"amount": 1}, **parameters)
    parted = fitted(
        dask.from_pandas(rows, npartitions=3),
        dask.from_pandas(y, npartitions=3),
        pos_label=labels[1],
        monotonic_cst={"amount": 1},
        **parameters,
    )
    assert learnt(whole.playbook_) == learnt(parted.playbook_)
    assert whole.classes_.tolist() == parted.classes_.tolist()
    assert whole.feature_names_in_.tolist() == parted.feature_names_in_.tolist()


def test_predictions_are_dask_arrays() -> None:
    rows = rows_of(UNTIMED)
    model = fitted(rows, mapping=UNTIMED)
    frame = dask.from_pandas(rows, npartitions=4)
    frame = dask.concat([frame[frame["amount"] < 0], frame])
    for method in (model.predict_proba, model.predict, model.decision_function):
        found = method(frame)
        assert type(found).__module__.startswith("dask.array")
        assert found.ndim == method(rows).ndim
        assert np.array_equal(found.compute(), method(rows))


@pytest.mark.wide
@pytest.mark.enable_socket
def test_a_cluster_learns_and_predicts_the_same() -> None:
    distributed = pytest.importorskip("distributed")
    rows = rows_of(UNTIMED)
    model = fitted(rows, mapping=UNTIMED)
    frame = dask.from_pandas(rows, npartitions=3)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        parted = fitted(frame, mapping=model.mapping_)
        predicted = parted.predict_proba(frame).compute()
    assert learnt(model.playbook_) == learnt(parted.playbook_)
    assert np.array_equal(predicted, model.predict_proba(rows))


def test_what_needs_rows_in_memory_is_an_error() -> None:
    rows = rows_of(UNTIMED)
    frame = dask.from_pandas(rows, npartitions=2)
    with pytest.raises(ConfigurationError, match="sample_weight and class_weight"):
        AceFraudClassifier(mapping=UNTIMED).fit(frame, sample_weight=np.ones(len(rows)))
    with pytest.raises(ConfigurationError, match="sample_weight and class_weight"):
        AceFraudClassifier(mapping=UNTIMED, class_weight="balanced").fit(frame)
    with pytest.raises(ConfigurationError, match="y: expected a Dask series"):
        AceFraudClassifier(mapping=UNTIMED).fit(frame, rows["fraud"])
    with pytest.raises(ConfigurationError, match="columns have names"):
        AceFraudClassifier().fit(dask.from_pandas(rows.set_axis(range(rows.shape[1]), axis=1), npartitions=2))
    with pytest.raises(ValueError, match="0 sample"):
        AceFraudClassifier().fit(frame[frame["amount"] < 0])
