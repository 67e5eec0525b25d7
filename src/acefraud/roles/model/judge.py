"""The judge on a language model, for decisions whose truth is unknown."""

from __future__ import annotations

from acefraud.core.outcome import Judgement, Ruling
from acefraud.llm.call import Role
from acefraud.roles.model.model_role import ModelRole
from acefraud.roles.model.prompts import judge_prompt
from acefraud.roles.model.replies import JudgeReply


class ModelJudge(ModelRole):
    """Judges a decision at temperature 0. `acefraud.LLMJudge` uses it if there is no ground truth."""

    role = Role.JUDGE

    async def assess_output(self, input_text: str, output: str) -> Judgement:
        """Correct or incorrect, with confidence and reason. Raises ModelError if the call fails."""
        call = self._call(judge_prompt(input_text, output, mask=self._mask), max_tokens=250)
        return (await self._asker.ask(call, JudgeReply, _judgement)).value


def _judgement(reply: JudgeReply, _: bool) -> Judgement:
    return Judgement(
        ruling=Ruling.CORRECT if reply.is_correct else Ruling.INCORRECT,
        confidence=reply.confidence,
        reason=reply.reasoning,
    )
