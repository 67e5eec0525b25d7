"""What the agent, the judge and the reflector on a language model have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from acefraud.core.transaction import FactValue
from acefraud.llm.call import Call, Message, Role
from acefraud.roles.model.masking import Masker, presentable
from acefraud.roles.model.prompts import Prompt
from acefraud.roles.model.structured_output import Asker, CachedCaller


class ModelRole:
    """A role that a model plays: which model, on which server, and what it may not see."""

    role: ClassVar[Role]

    def __init__(self, client: CachedCaller, model: str, *, base_url: str = "", mask: Masker | None = None) -> None:
        self.model = model
        self._client = client
        self._asker = Asker(client)
        self._base_url = base_url
        self._mask = mask or Masker()

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        """A transaction in words that the model may see: its text, or its facts if it has none."""
        return presentable(text, facts, self._mask)

    def _call(self, prompt: Prompt, *, max_tokens: int, top_logprobs: int = 0) -> Call:
        return Call(
            role=self.role,
            model=self.model,
            base_url=self._base_url,
            system=prompt.system,
            messages=(Message(role="user", content=prompt.user),),
            max_tokens=max_tokens,
            top_logprobs=top_logprobs,
        )
