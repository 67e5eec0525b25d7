"""The way in: a shipped dataset by its name, or a file of labelled transactions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from acefraud.core.transactions import Transactions
from acefraud.datasets.dataset import Dataset
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.world import WorldOptions, generate
from acefraud.display.frames import is_frame
from acefraud.display.short_repr import given
from acefraud.errors import ConfigurationError, InputError, point_out
from acefraud.support.arguments import check_type, nearest_file
from acefraud.support.arrays import FloatArray

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

SHIPPED = ("complex_fraud_detection",)
"""Datasets that need no file."""

_TRAIN_PERIOD = 0.6


class ShippedDatasetWarning(UserWarning):
    """A path does not exist and names a shipped dataset, which was loaded instead.

    >>> import warnings
    >>> from acefraud.datasets.world import WorldOptions
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ShippedDatasetWarning)
    ...     data = load_dataset("agents/complex_fraud_detection.json", options=WorldOptions(transactions=20))
    >>> data.name
    'complex_fraud_detection'
    """


def load_dataset(
    source: str | Path | IntoFrame,
    *,
    mapping: SchemaMapping | Mapping[str, Any] | Path | str | None = None,
    remembered: SchemaMapping | None = None,
    strict: bool = False,
    seed: int = 0,
    options: WorldOptions | None = None,
    name: str | None = None,
    weights: npt.ArrayLike | None = None,
    ids: bool = True,
    labels_apart: bool = False,
) -> Dataset:
    """A shipped dataset by its name, or labelled transactions from a file or a data frame.

    A data frame may come from pandas, polars, pyarrow or any other library that narwhals reads. Its columns are read
    and guessed as those of a file; NaN is an unknown number. ``mapping`` is a `SchemaMapping`, its fields as a dict, or
    the path of a TOML file. ``name`` is what messages call the data: by default the file or "frame". ``weights``, one
    for each row of a data frame, say how much it counts when bullets are weighed. Without ``ids``, rows of a data frame
    that bring none are numbered, not named by their content, which is faster, and ids may repeat. ``labels_apart`` says
    that the label was put beside a data frame, so that no other column is the label by its name alone.

    If there is no such file, a path that ends in the name of a shipped dataset and ``.json`` stands for that one, with
    a `ShippedDatasetWarning`: so ``load_dataset("agents/complex_fraud_detection.json")`` works anywhere. The shipped
    dataset is generated from ``seed`` and ``options``, and comes split by time. A file comes whole, as rows to learn
    from; `Dataset.split` splits it. A column that is likely to leak the label is left out with an `InputWarning`,
    unless the mapping names it; `Dataset.remarks` says what else is worth knowing. With ``strict`` the first bad row
    raises, otherwise bad rows are collected and the rest is used.

    >>> import polars as pl
    >>> data = load_dataset(pl.DataFrame({"amount": [5.0, 900.0], "is_fraud": [0, 1]}))
    >>> len(data), data.frauds, data.mapping.label
    (2, 1, 'is_fraud')

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "orders.csv")
    ...     _ = file.write_text("id,amount,vpn,is_fraud\\nt1,900,yes,1\\nt2,12,no,0\\n", "utf-8")
    ...     data = load_dataset(file)
    >>> [case.transaction.facts for case in data], [case.is_fraud for case in data]
    ([{'amount': 900.0, 'vpn': True}, {'amount': 12.0, 'vpn': False}], [True, False])

    >>> from acefraud.datasets.world import WorldOptions
    >>> shipped = load_dataset("complex_fraud_detection", options=WorldOptions(transactions=50))
    >>> len(shipped.train), len(shipped.test)
    (27, 23)
    """
    mapping = _mapping_of(mapping)
    if is_frame(source):
        if options is not None:
            raise ConfigurationError(f"options shape a shipped dataset ({', '.join(SHIPPED)}); this is a data frame")
        from acefraud.datasets.frames import FRAME, frame_table  # noqa: PLC0415
        from acefraud.datasets.rows import read_dataset  # noqa: PLC0415

        table = frame_table(source, name or FRAME)
        checked = None if weights is None else _checked_weights(weights, table.height)
        table = replace(table, weights=checked, labels_apart=labels_apart)
        data = read_dataset(table, table.name, mapping=mapping, remembered=remembered, strict=strict, ids=ids)
        return _warned(data)
    if weights is not None:
        raise ConfigurationError("weights belong to the rows of a data frame; the source is none")
    path = _path_of(source, "the path of a file, the name of a shipped dataset")
    shipped = path.stem if path.suffix == ".json" else str(source)
    if shipped in SHIPPED and not path.exists():
        if mapping is not None:
            raise ConfigurationError(f"the shipped dataset '{shipped}' takes no mapping")
        if str(source) != shipped:
            message = f"there is no file {source}: the shipped dataset '{shipped}' is used"
            warnings.warn(message, ShippedDatasetWarning, stacklevel=2)
        check_type("options", options or WorldOptions(), WorldOptions, "WorldOptions", ConfigurationError)
        return _generate(shipped, seed, options or WorldOptions())
    if options is not None:
        raise ConfigurationError(f"options shape a shipped dataset ({', '.join(SHIPPED)}); {source} is a file")
    if not path.exists():
        shipped = f"the shipped datasets are: {', '.join(SHIPPED)}{nearest_file(path)}"
        raise InputError(f"there is no such file, and {shipped}", file=str(source))
    # Reading files needs polars, which is slow to import; the shipped dataset does not.
    from acefraud.datasets.files import read_table  # noqa: PLC0415
    from acefraud.datasets.rows import read_dataset  # noqa: PLC0415

    table = read_table(path, name=name)
    return _warned(read_dataset(table, name or path.stem, mapping=mapping, remembered=remembered, strict=strict))


def _warned(data: Dataset) -> Dataset:
    """The dataset, with a warning of each guess that may cost something."""
    for remark in data.report:
        if remark.weight == "warning":
            point_out(f"{data.name}: {remark}")
    return data


def load_transactions(
    source: str | Path | IntoFrame,
    *,
    mapping: SchemaMapping | Mapping[str, Any] | Path | str | None = None,
    remembered: SchemaMapping | None = None,
    name: str | None = None,
    ids: bool = True,
) -> Transactions:
    """Transactions to decide, from a file or a data frame. The first row that cannot be read raises InputError.

    A label is neither needed nor read. ``mapping`` says how columns are read; without one, a ``remembered`` one does,
    such as that of an earlier `load_dataset`, and columns that it does not know are guessed. Without ``ids``, rows that
    bring none stay without: enough to score them, and faster.

    >>> import polars as pl
    >>> rows = load_transactions(pl.DataFrame({"id": ["t1", "t2"], "amount": [5.0, 900.0]}))
    >>> rows.ids.tolist(), rows.facts.numbers("amount").tolist()
    (['t1', 't2'], [5.0, 900.0])
    """
    from acefraud.datasets.rows import read_transactions  # noqa: PLC0415

    rows = source if is_frame(source) else _path_of(source, "the path of a file")
    loaded = read_transactions(
        rows, mapping=_mapping_of(mapping), remembered=remembered, strict=True, name=name, ids=ids
    )
    return loaded.rows


def _mapping_of(given: SchemaMapping | Mapping[str, Any] | Path | str | None) -> SchemaMapping | Path | None:
    if isinstance(given, str):
        return Path(given)
    return SchemaMapping(**given) if isinstance(given, Mapping) else given


def _path_of(source: object, others: str) -> Path:
    if not isinstance(source, str | PathLike):
        accepted = f"{others}, or a data frame of pandas, polars or pyarrow"
        raise InputError(f"source: expected {accepted}, got {given(source)}")
    return Path(source)


def _checked_weights(weights: npt.ArrayLike, rows: int) -> FloatArray:
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (rows,):
        raise InputError(f"weights: expected a number for each of {rows:,} rows, got an array of shape {found.shape}")
    if not (np.isfinite(found) & (found >= 0)).all():
        raise InputError("weights: expected finite numbers of at least 0")
    return found


def _generate(name: str, seed: int, options: WorldOptions) -> Dataset:
    cases = generate(options, seed)
    times = [case.transaction.time for case in cases if case.transaction.time is not None]
    cut = times[0] + _TRAIN_PERIOD * (times[-1] - times[0]) + timedelta(microseconds=1)
    at = sum(time < cut for time in times)
    mapping = SchemaMapping(label="answer", text="query", difficulty="difficulty")
    return Dataset(name=name, train=cases[:at], test=cases[at:], mapping=mapping)
