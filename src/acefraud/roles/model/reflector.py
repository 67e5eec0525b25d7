"""The reflector on a language model. It puts heuristics into words; `acefraud.roles.proposals` measures them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from acefraud.core.bullet import MAX_CONTENT, Bullet
from acefraud.core.condition import MAX_TESTS, Condition
from acefraud.llm.call import Role
from acefraud.roles.model.model_role import ModelRole
from acefraud.roles.model.prompts import reflector_prompt
from acefraud.roles.model.replies import ReflectorReply
from acefraud.roles.protocols import Example, FactSummary, Proposal
from acefraud.rules.bullet_text import read_bullet


class ModelReflector(ModelRole):
    """Proposes one heuristic from a few similar cases."""

    role = Role.REFLECTOR

    async def propose(
        self, examples: Sequence[Example], facts: Sequence[FactSummary], known: Sequence[Bullet]
    ) -> Proposal | None:
        """A heuristic, or None if the model finds nothing new. Raises ModelError if the call fails."""
        facts = [fact for fact in facts if not self._mask.hides(fact.name, fact.values)]
        names = {fact.name for fact in facts}

        def read(reply: ReflectorReply, last: bool) -> Proposal | None:
            try:
                condition = parse_condition(reply.condition, names)
            except ValueError:
                if not last:
                    raise
                condition = None  # the heuristic can do without one: its words are kept
            return self._proposal(reply, condition, names)

        call = self._call(reflector_prompt(examples, facts, known, mask=self._mask), max_tokens=300)
        return (await self._asker.ask(call, ReflectorReply, read)).value

    def _proposal(self, reply: ReflectorReply, condition: Condition | None, names: set[str]) -> Proposal | None:
        content = (reply.new_bullet or "")[:MAX_CONTENT]
        if not content.strip():
            return None
        reading = read_bullet(content)
        if condition is None and reading.condition is not None and reading.condition.facts <= names:
            condition = reading.condition
        return Proposal(
            content=content.strip(),
            argues=reply.argues or reading.argues,
            condition=condition,
            problem_types=reply.problem_types,
            confidence=reply.confidence,
            model=self.model,
        )


def parse_condition(text: str | None, names: Collection[str]) -> Condition | None:
    """The condition that a model wrote, with either kind of quotes. Raises ValueError if it is invalid.

    >>> str(parse_condition("channel in ('online', 'phone order') and amount > 20", {"amount", "channel"}))
    'amount > 20 and channel in ("online", "phone order")'
    """
    if text is None or text.strip().lower() in ("", "none", "null"):
        return None
    try:
        condition = Condition.parse(text if '"' in text else text.replace("'", '"'))
        if not condition.is_plain or len(condition.parts) > MAX_TESTS:
            raise ValueError(f"a condition has 1 to {MAX_TESTS} tests, joined by 'and'")
    except ValueError as problem:
        raise ValueError(f"condition: {problem}") from None
    unknown = sorted(condition.facts - set(names))
    if unknown:
        raise ValueError(f"condition: there is no fact called {', '.join(unknown)}; use only the facts listed")
    return condition
