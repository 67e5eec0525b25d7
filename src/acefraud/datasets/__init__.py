"""Datasets: loading files of any usual shape, saying what is wrong with them, and a synthetic world."""

from acefraud.datasets.dataset import Dataset
from acefraud.datasets.guess import guess_mapping
from acefraud.datasets.loading import (
    SHIPPED,
    Loaded,
    ReportedOutcome,
    ShippedDatasetWarning,
    load_dataset,
    read_outcomes,
    read_transactions,
)
from acefraud.datasets.mapping import SchemaMapping, load_mapping, parse_mapping
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
