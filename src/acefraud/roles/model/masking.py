"""Masks what no language model may see, before anything leaves the process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from acefraud.core.bullet import Bullet
from acefraud.core.comparison import Test
from acefraud.core.transaction import FactValue
from acefraud.display.personal_data import MASKED, identifies, is_personal, mask_patterns, pattern_of, written
from acefraud.roles.model.prompt_text import on_one_line
from acefraud.rules.english import say_facts


@dataclass(frozen=True)
class Masker:
    """Hides facts that are declared sensitive, facts with a personal name such as `email`, and their values in texts.

    Of facts with a personal name only identifying values are hidden, words and long numbers; flags and counts are not.

    >>> mask = Masker(sensitive=["segment"])
    >>> mask.masked_facts({"segment": 3.0, "email": "ann@example.org", "email_age_days": 12.0, "shop": "Ann's"})
    {'segment': '[masked]', 'email': '[masked]', 'email_age_days': 12.0, 'shop': "Ann's"}
    >>> mask.masked_text("Ann Lee pays $20", {"full_name": "Ann Lee"})
    '[masked] pays $20'
    """

    sensitive: Collection[str] = ()
    sensitive_now: Callable[[], Collection[str]] = tuple
    """Names further sensitive facts, in lower case. It is asked every time, so that they may change."""

    def __post_init__(self) -> None:
        if isinstance(self.sensitive, str):
            raise TypeError(f"sensitive: expected a collection of names, got the string {self.sensitive!r}")
        object.__setattr__(self, "sensitive", frozenset(name.casefold() for name in self.sensitive))

    def hides(self, name: str, value: FactValue) -> bool:
        """Whether the value of a fact is hidden."""
        folded = name.casefold()
        declared = folded in self.sensitive or folded in self.sensitive_now()
        return declared or (identifies(value) and is_personal(name))

    def hides_bullet(self, bullet: Bullet) -> bool:
        """Whether the condition of a bullet would reveal the value of a hidden fact."""
        leaves = bullet.condition.leaves if bullet.condition else ()
        return any(
            self.hides(leaf.fact, "" if isinstance(leaf.value, str | tuple) else 0.0)
            for leaf in leaves
            if isinstance(leaf, Test)
        )

    def masked_facts(self, facts: Mapping[str, FactValue]) -> dict[str, FactValue]:
        """The facts with hidden values masked, also where they occur inside other facts."""
        hidden = {name: value for name, value in facts.items() if self.hides(name, value)}
        return {
            name: MASKED if name in hidden else self.masked_text(value, hidden) if isinstance(value, str) else value
            for name, value in facts.items()
        }

    def masked_text(self, text: str, facts: Mapping[str, FactValue] | None = None) -> str:
        """The text with personal data and the values of hidden facts masked."""
        hidden = (written(value) for name, value in (facts or {}).items() if self.hides(name, value))
        return mask_patterns(text, also=pattern_of(hidden))


def presentable(text: str, facts: Mapping[str, FactValue], mask: Masker) -> str:
    """A transaction in words, without what the mask hides: its text, or its facts if it has none.

    >>> presentable("", {"amount": 20.0, "full_name": "Ann Lee"}, Masker())
    'amount 20'
    """
    if text.strip():
        return mask.masked_text(on_one_line(text), facts)
    return say_facts({name: value for name, value in facts.items() if not mask.hides(name, value)})
