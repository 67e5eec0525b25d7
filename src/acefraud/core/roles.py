"""The parts that the embedded engine or a language model can play, one small protocol each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import DEFAULT_NODE, Bullet
from acefraud.core.condition import Condition
from acefraud.core.decision import CallUsage, ProbabilityFrom, Reason
from acefraud.core.english import say_facts
from acefraud.core.outcome import Judgement
from acefraud.core.scoring import Calibration
from acefraud.core.transaction import FactValue, Transaction, Verdict

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

    @property
    def fetches_ahead(self) -> bool:
        """Whether vectors come over a network, so that `fetch` is called before they are needed."""
        ...

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        """A transaction in words that the embedder may see: its text, or its facts where it has none."""
        ...

    def presentable_bullet(self, bullet: Bullet) -> str:
        """A bullet in words that the embedder may see."""
        ...

    async def fetch(self, texts: Sequence[str]) -> None:
        """Have the vectors of these texts at hand. Raises ModelError where they cannot be had."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length one for each text."""
        ...


class EmbedsInProcess:
    """What holds for every embedder that sends nothing: no text is hidden from it, and nothing is fetched."""

    fetches_ahead = False

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        """The text as it is, or the facts in words."""
        return text or say_facts(facts)

    def presentable_bullet(self, bullet: Bullet) -> str:
        """The bullet as it is."""
        return bullet.content

    async def fetch(self, texts: Sequence[str]) -> None:
        """Nothing to do: `embed` works them out."""


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

    @property
    def waits(self) -> bool:
        """Whether deciding waits for somebody else, so that many decisions should be under way at once."""
        ...

    @property
    def without_tier(self) -> Agent:
        """The same agent with no first tier before it: it is asked about clear cases too."""
        ...

    async def assess(
        self,
        text: str,
        facts: Mapping[str, FactValue],
        bullets: Sequence[Bullet],
        calibration: Calibration | None,
        *,
        proven: int | None = None,
    ) -> Assessment:
        """Verdict, probability and reasons. Raises ModelError where it cannot tell.

        `proven` says how many bullets, from the first on, are known to apply; None where nobody checked.
        """
        ...


class Judge(Protocol):
    """Says whether a decision was right."""

    async def rule(self, input_text: str, output: str, ground_truth: str | None = None) -> Judgement:
        """Correct, incorrect, or unjudged with the reason. Never raises for a failed call."""
        ...

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        """A transaction in words that the judge may see: its text, or its facts where it has none."""
        ...


class JudgesWithoutTruth(Protocol):
    """A model that judges a decision where no truth is known."""

    @property
    def model(self) -> str:
        """Who plays the part."""
        ...

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        """A transaction in words that the model may see: its text, or its facts where it has none."""
        ...

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


class Reflects(Protocol):
    """Proposes a bullet from an outcome."""

    @property
    def model(self) -> str:
        """Who plays the part."""
        ...

    async def reflect(
        self,
        query: str | Transaction,
        predicted: str,
        correct: str,
        node: str = DEFAULT_NODE,
        agent_reasoning: str = "",
    ) -> dict[str, Any] | None:
        """new_bullet, problem_types, confidence and more; None where there is nothing to say. Raises ModelError."""
        ...
