"""The parts that the embedded engine or a language model can play, one small protocol each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet
from acefraud.core.decision import Reason
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


@dataclass(frozen=True, slots=True)
class Assessment:
    """What an agent thinks of a transaction."""

    verdict: Verdict
    probability: float
    base: float
    reasons: tuple[Reason, ...]


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
