"""What the benchmark asks of everyone who takes part."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from acefraud.core.table import Numbers
from acefraud.datasets.columns import LabelledColumns
from acefraud.evaluation.quality.evidence import EvidenceHeld

Counts = npt.NDArray[np.int64]


class Entrant(Protocol):
    """What is told of everyone in the table."""

    @property
    def settings(self) -> str:
        """How it was set up, in a few words."""
        ...

    @property
    def size(self) -> int | None:
        """Rules, leaves or bullets after learning; None where that says nothing."""
        ...

    @property
    def cited(self) -> Counts | None:
        """How many reasons each decision of the last scoring named; None where it names none."""
        ...


class Contender(Entrant, Protocol):
    """Learns once from the training rows, then scores the test rows."""

    @property
    def rows_cap(self) -> int | None:
        """The most rows it is given to learn from."""
        ...

    def fit(self, train: LabelledColumns) -> None:
        """Learn from all rows at once."""
        ...

    def score(self, test: LabelledColumns) -> Numbers:
        """The higher, the more like fraud; a probability where it can be."""
        ...


@runtime_checkable
class Evidenced(Protocol):
    """States figures with intervals, which can be held against the test rows."""

    def evidence_held(self, test: LabelledColumns) -> EvidenceHeld:
        """How many of its intervals the test rows confirm."""
        ...


@runtime_checkable
class Streaming(Protocol):
    """Learns as labels arrive."""

    def learn(self, rows: LabelledColumns) -> None:
        """Hear the labels of some rows, in the order in which they arrived."""
        ...

    def predict(self, rows: LabelledColumns) -> Numbers:
        """Score consecutive rows, none of whose labels has been heard; they must not be looked at."""
        ...


class StreamContender(Streaming, Entrant, Protocol):
    """Learns as labels arrive. All contenders are given the same batches in the same order."""
