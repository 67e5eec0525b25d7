"""The agent on a language model: a verdict in a sentence's wake, or a single word and the odds of its tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acefraud.core.bullet import Bullet, Status
from acefraud.core.decision import ProbabilityFrom, Reason, ReasonKind
from acefraud.core.roles import Assessment
from acefraud.core.scoring import Calibration, log_odds, sigmoid
from acefraud.core.transaction import FactValue, Verdict
from acefraud.errors import ModelMalformed
from acefraud.llm.asking import Asker, Client, usage_of
from acefraud.llm.bullet_lines import shown_id
from acefraud.llm.calling import Call, Message, Reply, Role
from acefraud.llm.masking import Mask
from acefraud.llm.odds import odds_of, said_verdict
from acefraud.llm.prompting import Rendered, Style, agent_prompt
from acefraud.llm.replies import AgentReply

DEFAULT_AGENT = "openai:gpt-3.5-turbo"
ALTERNATIVES = 20
"""Tokens that might have stood in place of the verdict, as many as the protocol lets one ask for."""
ONE_WORD = "Answer with one word only: APPROVE or DECLINE."
SURE = 1e-6
"""A stated probability of 0 or 1 is taken for this close to it."""


class ModelAgent:
    """Decides with a language model and the bullets it is handed.

    Where the style is direct but the server gives no log-probabilities, it is asked in the reasoned style instead, and
    the probability is marked as stated.
    """

    waits = True

    def __init__(
        self,
        client: Client,
        model: str = DEFAULT_AGENT,
        *,
        style: Style = Style.REASONED,
        base_url: str = "",
        mask: Mask | None = None,
    ) -> None:
        self.model = model
        self.style = style
        self._client = client
        self._asker = Asker(client)
        self._base_url = base_url
        self._mask = mask or Mask()
        self._tells_odds = True

    @property
    def without_tier(self) -> ModelAgent:
        """Itself."""
        return self

    async def assess(
        self,
        text: str,
        facts: Mapping[str, FactValue],
        bullets: Sequence[Bullet],
        calibration: Calibration | None,  # noqa: ARG002  # the frame of the embedded engine says nothing to a model
        *,
        proven: int | None = None,  # noqa: ARG002  # it reads every bullet for itself
    ) -> Assessment:
        """Verdict, probability and reasons. Raises ModelError where the model gave none.

        How much a bullet weighs with a model nobody can say, so one that was neither measured nor approved by a person
        is not shown to it.
        """
        bullets = tuple(
            bullet
            for bullet in bullets
            if (bullet.verified or bullet.status is not Status.CANDIDATE) and not self._mask.hides_bullet(bullet)
        )

        def prompt(style: Style) -> Rendered:
            return agent_prompt(style, text, facts, bullets, mask=self._mask)

        if self.style is Style.DIRECT and self._tells_odds:
            asked = prompt(Style.DIRECT)
            replies = await self._one_word(self._call(asked, max_tokens=8))
            odds = odds_of(replies[-1].logprobs)
            if odds is not None:
                return self._by_odds(asked, replies, odds, bullets)
            self._tells_odds = bool(replies[-1].logprobs)
            return await self._reasoned(prompt(Style.REASONED), bullets, replies)
        return await self._reasoned(prompt(Style.REASONED), bullets)

    async def _reasoned(self, prompt: Rendered, bullets: Sequence[Bullet], spent: Sequence[Reply] = ()) -> Assessment:
        shown = {shown_id(bullet): bullet for bullet in bullets}

        def check(reply: AgentReply, _: bool) -> None:
            unknown = [cited for cited in map(_bare, reply.bullets) if cited not in shown]
            if unknown and shown:  # where none was shown, there is nothing that could be cited
                allowed = ", ".join(shown)
                raise ValueError(f"bullets: {', '.join(unknown)} were not shown; allowed are {allowed}")

        answer = await self._asker.ask(self._call(prompt, max_tokens=300), AgentReply, check)
        said = answer.value
        cited = [shown[name] for name in dict.fromkeys(map(_bare, said.bullets)) if name in shown]
        return Assessment(
            verdict=said.verdict,
            probability=said.probability,
            base=log_odds(min(max(said.probability, SURE), 1 - SURE)),
            reasons=(Reason(kind=ReasonKind.MODEL, text=said.reasoning, contribution=None), *_reasons(cited)),
            model=self.model,
            probability_from=ProbabilityFrom.STATED,
            prompt=prompt.name,
            usage=usage_of([*spent, *answer.replies]),
            shown=tuple(bullets),
        )

    def _by_odds(
        self, prompt: Rendered, replies: Sequence[Reply], odds: float, bullets: Sequence[Bullet]
    ) -> Assessment:
        """The verdict that the last reply is, with the odds of its tokens."""
        verdict = said_verdict(replies[-1].text)
        assert verdict is not None
        return Assessment(
            verdict=verdict,
            probability=sigmoid(odds),
            base=odds,
            reasons=reasons_for(verdict, bullets),
            model=self.model,
            probability_from=ProbabilityFrom.ODDS,
            odds=odds,
            prompt=prompt.name,
            usage=usage_of(replies),
            shown=tuple(bullets),
        )

    async def _one_word(self, call: Call) -> list[Reply]:
        """The replies up to the first that is a verdict; one that is none is asked for once more."""
        call = call.model_copy(update={"top_logprobs": ALTERNATIVES})
        asked: list[tuple[Call, Reply]] = []
        for _ in range(2):
            reply = await self._client.send(call)
            asked.append((call, reply))
            if said_verdict(reply.text) is not None:
                return [made for _, made in asked]
            call = call.adding(ONE_WORD)
        for made, _ in asked:  # another run should have another chance
            self._client.forget(made)
        said = asked[-1][1].text[:60]
        raise ModelMalformed(f"{self.model} as agent: expected APPROVE or DECLINE, got {said!r} for the second time")

    def _call(self, prompt: Rendered, *, max_tokens: int) -> Call:
        return Call(
            role=Role.AGENT,
            model=self.model,
            base_url=self._base_url,
            system=prompt.system,
            messages=(Message(role="user", content=prompt.user),),
            max_tokens=max_tokens,
        )


def reasons_for(verdict: Verdict, bullets: Sequence[Bullet]) -> tuple[Reason, ...]:
    """The bullets that a model was shown and that do not argue for the other verdict, where it names none itself."""
    return _reasons([bullet for bullet in bullets if bullet.argues in (None, verdict)])


def _reasons(bullets: Sequence[Bullet]) -> tuple[Reason, ...]:
    """Bullets as reasons: a model does not say how much each weighed."""
    return tuple(
        Reason(kind=ReasonKind.BULLET, text=bullet.shown, contribution=None, bullet_id=bullet.id) for bullet in bullets
    )


def _bare(cited: str) -> str:
    """An id without the brackets it was shown in."""
    return cited.strip().strip("[]")
