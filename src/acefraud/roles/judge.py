"""The judge: compares a decision with the truth, and asks a model about decisions whose truth is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acefraud.core.outcome import Judgement, Ruling
from acefraud.core.transaction import FactValue
from acefraud.display.short_repr import quoted
from acefraud.errors import ModelError
from acefraud.llm.client import ModelClient
from acefraud.roles.embedded.judge import SimpleJudge
from acefraud.roles.model.build import build_model_roles
from acefraud.roles.protocols import OutputJudge, OwnRole, name_of
from acefraud.settings import EMBEDDED, ModelSettings
from acefraud.support.arguments import check_has


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
        shown: str = getattr(self._judge, "presentable", super().presentable)(text, facts)
        return shown

    async def _without_truth(self, input_text: str, output: str) -> Judgement:
        if self._judge is None:
            return await super()._without_truth(input_text, output)
        try:
            return await self._judge.assess_output(input_text, output)
        except ModelError as failure:
            return Judgement(ruling=Ruling.UNJUDGED, confidence=0.0, reason=f"the judge failed: {failure}")
