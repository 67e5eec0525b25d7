"""The way in: a shipped dataset by its name, or a file of labelled transactions."""

from __future__ import annotations

import warnings
from datetime import timedelta
from os import PathLike
from pathlib import Path

from acefraud.core.arguments import check_type
from acefraud.datasets.dataset import Dataset
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.world import WorldOptions, generate
from acefraud.errors import ConfigurationError, InputError

SHIPPED = ("complex_fraud_detection",)
"""Datasets that need no file."""

_TRAIN_PERIOD = 0.6


class ShippedDatasetWarning(UserWarning):
    """A path does not exist and names a shipped dataset, which was loaded instead."""


def load_dataset(
    source: str | Path,
    *,
    mapping: SchemaMapping | Path | None = None,
    remembered: SchemaMapping | None = None,
    strict: bool = False,
    seed: int = 0,
    options: WorldOptions | None = None,
) -> Dataset:
    """A shipped dataset by its name, or labelled transactions from a file.

    If there is no such file, a path that ends in the name of a shipped dataset and ``.json`` stands for that one, with
    a `ShippedDatasetWarning`: so ``load_dataset("agents/complex_fraud_detection.json")`` works anywhere. The shipped
    dataset is generated from ``seed`` and ``options``, and comes split by time. A file comes whole, as rows to learn
    from; `Dataset.split` splits it. With ``strict`` the first bad row raises, otherwise bad rows are collected and the
    rest is used.
    """
    check_type("source", source, (str, PathLike), "the path of a file or the name of a shipped dataset")
    path = Path(source)
    name = path.stem if path.suffix == ".json" else str(source)
    if name in SHIPPED and not path.exists():
        if mapping is not None:
            raise ConfigurationError(f"the shipped dataset '{name}' takes no mapping")
        if str(source) != name:
            message = f"there is no file {source}: the shipped dataset '{name}' is used"
            warnings.warn(message, ShippedDatasetWarning, stacklevel=2)
        check_type("options", options or WorldOptions(), WorldOptions, "WorldOptions", ConfigurationError)
        return _generate(name, seed, options or WorldOptions())
    if options is not None:
        raise ConfigurationError(f"options shape a shipped dataset ({', '.join(SHIPPED)}); {source} is a file")
    if not path.exists():
        raise InputError(f"there is no such file, and the shipped datasets are: {', '.join(SHIPPED)}", file=str(source))
    # Reading files needs polars, which is slow to import; the shipped dataset does not.
    from acefraud.datasets.files import read_table  # noqa: PLC0415
    from acefraud.datasets.rows import read_dataset  # noqa: PLC0415

    return read_dataset(read_table(path), path.stem, mapping=mapping, remembered=remembered, strict=strict)


def _generate(name: str, seed: int, options: WorldOptions) -> Dataset:
    cases = generate(options, seed)
    times = [case.transaction.time for case in cases if case.transaction.time is not None]
    cut = times[0] + _TRAIN_PERIOD * (times[-1] - times[0]) + timedelta(microseconds=1)
    at = sum(time < cut for time in times)
    mapping = SchemaMapping(label="answer", text="query", difficulty="difficulty")
    return Dataset(name=name, train=cases[:at], test=cases[at:], mapping=mapping)
