"""The reflector on a language model. It puts heuristics into words; what they are worth is measured elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from acefraud.core.bullet import MAX_CONTENT, Bullet
from acefraud.core.condition import Condition
from acefraud.core.reading import read_bullet
from acefraud.core.roles import Example, FactSummary, Proposal
from acefraud.llm.asking import Asker, Client
from acefraud.llm.calling import Call, Message, Role
from acefraud.llm.masking import Mask
from acefraud.llm.prompting import reflector_prompt
from acefraud.llm.replies import ReflectorReply

DEFAULT_REFLECTOR = "openai:gpt-4o-mini"


class ModelReflector:
    """Proposes one heuristic from a few cases of one kind."""

    def __init__(
        self, client: Client, model: str = DEFAULT_REFLECTOR, *, base_url: str = "", mask: Mask | None = None
    ) -> None:
        self.model = model
        self._asker = Asker(client)
        self._base_url = base_url
        self._mask = mask or Mask()

    async def propose(
        self, examples: Sequence[Example], facts: Sequence[FactSummary], known: Sequence[Bullet]
    ) -> Proposal | None:
        """A heuristic, or None where the model says that there is nothing new. Raises ModelError where it fails."""
        facts = [fact for fact in facts if not self._mask.hides(fact.name, fact.values)]
        prompt = reflector_prompt(examples, facts, known, mask=self._mask)
        call = Call(
            role=Role.REFLECTOR,
            model=self.model,
            base_url=self._base_url,
            system=prompt.system,
            messages=(Message(role="user", content=prompt.user),),
            max_tokens=300,
        )
        names = {fact.name for fact in facts}

        def check(reply: ReflectorReply, last: bool) -> None:
            """A condition that makes no sense is asked for once more; without one the words alone are left."""
            if not last:
                condition_in(reply.condition, names)

        reply = (await self._asker.ask(call, ReflectorReply, check)).value
        if reply.new_bullet is None or not reply.new_bullet.strip():
            return None
        reading = read_bullet(reply.new_bullet[:MAX_CONTENT])
        return Proposal(
            content=reply.new_bullet[:MAX_CONTENT].strip(),
            argues=reply.argues or reading.argues,
            condition=_readable(reply.condition, names) or _over(reading.condition, names),
            problem_types=reply.problem_types,
            confidence=reply.confidence,
            model=self.model,
        )


def condition_in(words: str | None, names: Collection[str]) -> Condition | None:
    """The condition that a model wrote down, with either kind of quotes. Raises ValueError where it makes no sense.

    >>> str(condition_in("channel in ('online', 'phone order') and amount > 20", {"amount", "channel"}))
    'amount > 20 and channel in ("online", "phone order")'
    """
    if words is None or words.strip().lower() in ("", "none", "null"):
        return None
    try:
        condition = Condition.parse(words if '"' in words else words.replace("'", '"'))
    except ValueError as problem:
        raise ValueError(f"condition: {problem}") from None
    unknown = sorted(condition.facts - set(names))
    if unknown:
        raise ValueError(f"condition: there is no fact called {', '.join(unknown)}; use only the facts listed")
    return condition


def _readable(words: str | None, names: Collection[str]) -> Condition | None:
    try:
        return condition_in(words, names)
    except ValueError:
        return None


def _over(condition: Condition | None, names: set[str]) -> Condition | None:
    """A condition read from the words, where it speaks of facts that there are."""
    return condition if condition is not None and condition.facts <= names else None
