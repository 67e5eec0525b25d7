"""The judge: compares with the truth, and asks a model, where one is named, about what has no truth yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acefraud.core.outcome import Judgement, Ruling
from acefraud.core.roles import JudgesWithoutTruth
from acefraud.core.transaction import FactValue
from acefraud.embedded.judge import SimpleJudge
from acefraud.errors import ModelError
from acefraud.llm.client import ModelClient
from acefraud.llm.playing import play
from acefraud.settings import EMBEDDED, ModelSettings


class LLMJudge(SimpleJudge):
    """Compares with the ground truth where there is one, and asks a model where there is none and a model is named.

    A failed call leaves the case unjudged; it is never counted as wrong. Models that share a `client` share its
    limits; `base_url` names a server of your own, and `sensitive` the facts that the model is never shown.

    >>> import asyncio
    >>> asyncio.run(LLMJudge().judge("...", "DECLINE"))
    (None, 0.0)
    """

    def __init__(
        self,
        model: str = EMBEDDED,
        *,
        base_url: str = "",
        client: ModelClient | None = None,
        sensitive: Sequence[str] = (),
    ) -> None:
        chosen = ModelSettings(judge=model, base_url=base_url, sensitive=tuple(sensitive), cache=None)
        self.model = model
        self._asked: JudgesWithoutTruth | None = play(chosen, client=client).judge if chosen.uses_models else None

    @classmethod
    def played_by(cls, judge: JudgesWithoutTruth) -> LLMJudge:
        """A judge that asks this one where there is no truth."""
        made = cls()
        made.model, made._asked = judge.model, judge
        return made

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        """A transaction in words that the model may see."""
        if self._asked is None:
            return super().presentable(text, facts)
        return self._asked.presentable(text, facts)

    async def _without_truth(self, input_text: str, output: str) -> Judgement:
        if self._asked is None:
            return await super()._without_truth(input_text, output)
        try:
            answer = await self._asked.assess_output(input_text, output)
            correct = answer["is_correct"]
            if not isinstance(correct, bool):
                raise ValueError(f"is_correct must be true or false, got {correct!r}")
            return Judgement(
                ruling=Ruling.CORRECT if correct else Ruling.INCORRECT,
                confidence=answer["confidence"],
                reason=str(answer.get("reasoning", "")),
            )
        except (ModelError, KeyError, TypeError, ValueError) as failure:
            return Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason=f"the judge failed: {failure}")
