"""What the benchmark asks of every learner."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from acefraud import Cases
from benchmarks.arrays import Counts, Numbers
from benchmarks.quality.evidence import EvidenceHeld


class Entrant(Protocol):
    """What the tables show of every learner."""

    @property
    def settings(self) -> str:
        """How it was set up, in a few words."""
        ...

    @property
    def size(self) -> int | None:
        """Rules, leaves or bullets after learning; None if the number means nothing."""
        ...

    @property
    def cited(self) -> Counts | None:
        """How many reasons each decision of the last scoring names; None if it gives no reasons."""
        ...


class Contender(Entrant, Protocol):
    """Learns once from the training rows, then scores the test rows."""

    @property
    def rows_cap(self) -> int | None:
        """The most rows it can learn from."""
        ...

    def fit(self, train: Cases, mapping: str, /) -> None:
        """Learn from all rows at once. The mapping may name facts that can only raise, or only lower, the risk."""
        ...

    def score(self, test: Cases) -> Numbers:
        """A score that is higher for fraud; a probability if possible."""
        ...


@runtime_checkable
class SharesFit(Protocol):
    """Learns the same as others and only decides in another way, so they can share what was learnt."""

    @property
    def fitted_as(self) -> str:
        """The same for all that learn the same."""
        ...

    learnt: Any


@runtime_checkable
class Evidenced(Protocol):
    """States figures with intervals, which can be checked on the test rows."""

    def evidence_held(self, test: Cases) -> EvidenceHeld:
        """How many of its intervals the test rows confirm."""
        ...


@runtime_checkable
class Streaming(Protocol):
    """Learns as labels arrive."""

    def learn(self, rows: Cases) -> None:
        """Learn from rows whose labels have arrived, in that order."""
        ...

    def predict(self, rows: Cases) -> Numbers:
        """Score consecutive rows. Their labels have not arrived and must not be used."""
        ...


class StreamContender(Streaming, Entrant, Protocol):
    """Learns as labels arrive. Everyone gets the same batches in the same order."""
