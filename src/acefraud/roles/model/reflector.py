"""The reflector on a language model. It puts heuristics into words; `acefraud.roles.proposals` measures them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from acefraud.core.bullet import DEFAULT_NODE, MAX_CONTENT, Bullet
from acefraud.core.condition import MAX_TESTS, Condition
from acefraud.errors import ConfigurationError
from acefraud.llm.call import Role
from acefraud.roles.model.model_role import ModelRole
from acefraud.roles.model.prompts import reflector_prompt, rewording_prompt
from acefraud.roles.model.replies import ReflectorReply, RewordingReply
from acefraud.roles.protocols import Example, FactSummary, OwnRole, Proposal, answer_of, name_of
from acefraud.rules.bullet_text import read_bullet
from acefraud.rules.english import say_facts


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
            return proposal_of(reply, condition, names, self.model)

        call = self._call(reflector_prompt(examples, facts, known, mask=self._mask), max_tokens=300)
        proposal, _ = await self.ask(call, ReflectorReply, read)
        return proposal

    async def reword(self, rule: str, problem: str, facts: Sequence[FactSummary]) -> tuple[str, ...]:
        """A rule in other words that may be easier to read. What they mean is for the reader to say."""
        call = self._call(rewording_prompt(rule, problem, facts, mask=self._mask), max_tokens=300)
        reworded, _ = await self.ask(call, RewordingReply, lambda reply, _: reply.rules)
        return reworded


def proposal_of(reply: ReflectorReply, condition: Condition | None, names: set[str], model: str) -> Proposal | None:
    """What a reply proposes, with the condition that it states or that its words do; None if it has no words."""
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
        model=model,
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


class OwnProposer:
    """Proposes what an object of your own learns from a case, the first wrong decision that teaches it something."""

    def __init__(self, own: OwnRole) -> None:
        self.model = name_of(own)
        self._own = own

    async def propose(self, examples: Sequence[Example], facts: Sequence[FactSummary], _: object) -> Proposal | None:
        """Its bullet as a proposal, or None. Raises ConfigurationError if it is of another shape."""
        names = {fact.name for fact in facts}
        for example in sorted(examples, key=lambda example: not example.missed):
            query, said = example.text or say_facts(example.facts), (str(example.predicted), str(example.correct))
            answer = await answer_of(self._own, "reflect", query, *said, DEFAULT_NODE)
            try:
                reply = ReflectorReply.model_validate(answer or {"new_bullet": None})
                proposal = proposal_of(reply, parse_condition(reply.condition, names), names, self.model)
            except ValueError as problem:
                raise ConfigurationError(f"{self.model}.reflect: expected a dict with new_bullet; {problem}") from None
            if proposal is not None:
                return proposal
        return None
