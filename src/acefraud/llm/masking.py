"""What no language model may see is masked before anything leaves the process."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from acefraud.core.bullet import Bullet
from acefraud.core.english import say_facts
from acefraud.core.transaction import FactValue
from acefraud.llm.outside_text import on_one_line
from acefraud.llm.personal import MASKED, mask_patterns

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
class Mask:
    """Hides the facts that are declared sensitive, those whose name says that they are personal, and their traces.

    Of the latter only what identifies is hidden, words and long numbers: a flag or a count under such a name measures.

    >>> mask = Mask(sensitive=["segment"])
    >>> mask.masked_facts({"segment": 3.0, "email": "ann@example.org", "email_age_days": 12.0, "shop": "Ann's"})
    {'segment': '[masked]', 'email': '[masked]', 'email_age_days': 12.0, 'shop': "Ann's"}
    >>> mask.masked_text("Ann Lee pays $20", {"full_name": "Ann Lee"})
    '[masked] pays $20'
    """

    sensitive: Collection[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.sensitive, str):
            raise TypeError(f"sensitive takes several names, got the text {self.sensitive!r}")
        object.__setattr__(self, "sensitive", frozenset(name.casefold() for name in self.sensitive))

    def hides(self, name: str, value: FactValue) -> bool:
        """Whether the value of a fact may not be seen."""
        return name.casefold() in self.sensitive or (_identifies(value) and is_personal(name))

    def hides_bullet(self, bullet: Bullet) -> bool:
        """Whether the condition of a bullet would tell the value of a fact that may not be seen."""
        tests = bullet.condition.tests if bullet.condition else ()
        return any(self.hides(test.fact, "" if isinstance(test.value, str | tuple) else 0.0) for test in tests)

    def masked_facts(self, facts: Mapping[str, FactValue]) -> dict[str, FactValue]:
        """The facts with what may not be seen masked, wherever it stands."""
        hidden = {name: value for name, value in facts.items() if self.hides(name, value)}
        return {
            name: MASKED if name in hidden else self.masked_text(value, hidden) if isinstance(value, str) else value
            for name, value in facts.items()
        }

    def masked_text(self, text: str, facts: Mapping[str, FactValue] | None = None) -> str:
        """The text with personal patterns masked, and the values of the facts that may not be seen."""
        values = {_spoken(value) for name, value in (facts or {}).items() if self.hides(name, value)}
        longest_first = sorted((value for value in values if len(value) >= 2), key=lambda value: (-len(value), value))
        also = re.compile("|".join(map(_whole, longest_first)), re.IGNORECASE) if longest_first else None
        return mask_patterns(text, also=also)


def presentable(text: str, facts: Mapping[str, FactValue], mask: Mask) -> str:
    """A transaction in words, without what the mask hides: its text, or its facts where it has none.

    >>> presentable("", {"amount": 20.0, "full_name": "Ann Lee"}, Mask())
    'amount 20'
    """
    if text.strip():
        return mask.masked_text(on_one_line(text), facts)
    return say_facts({name: value for name, value in facts.items() if not mask.hides(name, value)})


def is_personal(name: str) -> bool:
    """Whether the name of a fact says that it tells who somebody is.

    >>> [is_personal(name) for name in ("customerEmail", "IPAddress", "card_number", "cardholder", "Last Name")]
    [True, True, True, True, True]
    >>> [is_personal(name) for name in ("ip_country", "email_domain", "card_age_days", "merchant_name", "zip")]
    [False, False, False, False, False]
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return _PERSONAL.search(re.sub(r"[\W_]+", "_", words).strip("_").lower()) is not None


def _identifies(value: FactValue) -> bool:
    """Words do, and whole numbers of eight digits and more: a card number is often read as a number."""
    return isinstance(value, str) or (not isinstance(value, bool) and abs(value) >= 1e7 and float(value).is_integer())


def _spoken(value: FactValue) -> str:
    """How a value stands in a text; short numbers and flags stand there for much else too."""
    if isinstance(value, str):
        return value.strip()
    whole = not isinstance(value, bool) and abs(value) >= 1000 and float(value).is_integer()
    return f"{value:.0f}" if whole else ""


def _whole(value: str) -> str:
    """A pattern for the value where it is no part of a longer word."""
    before = r"(?<!\w)" if re.match(r"\w", value) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", value) else ""
    return f"{before}{re.escape(value)}{after}"
