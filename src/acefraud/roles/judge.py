"""The judges: compare a decision with the truth, or ask a model about one whose truth is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acefraud.core.outcome import Judgement, Ruling
from acefraud.core.transaction import FactValue
from acefraud.display.short_repr import given, quoted
from acefraud.errors import ConfigurationError, ModelError
from acefraud.llm.client import ModelClient
from acefraud.llm.synchronous import blocking_twin
from acefraud.roles.model.build import build_model_roles
from acefraud.roles.protocols import Judge, OutputJudge, OwnRole, answer_of, name_of, nearest_method
from acefraud.rules.english import say_facts
from acefraud.settings import EMBEDDED, ModelSettings
from acefraud.support.arguments import check_has, check_type


class SimpleJudge:
    """Compares the output with the ground truth; without one it does not judge.

    >>> SimpleJudge().judge_sync("$900 purchase through a VPN", " decline ", "DECLINE")
    (True, 1.0)
    >>> SimpleJudge().judge_sync("$900 purchase through a VPN", "DECLINE")
    (None, 0.0)
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def judge(self, input_text: str, output: str, ground_truth: str | None = None) -> tuple[bool | None, float]:
        """Whether the output was right (None if unjudged), and the confidence.

        >>> import asyncio
        >>> asyncio.run(SimpleJudge().judge("$12 coffee", "DECLINE", ground_truth="APPROVE"))
        (False, 1.0)
        """
        judgement = await self.rule(input_text, output, ground_truth)
        return judgement.is_correct, judgement.confidence

    judge_sync = blocking_twin(judge)

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        """The text unchanged, or the facts in words: this judge sends nothing."""
        return text or say_facts(facts)

    async def rule(self, input_text: str, output: str, ground_truth: str | None = None) -> Judgement:
        """The judgement with its reason.

        >>> import asyncio
        >>> asyncio.run(SimpleJudge().rule("$12 coffee", "DECLINE", "APPROVE")).reason
        'decided DECLINE, truth is APPROVE'
        """
        check_type("output", output, str, "a verdict in words")
        if ground_truth is not None:
            check_type("ground_truth", ground_truth, str, "a verdict in words, or None if it is not known")
        if ground_truth is None or not ground_truth.strip():
            return await self._without_truth(input_text, output)
        same = output.strip().casefold() == ground_truth.strip().casefold()
        return Judgement(
            ruling=Ruling.CORRECT if same else Ruling.INCORRECT,
            reason=f"decided {output.strip()}, truth is {ground_truth.strip()}",
        )

    rule_sync = blocking_twin(rule)

    async def _without_truth(self, input_text: str, output: str) -> Judgement:  # noqa: ARG002
        return Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason="no ground truth and no model to judge without")


class LLMJudge(SimpleJudge):
    """Compares with the ground truth if there is one; without one, asks the model if you name one.

    A failed call leaves the case unjudged; it never counts as wrong. `model` is a name or an object that judges.
    Models that share a `client` share its limits; `base_url` is the address of a self-hosted server, and `sensitive`
    names facts that the model is never shown.

    >>> judge = LLMJudge()  # LLMJudge(model="openai:gpt-4o-mini") asks that model if there is no ground truth
    >>> judge.judge_sync("$900 purchase through a VPN", "DECLINE", ground_truth="APPROVE")
    (False, 1.0)
    >>> judge.judge_sync("$900 purchase through a VPN", "DECLINE")
    (None, 0.0)
    """

    def __init__(
        self,
        model: str | OutputJudge | OwnRole = EMBEDDED,
        *,
        base_url: str = "",
        client: ModelClient | None = None,
        sensitive: Sequence[str] = (),
    ) -> None:
        self._judge: OutputJudge | None
        if isinstance(model, str):
            self.model = model
            chosen = ModelSettings(judge=model, base_url=base_url, sensitive=tuple(sensitive), cache=None)
            self._judge = build_model_roles(chosen, client=client).judge if chosen.uses_models else None
        else:
            check_has("model", model, "the name of a model, or an object that judges", "assess_output")
            self.model, self._judge = name_of(model), model

    def __repr__(self) -> str:
        return f"LLMJudge(model={quoted(self.model)})"

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        """A transaction in words that the model may see."""
        return getattr(self._judge, "presentable", super().presentable)(text, facts)

    async def _without_truth(self, input_text: str, output: str) -> Judgement:
        if self._judge is None:
            return await super()._without_truth(input_text, output)
        try:
            return await self._judge.assess_output(input_text, output)
        except ModelError as failure:
            return Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason=f"the judge failed: {failure}")


async def ruled(judge: Judge | OwnRole, input_text: str, output: str, ground_truth: str | None) -> Judgement:
    """The judgement of any judge, also of one that only has `judge`."""
    answer = await answer_of(judge, nearest_method(judge, "rule", "judge"), input_text, output, ground_truth)
    if isinstance(answer, Judgement):
        return answer
    rulings = {None: Ruling.UNJUDGED, True: Ruling.CORRECT, False: Ruling.INCORRECT}
    try:
        is_correct, confidence = answer
        return Judgement(ruling=rulings[is_correct], confidence=confidence, reason=f"judged by {name_of(judge)}")
    except (TypeError, ValueError, KeyError):
        expected = "expected whether the decision was right (True, False or None) and a confidence from 0 to 1"
        raise ConfigurationError(f"{name_of(judge)}.judge: {expected}, got {given(answer)}") from None
