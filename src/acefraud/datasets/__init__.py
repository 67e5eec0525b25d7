"""Datasets: files of transactions, mappings of their columns, and the synthetic world.

`loading.load_dataset` is the way in. A file becomes a table (`files`), and everything after works on the table: columns
become facts (`assembly`), and rows become cases, transactions or outcomes (`rows`). May import facts, core, settings
and errors. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acefraud.datasets.dataset import Dataset
    from acefraud.datasets.guess import guess_mapping
    from acefraud.datasets.loading import SHIPPED, ShippedDatasetWarning, load_dataset
    from acefraud.datasets.mapping import SchemaMapping, load_mapping, parse_mapping
    from acefraud.datasets.rows import Loaded, ReportedOutcome, read_outcomes, read_transactions
    from acefraud.datasets.table import BadRow

__all__ = [
    "SHIPPED",
    "BadRow",
    "Dataset",
    "Loaded",
    "ReportedOutcome",
    "SchemaMapping",
    "ShippedDatasetWarning",
    "guess_mapping",
    "load_dataset",
    "load_mapping",
    "parse_mapping",
    "read_outcomes",
    "read_transactions",
]

_MODULES = {
    "dataset": "Dataset",
    "guess": "guess_mapping",
    "loading": "SHIPPED ShippedDatasetWarning load_dataset",
    "mapping": "SchemaMapping load_mapping parse_mapping",
    "rows": "Loaded ReportedOutcome read_outcomes read_transactions",
    "table": "BadRow",
}
_ORIGIN = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _ORIGIN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_ORIGIN[name]), name)
    return value
