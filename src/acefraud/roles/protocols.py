"""What each role does: one small protocol each, for the embedded engine and for language models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet, NewBullet
from acefraud.core.calibration import Calibration, Fit
from acefraud.core.condition import Condition
from acefraud.core.decision import CallUsage, ProbabilityFrom, Reason
from acefraud.core.outcome import Judgement
from acefraud.core.transaction import FactValue, Verdict
from acefraud.display.short_repr import ShortRepr
from acefraud.rules.english import say_facts

Vectors = npt.NDArray[np.float32]
Facts = Mapping[str, FactValue]
OwnRole = Any
"""An object of your own with one method, a coroutine or a plain function; the rest of its protocol has defaults.

An agent has `assess` (it gets a `Question`) or `analyze` (it gets the transaction in words) and returns APPROVE,
DECLINE, REVIEW or an `Assessment`; a judge has `judge`, a reflector `reflect`, as ours do; an embedder has `embed`,
which returns a row of numbers for each text.
"""


def name_of(role: object) -> str:
    """What a role is recorded as: its `model`, its `name`, or else its class.

    >>> class Careful: ...
    >>> name_of(Careful())
    'Careful'
    """
    return str(getattr(role, "model", "") or getattr(role, "name", "") or type(role).__name__)


def nearest_method(role: object, *methods: str) -> str:
    """The first of these methods that the role's class defines; if it defines none, that its next base does, and so on.

    >>> class Base:
    ...     def rule(self): ...
    ...     def judge(self): ...
    >>> class Lenient(Base):
    ...     def judge(self): ...
    >>> nearest_method(Base(), "rule", "judge"), nearest_method(Lenient(), "rule", "judge")
    ('rule', 'judge')
    """
    defined = (name for base in type(role).__mro__ for name in methods if name in vars(base))
    return next(defined, next((name for name in methods if hasattr(role, name)), methods[0]))


async def answer_of(role: object, method: str, *given: object) -> Any:
    """What a method of a role returns, awaited if it is a coroutine."""
    answer = getattr(role, method)(*given)
    return await answer if isawaitable(answer) else answer


class Embedder(Protocol):
    """Turns texts into vectors of length one."""

    @property
    def name(self) -> str:
        """The name that its vectors are stored under."""

    @property
    def threshold(self) -> float:
        """The cosine from which two texts count as related, measured for this embedder."""

    @property
    def fetches_ahead(self) -> bool:
        """Whether vectors come over a network, so that `fetch` must be called before they are needed."""

    def presentable(self, text: str, facts: Facts) -> str:
        """A transaction in words that the embedder may see: its text, or its facts if it has none."""

    def presentable_bullet(self, bullet: Bullet) -> str:
        """A bullet in words that the embedder may see."""

    async def fetch(self, texts: Sequence[str]) -> None:
        """Load the vectors of these texts. Raises ModelError if that fails."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length one for each text."""


class EmbedsInProcess:
    """Base of the embedders that send nothing: they may see every text, and fetch nothing."""

    fetches_ahead = False

    def presentable(self, text: str, facts: Facts) -> str:
        """The text unchanged, or the facts in words."""
        return text or say_facts(facts)

    def presentable_bullet(self, bullet: Bullet) -> str:
        """The content of the bullet, unchanged."""
        return bullet.content

    async def fetch(self, texts: Sequence[str]) -> None:
        """Do nothing: `embed` computes the vectors."""


@dataclass(frozen=True, slots=True, repr=False)
class Assessment(ShortRepr):
    """An agent's view of a transaction."""

    verdict: Verdict
    probability: float
    base: float = 0.0
    """The log-odds that the contributions of the reasons are added to."""
    reasons: tuple[Reason, ...] = ()
    model: str = ""
    """The model that decided; "" stands for the name of the agent."""
    probability_from: ProbabilityFrom = ProbabilityFrom.FITTED
    odds: float | None = None
    engine_odds: float | None = None
    prompt: str = ""
    usage: CallUsage | None = None
    fallback: str = ""
    shown: tuple[Bullet, ...] = ()
    """The bullets that a model was shown, which may be fewer than it was given."""


@dataclass(frozen=True, slots=True, repr=False)
class Question(ShortRepr):
    """A transaction to decide, with the bullets that were picked for it."""

    text: str
    facts: Facts
    bullets: Sequence[Bullet] = ()
    calibration: Calibration | None = None


class Agent(Protocol):
    """Decides one transaction with the bullets it is given."""

    @property
    def model(self) -> str:
        """The model that decides, or `embedded`."""

    @property
    def waits(self) -> bool:
        """Whether deciding waits for a model, so that many decisions should be in flight at once."""

    @property
    def adds_up(self) -> bool:
        """Whether it adds up weights as the embedded engine does, so that many can be decided in columns instead."""

    @property
    def without_tier(self) -> Agent:
        """The agent without a first tier: it also decides the clear cases."""

    async def assess(self, question: Question) -> Assessment:
        """Verdict, probability and reasons. Raises ModelError if it cannot decide."""


class Judge(Protocol):
    """Says whether a decision was right."""

    async def rule(self, input_text: str, output: str, ground_truth: str | None = None) -> Judgement:
        """Correct, incorrect, or unjudged with the reason. Never raises for a failed call."""

    def presentable(self, text: str, facts: Facts) -> str:
        """A transaction in words that the judge may see: its text, or its facts if it has none."""


class OutputJudge(Protocol):
    """A model that judges a decision whose truth is unknown."""

    @property
    def model(self) -> str:
        """The model that judges."""

    def presentable(self, text: str, facts: Facts) -> str:
        """A transaction in words that the model may see: its text, or its facts if it has none."""

    async def assess_output(self, input_text: str, output: str) -> Judgement:
        """Correct or incorrect, with confidence and reason. Raises ModelError if the call fails."""


@dataclass(frozen=True, slots=True, repr=False)
class Example(ShortRepr):
    """A transaction whose truth is known, as a reflector is shown it."""

    text: str
    facts: Facts
    predicted: Verdict
    correct: Verdict
    reasoning: str = ""

    @property
    def missed(self) -> bool:
        """Whether the decision was wrong."""
        return self.predicted is not self.correct


@dataclass(frozen=True, slots=True, repr=False)
class FactSummary(ShortRepr):
    """A fact that a condition may test, and the values it takes."""

    name: str
    kind: str
    """number, flag or category."""
    values: str
    """In words: '1 to 9,800, half of them below 120', or 'one of "crypto", "gift cards"'."""
    example: str = ""
    """A test over the fact, in text form."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Proposal(ShortRepr):
    """A heuristic that a model put into words. Nothing in it is measured."""

    content: str
    argues: Verdict | None = None
    condition: Condition | None = None
    problem_types: tuple[str, ...] = ()
    confidence: float = 0.5
    model: str = ""


class Proposer(Protocol):
    """A model that puts heuristics into words and leaves measuring them to the engine."""

    @property
    def model(self) -> str:
        """The model that proposes."""

    async def propose(
        self, examples: Sequence[Example], facts: Sequence[FactSummary], known: Sequence[Bullet]
    ) -> Proposal | None:
        """A heuristic that these examples teach beyond what is known; None if there is none. Raises ModelError."""


@dataclass(frozen=True, slots=True, repr=False)
class Reflection(ShortRepr):
    """A bullet that a case taught, and how sure the reflector is of it."""

    bullet: NewBullet
    confidence: float
    example: Example
    fit: Fit | None = None
    """The weights that the bullet's own was fitted with; None if it was not fitted."""
