"""Masks what no language model may see, before anything leaves the process."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from acefraud.core.bullet import Bullet
from acefraud.core.comparison import Test
from acefraud.core.transaction import FactValue
from acefraud.roles.model.personal_data import MASKED, mask_patterns
from acefraud.roles.model.prompt_text import on_one_line
from acefraud.rules.english import say_facts

_NUMBER = r"_?(?:number|num|no|nr)"
_PERSON = r"customer|client|user|(?:account|card)?_?holder|owner|payer|payee|sender|recipient|beneficiary|buyer|contact"
_PERSONAL = re.compile(
    rf"""(?:^|_)(?:
        e_?mail(?:_?(?:address|addr|id))? | ip(?:_?v?[46])?(?:_?(?:address|addr))? | address(?:_?line)? | addr | street
      | pan | primary_account{_NUMBER} | (?:card|cc|account|acct){_NUMBER} | cv[vc]2? | iban | msisdn
      | (?:tele)?phone(?:{_NUMBER})? | mobile{_NUMBER} | ssn | social_security(?:{_NUMBER})?
      | passport(?:{_NUMBER})? | (?:national|tax)_id | (?:driving|drivers?)_licen[cs]e(?:{_NUMBER})?
      | (?:first|last|full|given|family|middle|maiden|nick|sur|fore)_?name
      | (?:{_PERSON}|billing|shipping)_?name | card_?holder | account_?holder | date_of_birth | birth_?date | dob
    )(?:_?\d)?$ | ^name$""",
    re.VERBOSE,
)


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

    def __post_init__(self) -> None:
        if isinstance(self.sensitive, str):
            raise TypeError(f"sensitive: expected a collection of names, got the string {self.sensitive!r}")
        object.__setattr__(self, "sensitive", frozenset(name.casefold() for name in self.sensitive))

    def hides(self, name: str, value: FactValue) -> bool:
        """Whether the value of a fact is hidden."""
        return name.casefold() in self.sensitive or (_identifies(value) and is_personal(name))

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
        values = {_written(value) for name, value in (facts or {}).items() if self.hides(name, value)}
        longest_first = sorted((value for value in values if len(value) >= 2), key=lambda value: (-len(value), value))
        also = re.compile("|".join(map(_whole, longest_first)), re.IGNORECASE) if longest_first else None
        return mask_patterns(text, also=also)


def presentable(text: str, facts: Mapping[str, FactValue], mask: Masker) -> str:
    """A transaction in words, without what the mask hides: its text, or its facts if it has none.

    >>> presentable("", {"amount": 20.0, "full_name": "Ann Lee"}, Masker())
    'amount 20'
    """
    if text.strip():
        return mask.masked_text(on_one_line(text), facts)
    return say_facts({name: value for name, value in facts.items() if not mask.hides(name, value)})


def is_personal(name: str) -> bool:
    """Whether the name of a fact says that it identifies a person.

    >>> [is_personal(name) for name in ("customerEmail", "IPAddress", "card_number", "cardholder", "Last Name")]
    [True, True, True, True, True]
    >>> [is_personal(name) for name in ("ip_country", "email_domain", "card_age_days", "merchant_name", "zip")]
    [False, False, False, False, False]
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return _PERSONAL.search(re.sub(r"[\W_]+", "_", words).strip("_").lower()) is not None


def _identifies(value: FactValue) -> bool:
    """Words identify, and so do whole numbers of eight digits or more: card numbers are often read as numbers."""
    return isinstance(value, str) or (not isinstance(value, bool) and abs(value) >= 1e7 and float(value).is_integer())


def _written(value: FactValue) -> str:
    """How a value is written in a text; "" for flags and short numbers, which also occur by chance."""
    if isinstance(value, str):
        return value.strip()
    whole = not isinstance(value, bool) and abs(value) >= 1000 and float(value).is_integer()
    return f"{value:.0f}" if whole else ""


def _whole(value: str) -> str:
    """A pattern for the value as a whole word."""
    before = r"(?<!\w)" if re.match(r"\w", value) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", value) else ""
    return f"{before}{re.escape(value)}{after}"
