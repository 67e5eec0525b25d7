"""The parts that the embedded engine or a language model can play, one small protocol each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet
from acefraud.core.condition import Condition
from acefraud.core.decision import CallUsage, ProbabilityFrom, Reason
from acefraud.core.outcome import Judgement
from acefraud.core.scoring import Calibration
from acefraud.core.transaction import FactValue, Verdict

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors of length one."""

    @property
    def name(self) -> str:
        """What vectors of this embedder are filed under."""
        ...

    @property
    def threshold(self) -> float:
        """The cosine from which two texts count as related, measured for this embedder."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length one for each text."""
        ...


@runtime_checkable
class Presents(Protocol):
    """Whoever hands texts to the outside, and knows what may be seen there."""

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        """A transaction in words that may be seen: its text, or its facts where it has none."""
        ...


@runtime_checkable
class FetchesAhead(Presents, Protocol):
    """An embedder whose vectors come over a network: they are fetched before they are needed."""

    def presentable_bullet(self, bullet: Bullet) -> str:
        """A bullet in words that may be seen."""
        ...

    async def fetch(self, texts: Sequence[str]) -> None:
        """Have the vectors of these texts at hand. Raises ModelError where they cannot be had."""
        ...


@dataclass(frozen=True, slots=True)
class Assessment:
    """What an agent thinks of a transaction."""

    verdict: Verdict
    probability: float
    base: float
    reasons: tuple[Reason, ...]
    model: str = "embedded"
    probability_from: ProbabilityFrom = ProbabilityFrom.FITTED
    odds: float | None = None
    prompt: str = ""
    usage: CallUsage | None = None
    fallback: str = ""
    shown: tuple[Bullet, ...] = ()
    """The bullets that a model was shown; it may have been handed others."""


class Agent(Protocol):
    """Decides one transaction with the bullets it is handed."""

    @property
    def model(self) -> str:
        """Who plays the part."""
        ...

    async def assess(
        self,
        text: str,
        facts: Mapping[str, FactValue],
        bullets: Sequence[Bullet],
        calibration: Calibration | None,
    ) -> Assessment:
        """Verdict, probability and reasons. Raises ModelError where it cannot tell."""
        ...


class Judge(Protocol):
    """Says whether a decision was right."""

    async def rule(self, input_text: str, output: str, ground_truth: str | None = None) -> Judgement:
        """Correct, incorrect, or unjudged with the reason. Never raises for a failed call."""
        ...


class JudgesWithoutTruth(Protocol):
    """A model that judges a decision where no truth is known."""

    async def assess_output(self, input_text: str, output: str) -> Mapping[str, Any]:
        """{"is_correct": bool, "confidence": float, "reasoning": str}. Raises ModelError where it fails."""
        ...


@dataclass(frozen=True, slots=True)
class Example:
    """A transaction whose truth is known, as a reflector is shown it."""

    text: str
    facts: Mapping[str, FactValue]
    predicted: Verdict
    correct: Verdict
    reasoning: str = ""

    @property
    def missed(self) -> bool:
        """Whether it was decided wrongly."""
        return self.predicted is not self.correct


@dataclass(frozen=True, slots=True)
class FactSummary:
    """A fact that a condition may test, and what values it takes."""

    name: str
    kind: str
    """number, flag or category."""
    values: str
    """In words: '1 to 9,800, half of them below 120', or 'one of "crypto", "gift cards"'."""
    example: str = ""
    """A test over it, in text form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A heuristic that a model put into words. Nothing in it was measured."""

    content: str
    argues: Verdict | None
    condition: Condition | None
    problem_types: tuple[str, ...] = ()
    confidence: float = 0.5
    model: str = ""


class Proposes(Protocol):
    """A reflector that puts heuristics into words and leaves measuring them to others."""

    @property
    def model(self) -> str:
        """Who plays the part."""
        ...

    async def propose(
        self, examples: Sequence[Example], facts: Sequence[FactSummary], known: Sequence[Bullet]
    ) -> Proposal | None:
        """A heuristic that these examples teach beyond what is known; None where there is none. Raises ModelError."""
        ...
