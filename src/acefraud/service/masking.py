"""What answers may show of transactions and rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Final

from acefraud.core.bullet import Bullet
from acefraud.core.condition import Condition
from acefraud.core.events import BulletAdded, BulletEdited, PolicySnoozed
from acefraud.core.transaction import FactValue
from acefraud.display.redaction import (
    MASKED,
    Masker,
    is_personal,
    mask_named_values,
    mask_patterns,
    pattern_of,
    written,
)
from acefraud.storage import BulletPlaybook

_WORDINGS: Final = frozenset({"bullet_added", "bullet_edited", "policy_snoozed"})
"""Events that can bring personal values into a bullet."""
_MOST_WORDINGS: Final = 1_000


class FactMask(Masker):
    """Masks what answers and logs show of transactions, as it is masked for a language model.

    A number that is a card number is masked whatever its name.

    >>> mask = FactMask(["segment"])
    >>> mask.masked_facts({"amount": 20.0, "segment": "b", "email": "a@b.org", "ref": 4111111111111111.0})
    {'amount': 20.0, 'segment': '[masked]', 'email': '[masked]', 'ref': '[masked]'}
    >>> mask.masked_text("Ann Lee pays from 192.0.2.7", {"full_name": "Ann Lee"})
    '[masked] pays from [ip]'
    """

    def masked_facts(self, facts: Mapping[str, FactValue]) -> dict[str, FactValue]:
        """The facts with sensitive and personal values masked."""
        shown = super().masked_facts(facts)
        return {name: MASKED if _is_personal_number(value) else value for name, value in shown.items()}

    def masked_details(self, details: Mapping[str, str]) -> dict[str, str]:
        """Details of an outcome without personal data and what is sensitive."""
        return {name: self.masked_text(str(text), details) for name, text in self.masked_facts(details).items()}


def _is_personal_number(value: FactValue) -> bool:
    digits = "" if isinstance(value, str) else written(value)
    return mask_patterns(digits) != digits


def rule_text(text: str, hidden: Collection[str] = (), *, in_clear: bool) -> str:
    """Words of a rule, a list or a change as a caller may see them: whoever may change them sees them in clear.

    Others see no personal data, and none of the `hidden` values.

    >>> rule_text("decline ann@example.org and Ann Lee", ["Ann Lee"], in_clear=False)
    'decline [email] and [masked]'
    """
    return text if in_clear else _masked(text, tuple(hidden))


@lru_cache(maxsize=4_096)  # many decisions rest on the same rules
def _masked(text: str, hidden: tuple[str, ...]) -> str:
    return mask_named_values(mask_patterns(text, also=pattern_of(hidden)))


def hidden_in(bullet: Bullet | None) -> list[str]:
    """The values of personal facts in a bullet: those that its condition asks for, and those it is snoozed for."""
    if bullet is None:
        return []
    asked = [] if bullet.condition is None else bullet.condition.hidden_values
    return [*asked, *(snooze.value for snooze in bullet.snoozes if is_personal(snooze.key))]


def ever_hidden_in(playbook: BulletPlaybook, bullet_id: str) -> list[str]:
    """The values of personal facts in a bullet as it is now or was once."""
    values = dict.fromkeys(hidden_in(playbook.snapshot().bullets.get(bullet_id)))
    for event in playbook.ledger.find_events(_WORDINGS, subject=bullet_id, limit=_MOST_WORDINGS, newest_first=True):
        match event.payload:
            case BulletAdded(bullet=bullet):
                values |= dict.fromkeys(hidden_in(bullet))
            case BulletEdited(condition=Condition() as condition):
                values |= dict.fromkeys(condition.hidden_values)
            case PolicySnoozed(snooze=snooze) if is_personal(snooze.key):
                values[snooze.value] = None
    return list(values)


@dataclass(frozen=True, slots=True)
class RuleWords:
    """Shows words of rules to one caller: in clear if they may change rules, else without personal data."""

    in_clear: bool
    hidden_in: Callable[[str], Collection[str]]
    """The values of personal facts in the bullet with an id."""

    @classmethod
    def now(cls, playbook: BulletPlaybook, *, in_clear: bool) -> RuleWords:
        """For rules as they were when the last decision was made. It never waits."""
        bullets = playbook.last_snapshot.bullets
        return cls(in_clear, cache(lambda bullet_id: hidden_in(bullets.get(bullet_id))))

    @classmethod
    def ever(cls, playbook: BulletPlaybook, *, in_clear: bool) -> RuleWords:
        """For rules as they are now or were once. It looks into the store."""
        return cls(in_clear, cache(partial(ever_hidden_in, playbook)))

    def shown(self, text: str, bullet_id: str | None = None) -> str:
        """Words of a bullet, or about it."""
        if self.in_clear:
            return text
        return rule_text(text, () if bullet_id is None else self.hidden_in(bullet_id), in_clear=False)
