"""What a terminal asks while a rule is written: what is meant, if it cannot be read, and what an order shall be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from typer import Exit, prompt

from acefraud.cli.console import note
from acefraud.cli.workspace import trained_mapping
from acefraud.display.redaction import Masker
from acefraud.errors import ModelError
from acefraud.learning.learner import Learner
from acefraud.learning.rule_admission import advise_on, check_rule_text, read_rule
from acefraud.roles.model.build import ModelRoles, build_model_roles
from acefraud.roles.proposals import summaries
from acefraud.rules.english import say
from acefraud.settings import ModelSettings

_OTHERWISE = "Number of one of these, other words, or Enter to stop"


class Conversation:
    """Settles with its author what a rule says. `models` reword what cannot be read, if there are any."""

    def __init__(self, learner: Learner, models: ModelSettings | None = None) -> None:
        self._learner = learner
        self._models = models

    def settle(self, rule: str | None, *, as_note: bool, asks: bool) -> str:
        """The words of the rule that its author wants: the given ones if they can be read or nobody can be asked."""
        text = rule if rule is not None else self._ask("The rule")
        while (reading := read_rule(self._learner.playbook, text)).condition is None and not as_note:
            if not asks and self._models is None:
                return text
            advice = advise_on(self._learner, text, self._reworded(text, reading.rule.problem))
            note("\n".join([f"Not read as a rule: {reading.rule.problem}", *advice.lines]))
            if not asks:
                return text
            answer = self._ask(_OTHERWISE)
            chosen = int(answer) - 1 if answer.isdecimal() else -1
            text = advice.suggestions[chosen].text if 0 <= chosen < len(advice.suggestions) else answer
        if asks and reading.condition is not None:
            note(f"Read as: {say(reading.condition)}")
        return text

    def is_evidence(self, text: str) -> bool:
        """Whether a rule that begins with an order, without "always", shall be weighed with others all the same."""
        rule = read_rule(self._learner.playbook, text).rule
        if rule.orders is None or rule.always is not None or rule.condition is None:
            return False
        question = f"As a policy that always says {rule.orders.lower()}, or as evidence? (p/e)"
        answer: str = prompt(question, default="p", err=True)
        return answer.strip().lower().startswith("e")

    def _ask(self, question: str) -> str:
        """What is answered. Nothing ends the command, and nothing is stored."""
        text: str = prompt(question, default="", show_default=False, err=True)
        if not text.strip():
            note("nothing was stored")
            raise Exit(1)
        check_rule_text(text)
        return text

    def _reworded(self, text: str, problem: str) -> tuple[str, ...]:
        """How a model would say a rule; nothing if none is asked, or if it fails."""
        if self._models is None:
            return ()
        mapping = trained_mapping(self._learner.playbook)
        roles = build_model_roles(self._models, mask=Masker(mapping.sensitive_facts if mapping else ()))
        assert roles.reflector is not None, "checked before the rule was read"
        facts = summaries(self._learner.remembered().facts)
        try:
            return asyncio.run(_asked(roles, roles.reflector.reword(text, problem, facts)))
        except ModelError as failure:
            note(f"the model gave no other wording: {failure}")
            return ()


async def _asked(roles: ModelRoles, answer: Awaitable[tuple[str, ...]]) -> tuple[str, ...]:
    try:
        return await answer
    finally:
        await roles.client.close()
