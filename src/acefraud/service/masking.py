"""What logs and lists may show of a transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from acefraud.core.bullet import Bullet
from acefraud.core.transaction import FactValue
from acefraud.display.personal_data import MASKED, mask_named_values, mask_patterns, pattern_of, written
from acefraud.roles.model.masking import Masker


def masked_facts(facts: Mapping[str, FactValue], sensitive: Collection[str] = ()) -> dict[str, FactValue]:
    """The facts with the values masked that are sensitive or personal, as they are for a language model.

    `sensitive` are the facts that a mapping declares as such: `SchemaMapping.sensitive_facts`. A number that is a card
    number is masked whatever its name.

    >>> masked_facts({"amount": 20.0, "segment": "b", "email": "a@b.org", "ref": 4111111111111111.0}, ["segment"])
    {'amount': 20.0, 'segment': '[masked]', 'email': '[masked]', 'ref': '[masked]'}
    """
    shown = Masker(sensitive).masked_facts(facts)
    return {name: MASKED if _is_personal_number(value) else value for name, value in shown.items()}


def masked_text(text: str, facts: Mapping[str, FactValue], sensitive: Collection[str] = ()) -> str:
    """The text without personal data and without the values that are masked among the facts.

    >>> masked_text("Ann Lee pays from 192.0.2.7", {"full_name": "Ann Lee"})
    '[masked] pays from [ip]'
    """
    return Masker(sensitive).masked_text(text, facts)


def rule_text(text: str, bullet: Bullet | None = None, *, in_clear: bool) -> str:
    """Words of a rule, a list or a change as a caller may see them: whoever may change them sees them in clear.

    Others see no personal data, and not the values of personal facts that the condition of the `bullet` asks for.

    >>> rule_text("decline ann@example.org", in_clear=False)
    'decline [email]'
    """
    if in_clear:
        return text
    hidden = bullet.condition.hidden_values if bullet is not None and bullet.condition is not None else ()
    return mask_named_values(mask_patterns(text, also=pattern_of(hidden)))


def _is_personal_number(value: FactValue) -> bool:
    digits = "" if isinstance(value, str) else written(value)
    return mask_patterns(digits) != digits
