"""What the benchmark asks of everyone who takes part."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from acefraud import Cases
from benchmarks.arrays import Counts, Numbers
from benchmarks.quality.evidence import EvidenceHeld


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

    def fit(self, train: Cases, mapping: str, /) -> None:
        """Learn from all rows at once. The mapping says of which facts more never lowers or raises the risk."""
        ...

    def score(self, test: Cases) -> Numbers:
        """The higher, the more like fraud; a probability where it can be."""
        ...


@runtime_checkable
class SharesFit(Protocol):
    """Learns what others learn too, and only decides in another way: what one has learnt serves all."""

    @property
    def fitted_as(self) -> str:
        """The same for all who learn the same."""
        ...

    learnt: Any


@runtime_checkable
class Evidenced(Protocol):
    """States figures with intervals, which can be held against the test rows."""

    def evidence_held(self, test: Cases) -> EvidenceHeld:
        """How many of its intervals the test rows confirm."""
        ...


@runtime_checkable
class Streaming(Protocol):
    """Learns as labels arrive."""

    def learn(self, rows: Cases) -> None:
        """Hear the labels of some rows, in the order in which they arrived."""
        ...

    def predict(self, rows: Cases) -> Numbers:
        """Score consecutive rows, none of whose labels has been heard; they must not be looked at."""
        ...


class StreamContender(Streaming, Entrant, Protocol):
    """Learns as labels arrive. All contenders are given the same batches in the same order."""
