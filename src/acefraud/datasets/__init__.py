"""Datasets: files of transactions, mappings of their columns, and the synthetic world.

`load_dataset` and `load_transactions` are the ways in; `records.RecordReader` reads one JSON object at a time. Files
and data frames become tables (`files`), `guess` puts their cells into plain form and completes the mapping (what only
many rows show is in `contents`), columns become facts (`assembly`, `cells`, `columns`), and rows become cases,
transactions or outcomes (`rows`). May import facts, core, settings and errors. What reads files needs polars, which is
slow to import, so it is not imported here.
"""

from acefraud.datasets.dataset import SHIPPED, Dataset, ShippedDatasetWarning, load_dataset, load_transactions
from acefraud.datasets.mapping import SchemaMapping, mapping_of, parse_mapping
from acefraud.datasets.table import BadRow

__all__ = [
    "SHIPPED",
    "BadRow",
    "Dataset",
    "SchemaMapping",
    "ShippedDatasetWarning",
    "load_dataset",
    "load_transactions",
    "mapping_of",
    "parse_mapping",
]
