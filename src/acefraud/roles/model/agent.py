"""The agent and the judge on a language model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

from acefraud.core.bullet import Bullet
from acefraud.core.calibration import log_odds
from acefraud.core.decision import ProbabilityFrom, Reason, ReasonKind
from acefraud.core.outcome import Judgement, Ruling
from acefraud.core.transaction import Verdict
from acefraud.errors import ModelMalformed
from acefraud.llm.call import Call, Reply, Role
from acefraud.roles.model.model_role import CachedCaller, ModelRole, Shared, usage_of
from acefraud.roles.model.prompts import Prompt, Style, agent_prompt, judge_prompt, shown_bullets, shown_id
from acefraud.roles.model.replies import AgentReply, JudgeReply, odds_of, verdict_in
from acefraud.roles.protocols import Assessment, Question
from acefraud.support.exact_math import sigmoid

ALTERNATIVES = 20
"""Alternative tokens to ask for at each position: the protocol's maximum."""
ONE_WORD = "Answer with one word only: APPROVE or DECLINE."
SURE = 1e-6
"""A stated probability of 0 or 1 is moved this far inside the interval."""


class ModelAgent(ModelRole):
    """Decides with a language model and the bullets it is given.

    It asks for a reasoned verdict, or for a single word and the odds of its tokens. If the style is direct but the
    server reports no log-probabilities, the reasoned style is used instead, and the probability is marked as stated.
    """

    role = Role.AGENT
    waits = True
    adds_up = False

    def __init__(
        self, client: CachedCaller, model: str, *, style: Style = Style.REASONED, **shared: Unpack[Shared]
    ) -> None:
        super().__init__(client, model, **shared)
        self.style = style
        self._reports_logprobs = True

    @property
    def without_tier(self) -> ModelAgent:
        """Itself."""
        return self

    async def assess(self, question: Question) -> Assessment:
        """Verdict, probability and reasons. Raises ModelError if the call fails."""
        bullets = shown_bullets(question.bullets, self._mask)

        def prompt(style: Style) -> Prompt:
            return agent_prompt(style, question.text, question.facts, bullets, mask=self._mask)

        replies: list[Reply] = []
        if self.style is Style.DIRECT and self._reports_logprobs:
            direct = prompt(Style.DIRECT)
            verdict, replies = await self._one_word(self._call(direct, max_tokens=8, top_logprobs=ALTERNATIVES))
            odds = odds_of(replies[-1].logprobs)
            if odds is not None:
                return Assessment(
                    verdict=verdict,
                    probability=sigmoid(odds),
                    base=odds,
                    reasons=reasons_for(verdict, bullets),
                    model=self.model,
                    probability_from=ProbabilityFrom.ODDS,
                    odds=odds,
                    prompt=direct.name,
                    usage=usage_of(replies),
                    shown=bullets,
                )
            self._reports_logprobs = bool(replies[-1].logprobs)
        return await self._reasoned(prompt(Style.REASONED), bullets, replies)

    async def _reasoned(self, prompt: Prompt, bullets: tuple[Bullet, ...], spent: Sequence[Reply]) -> Assessment:
        shown = {shown_id(bullet): bullet for bullet in bullets}

        def read(reply: AgentReply, _: bool) -> tuple[AgentReply, list[Bullet]]:
            cited = list(dict.fromkeys(name.strip().strip("[]") for name in reply.bullets))
            unknown = [name for name in cited if name not in shown]
            if unknown and shown:  # if none was shown, a made-up id does no harm
                raise ValueError(f"bullets: {', '.join(unknown)} were not shown; allowed are {', '.join(shown)}")
            return reply, [shown[name] for name in cited if name in shown]

        (reply, cited), replies = await self.ask(self._call(prompt, max_tokens=300), AgentReply, read)
        return Assessment(
            verdict=reply.verdict,
            probability=reply.probability,
            base=log_odds(min(max(reply.probability, SURE), 1 - SURE)),
            reasons=(Reason(kind=ReasonKind.MODEL, text=reply.reasoning, contribution=None), *cited_as_reasons(cited)),
            model=self.model,
            probability_from=ProbabilityFrom.STATED,
            prompt=prompt.name,
            usage=usage_of([*spent, *replies]),
            shown=bullets,
        )

    async def _one_word(self, call: Call) -> tuple[Verdict, list[Reply]]:
        """The verdict and the replies that led to it; a reply that is no verdict is asked for once more."""
        sent: list[tuple[Call, Reply]] = []
        for _ in range(2):
            reply = await self._client.send(call)
            sent.append((call, reply))
            verdict = verdict_in(reply.text)
            if verdict is not None:
                return verdict, [made for _, made in sent]
            call = call.with_added(ONE_WORD)
        self._forget(sent)
        raise ModelMalformed(
            f"{self.model} as agent: expected APPROVE or DECLINE, got {reply.text[:60]!r} for the second time"
        )


def reasons_for(verdict: Verdict, bullets: Sequence[Bullet]) -> tuple[Reason, ...]:
    """The shown bullets that do not argue for the other verdict, for a model that cites none itself."""
    return cited_as_reasons(bullet for bullet in bullets if bullet.argues in (None, verdict))


def cited_as_reasons(bullets: Iterable[Bullet]) -> tuple[Reason, ...]:
    """Bullets as reasons, without contributions: a model does not say how much each weighed."""
    return tuple(
        Reason(kind=ReasonKind.BULLET, text=bullet.shown, contribution=None, bullet_id=bullet.id) for bullet in bullets
    )


class ModelJudge(ModelRole):
    """Judges a decision at temperature 0. `acefraud.LLMJudge` uses it if there is no ground truth."""

    role = Role.JUDGE

    async def assess_output(self, input_text: str, output: str) -> Judgement:
        """Correct or incorrect, with confidence and reason. Raises ModelError if the call fails."""
        call = self._call(judge_prompt(input_text, output, mask=self._mask), max_tokens=250)
        reply, _ = await self.ask(call, JudgeReply, lambda reply, _: reply)
        ruling = Ruling.CORRECT if reply.is_correct else Ruling.INCORRECT
        return Judgement(ruling=ruling, confidence=reply.confidence, reason=reply.reasoning)
