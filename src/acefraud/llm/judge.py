"""The judge on a language model, for decisions whose truth is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acefraud.core.transaction import FactValue
from acefraud.llm.asking import Asker, Client
from acefraud.llm.calling import Call, Message, Role
from acefraud.llm.masking import Mask, presentable
from acefraud.llm.prompting import judge_prompt
from acefraud.llm.replies import JudgeReply

DEFAULT_JUDGE = "openai:gpt-4o-mini"


class ModelJudge:
    """Judges a decision at temperature 0. `acefraud.LLMJudge` puts it to use where there is no ground truth."""

    def __init__(
        self, client: Client, model: str = DEFAULT_JUDGE, *, base_url: str = "", mask: Mask | None = None
    ) -> None:
        self.model = model
        self._asker = Asker(client)
        self._base_url = base_url
        self._mask = mask or Mask()

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        """A transaction in words that may be seen: its text, or its facts where it has none."""
        return presentable(text, facts, self._mask)

    async def assess_output(self, input_text: str, output: str) -> dict[str, Any]:
        """{"is_correct": bool, "confidence": float, "reasoning": str}. Raises ModelError where it fails."""
        prompt = judge_prompt(input_text, output, mask=self._mask)
        call = Call(
            role=Role.JUDGE,
            model=self.model,
            base_url=self._base_url,
            system=prompt.system,
            messages=(Message(role="user", content=prompt.user),),
            max_tokens=250,
        )
        return (await self._asker.ask(call, JudgeReply)).value.model_dump()
