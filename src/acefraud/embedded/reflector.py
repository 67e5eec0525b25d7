"""The embedded reflector: remembers labelled cases and proposes what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import DEFAULT_NODE, Bullet, Source
from acefraud.core.condition import Condition
from acefraud.core.english import sentence
from acefraud.core.measured_text import Fit, MeasuredText
from acefraud.core.roles import Example
from acefraud.core.scoring import Calibration
from acefraud.core.transaction import Case, FactValue, Transaction, Verdict
from acefraud.core.transactions import Cases
from acefraud.embedded.case_memory import CaseMemory, LabelledFacts
from acefraud.embedded.facts import facts_of
from acefraud.embedded.induction.bins import BinOptions
from acefraud.embedded.induction.boosting import History, Induced, InductionOptions, Lesson, induce, too_little
from acefraud.embedded.induction.fitting import Cases as FitCases
from acefraud.embedded.induction.fitting import FitOptions, fit
from acefraud.embedded.induction.trees import TreeOptions
from acefraud.embedded.problem_types import problem_types
from acefraud.errors import InputError
from acefraud.settings import EMBEDDED

Column = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorOptions:
    """What the embedded reflector remembers, and how hard it searches."""

    memory: int = 20_000
    """Labelled cases that are remembered; the oldest make room."""
    induction: InductionOptions = field(default_factory=InductionOptions)
    """The search through a whole history."""
    review: InductionOptions = field(
        default_factory=lambda: InductionOptions(
            rounds=5,
            per_round=12,
            runs=1,
            most_rows=10_000,
            bins=BinOptions(cuts=24, fraud_cuts=12),
            trees=TreeOptions(leaves=10),
            fit=FitOptions(certainty=1.5),
        )
    )
    """The search of a review, which comes often: coarser bins and few rounds, and the book so far takes part in it.
    What it admits is watched from then on, so it need not be as strict."""
    search_again: float = 1.2
    """`reflect` searches anew when the memory has grown by this factor, and at first every 20 cases."""


LEAST_NEW = 20
"""New cases without which `reflect` does not search again."""
MUCH_MORE = 1.5
"""A bullet learnt on so many times the cases that are remembered keeps its weight: they could not fit it better."""
LEAST_FITTED = 8
"""Remembered cases on which a bullet that nobody measured, or a person wrote, must hold before its weight is fitted."""


@dataclass(frozen=True, slots=True)
class Refitted:
    """New weights by bullet, and the calibration they belong to."""

    weights: dict[str, float]
    calibration: Calibration


class EmbeddedReflector:
    """Proposes one bullet from one outcome, in the light of all outcomes it was shown before.

    With too few cases to say anything it returns None rather than a guess.

    >>> import asyncio
    >>> reflector = EmbeddedReflector()
    >>> asyncio.run(reflector.reflect("User attempts $20 purchase", "APPROVE", "APPROVE", "fraud_detection")) is None
    True
    """

    model = EMBEDDED

    def __init__(self, options: ReflectorOptions | None = None, *, seed: int = 0) -> None:
        self.options = options or ReflectorOptions()
        self.memory = CaseMemory(self.options.memory)
        self.seed = seed
        self._found: dict[Condition, Lesson] = {}
        self._fit: Fit | None = None
        self._proposed: set[Condition] = set()
        self._searched_at = 0
        self._heard = 0
        self._unnamed = 0

    def __len__(self) -> int:
        return len(self.memory)

    def remember(self, cases: Iterable[Case]) -> None:
        """Take in labelled cases without proposing anything."""
        self.memory.add(LabelledFacts.of(Cases.of(cases)))

    async def reflect(
        self,
        query: str | Transaction,
        predicted: str,
        correct: str,
        node: str = DEFAULT_NODE,
        agent_reasoning: str = "",
    ) -> dict[str, Any] | None:
        """A bullet that this case and those before it teach: new_bullet, problem_types, confidence and more.

        Of what the remembered cases teach, it is the strongest lesson that applies to this case, argues for its truth
        and was not proposed before; None where there is none.
        """
        example = self.hear(query, predicted, correct, agent_reasoning)
        if self._heard - self._searched_at >= max(LEAST_NEW, (self.options.search_again - 1) * self._searched_at):
            self._search()
        lesson = self._lesson_for(example.facts, example.correct)
        if lesson is None:
            return None
        self._proposed.add(lesson.condition)
        reply = as_reply(lesson)
        reply["new_bullet"] = MeasuredText(
            reply["new_bullet"],
            condition=lesson.condition,
            argues=lesson.argues,
            evidence=lesson.evidence,
            weight=lesson.weight,
            problem_types=reply["problem_types"],
            fit=self._fit,
        )
        return {**reply, **about(example, node)}

    def hear(self, query: str | Transaction, predicted: str, correct: str, reasoning: str = "") -> Example:
        """Remember a case whose truth is known; returns it as a reflector on a model would be shown it."""
        transaction = query if isinstance(query, Transaction) else self._named(query)
        facts = facts_of(transaction).facts
        example = Example(transaction.text, facts, _verdict(predicted), _verdict(correct), reasoning)
        self.remember([Case(transaction=transaction, is_fraud=example.correct is Verdict.DECLINE)])
        self._heard += 1
        return example

    def _named(self, text: str) -> Transaction:
        """A text has no id of its own, so each is a case of its own."""
        self._unnamed += 1
        return Transaction(id=f"text-{self._unnamed}", text=text)

    def _search(self) -> None:
        self._searched_at = self._heard
        induced = self.review(self.memory.cases, known=sorted(self._proposed, key=str), turn=self._heard)
        self._found = {lesson.condition: lesson for lesson in induced.lessons} if induced else {}
        if induced is not None:
            weights = {condition: lesson.weight for condition, lesson in self._found.items()}
            self._fit = Fit(induced.calibration, {**dict.fromkeys(self._proposed, 0.0), **weights})

    def _lesson_for(self, facts: Mapping[str, FactValue], truth: Verdict) -> Lesson | None:
        fitting = [
            lesson
            for condition, lesson in self._found.items()
            if condition not in self._proposed and lesson.argues is truth and condition.holds(facts)
        ]
        return max(fitting, key=lambda lesson: abs(lesson.weight), default=None)

    # --- whole histories ---

    def study(
        self,
        cases: LabelledFacts,
        progress: Callable[[float], None] = lambda _: None,
        *,
        rising: tuple[str, ...] = (),
        falling: tuple[str, ...] = (),
        known: Sequence[Condition] = (),
        written: Sequence[Condition] = (),
        offset: Column | None = None,
        most_bullets: int | None = None,
        most_cited: int | None = None,
    ) -> Induced | None:
        """Everything that a labelled history teaches; None where that is too little to say anything.

        What is learnt must hold up on the latest cases, or on cases drawn at random where times are not known. More of
        a fact that is `rising` never lowers the risk, more of one that is `falling` never raises it.
        """
        generator = np.random.default_rng(self.seed)
        options = _limited(self.options.induction, most_bullets, most_cited)
        options = replace(options, rising=rising, falling=falling)
        if not cases.timed:  # the order of a file says nothing
            order = generator.permutation(len(cases))
            cases, offset = cases.take(order), None if offset is None else offset[order]
        history = History(cases.facts, cases.labels, cases.knowledge, offset, cases.times if cases.timed else None)
        return induce(history, options, generator, progress, known=known, written=written)

    def review(
        self,
        cases: LabelledFacts,
        *,
        known: Sequence[Condition] = (),
        written: Sequence[Condition] = (),
        offset: Column | None = None,
        turn: int = 0,
        most_bullets: int | None = None,
        most_cited: int | None = None,
    ) -> Induced | None:
        """What remembered cases teach beyond what is known: a short search, then all weights fitted together.

        `turn` numbers the reviews of a playbook, so that each draws its own samples and can be repeated.
        """
        options = _limited(self.options.review, most_bullets, most_cited)
        history = History(cases.facts, cases.labels, cases.knowledge, offset, cases.times if cases.timed else None)
        return induce(history, options, np.random.default_rng([self.seed, turn]), known=known, written=written)

    def too_little(self, cases: LabelledFacts) -> str:
        """Why nothing can be learnt from these cases yet; empty where something can."""
        return too_little(cases.labels, self.options.induction)

    def refit(self, bullets: Sequence[Bullet], cases: LabelledFacts | None = None) -> Refitted | None:
        """The weights of bullets fitted together on what is remembered; None where that is too little.

        A bullet that held on too few of these cases, or was learnt on many more than are remembered, keeps its weight.
        """
        cases = self.memory.cases if cases is None else cases
        if self.too_little(cases):
            return None
        masks = {b.id: b.condition.holds_in(cases.facts) for b in bullets if b.condition is not None}
        fitting = [b for b in bullets if b.id in masks and can_be_fitted(b, int(masks[b.id].sum()))]
        offset = np.zeros(len(cases))
        for bullet in bullets:
            if bullet.id in masks and bullet not in fitting:
                offset += (bullet.weight or 0.0) * masks[bullet.id]
        columns = np.column_stack([masks[b.id] for b in fitting]) if fitting else np.zeros((len(cases), 0), np.bool_)
        fitted = fit(columns, FitCases(cases.labels, cases.knowledge, offset), self.options.induction.fit)
        weights = {b.id: round(float(w), 6) for b, w in zip(fitting, fitted.weights, strict=True)}
        return Refitted(weights, fitted.calibration)


def _limited(options: InductionOptions, most_bullets: int | None, most_cited: int | None) -> InductionOptions:
    """The options for a learner with limits of its own: a book may be larger; a smaller one is cut after the fit."""
    return replace(
        options,
        most_bullets=max(options.most_bullets, most_bullets or 0),
        most_cited=options.most_cited if most_cited is None else most_cited,
    )


def can_be_fitted(bullet: Bullet, support: int) -> bool:
    """Whether remembered cases, on so many of which a bullet held, can say better what it is worth."""
    if (bullet.evidence is None or bullet.source is Source.MANUAL) and support < LEAST_FITTED:
        return False
    return bullet.evidence is None or bullet.evidence.learnt.support <= MUCH_MORE * support


def as_reply(lesson: Lesson) -> dict[str, Any]:
    """A lesson in the shape in which every reflector answers."""
    low, high = lesson.evidence.interval
    return {
        "new_bullet": sentence(lesson.condition, lesson.evidence),
        "problem_types": problem_types(lesson.condition),
        "confidence": round(low if lesson.argues is Verdict.DECLINE else 1 - high, 4),
        "condition": str(lesson.condition),
        "argues": str(lesson.argues),
        "evidence": lesson.evidence,
        "weight": lesson.weight,
    }


def about(example: Example, node: str) -> dict[str, Any]:
    """What every reflector's reply says of the case it was learnt from."""
    return {"node": node, "learnt_from": "failure" if example.missed else "success"}


def _verdict(word: str) -> Verdict:
    said = str(word).strip().upper()
    if said not in (Verdict.APPROVE, Verdict.DECLINE):
        raise InputError(f"expected APPROVE or DECLINE, got {word!r}")
    return Verdict(said)
