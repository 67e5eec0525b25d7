"""What callers give as a labelled history: cases, a dataset, or a data frame."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from acefraud.core.transaction import Case
from acefraud.core.transactions import Cases
from acefraud.datasets import Dataset, SchemaMapping, load_dataset, parse_mapping
from acefraud.display.frames import is_frame
from acefraud.learning.training import TrainingOptions

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

HistoryInput: TypeAlias = "Sequence[Case] | IntoFrame | Path"
"""Labelled cases, a `Dataset`, a data frame (pandas, polars, pyarrow), or the path of a file."""


def as_history(given: HistoryInput, options: TrainingOptions) -> tuple[Cases, TrainingOptions]:
    """The cases, and the options with what a dataset knows of itself: its name, its mapping and what waits for a label.

    A data frame is read as `load_dataset` reads it, with the mapping of the options if there is one.

    >>> import polars as pl
    >>> cases, options = as_history(pl.DataFrame({"amount": [5.0, 900.0], "is_fraud": [0, 1]}), {})
    >>> len(cases), options["dataset"]
    (2, 'frame')
    """
    if isinstance(given, Path) or is_frame(given):
        mapping = options.get("mapping") or None
        read = parse_mapping(mapping) if isinstance(mapping, str) else mapping
        given = load_dataset(given, mapping=read)
        if remark := given.delay_remark(SchemaMapping.load(read) if isinstance(read, Path) else read):
            warnings.warn(remark, UserWarning, stacklevel=3)
        options = {**options, "mapping": given.mapping}
    if isinstance(given, Dataset):
        own: TrainingOptions = {"dataset": given.name, "mapping": given.mapping, "waiting": given.waiting}
        options = {**own, **options}
        given = given.train
    return Cases.of(given), options
