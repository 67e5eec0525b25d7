"""The names of columns: compared without case, accents and punctuation, and by the words that they are made of."""

from __future__ import annotations

import re

from acefraud.datasets.columns import folded
from acefraud.datasets.labels import USUAL_WORDS
from acefraud.datasets.table import FACTS

_ENTITY = re.compile(
    r"(?:^|_)(?:id|uuid|guid|iban|e_?mail|ip|ip_address)$"
    r"|(?:^|_)(?:card|cc|account|acct|policy|phone|iban|passport|ssn)_?(?:number|num|no|nr|hash)$"
)
_ENTITIES, _NUMBERS, _IDS = (
    frozenset(map(folded, USUAL_WORDS["entities"][key])) for key in ("words", "numbers", "ids")
)
_COMPOUND = re.compile(rf"(\w{{3,}})(?:{'|'.join(map(folded, USUAL_WORDS['entities']['endings']))})")

_ASKING, _ANSWERED = frozenset({"is", "has", "was"}), frozenset({"flag", "indicator", "yn", "bool"})
_NUMBERED = re.compile(r"\w{3,}(?:nummer|nr|id|kennung)")


def plain_name(column: str) -> str:
    """A name without case, accents and punctuation, so that ``isFraud`` and ``is_fraud`` are the same.

    >>> plain_name("TX_Fraud"), plain_name("FraudFound_P"), plain_name("Rückbuchung?")
    ('txfraud', 'fraudfoundp', 'ruckbuchung')
    """
    return re.sub(r"[^0-9a-z]+", "", folded(column))


def name_parts(column: str) -> list[str]:
    """The words that a name is made of.

    >>> name_parts("customer.ageOfAccount_days"), name_parts("Geräte-ID")
    (['customer', 'age', 'of', 'account', 'days'], ['gerate', 'id'])
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column.removeprefix(FACTS))
    return [part for part in re.split(r"[^0-9a-z]+", folded(snake)) if part]


def names_an_id(column: str) -> bool:
    """Whether the name of a column says that it holds ids.

    >>> names_an_id("customer_id"), names_an_id("CustomerID"), names_an_id("Kundennummer"), names_an_id("paid")
    (True, True, True, False)
    """
    parts = name_parts(column)
    if _ENTITY.search("_".join(parts)) is not None:
        return not names_a_flag(column)
    return names_an_entity(column) and bool(_NUMBERS & set(parts) or any(map(_COMPOUND.fullmatch, parts)))


def names_a_flag(column: str) -> bool:
    """Whether a name asks a question that has the answer yes or no.

    >>> names_a_flag("is_overnight"), names_a_flag("has_ip"), names_a_flag("issuer_flag"), names_a_flag("items")
    (True, True, True, False)
    """
    parts = name_parts(column) or [""]
    return parts[0] in _ASKING or parts[-1] in _ANSWERED


def names_a_transaction(column: str) -> bool:
    """Whether a name says that a column holds ids, and not those of an entity.

    >>> [names_a_transaction(name) for name in ("Zahlungs-Nr", "Auftragsnummer", "ref_pago", "Kundennummer", "Betrag")]
    [True, True, True, False, False]
    """
    parts = name_parts(column)
    return not names_an_entity(column) and any(part in _IDS or _NUMBERED.fullmatch(part) for part in parts)


def names_an_entity(column: str) -> bool:
    """Whether a name consists of words for an entity, such as a customer, a card or a device, in a known language.

    >>> [names_an_entity(name) for name in ("Customer", "Kartennummer", "número de tarjeta", "N° client", "Card type")]
    [True, True, True, True, False]
    """
    parts = [part for part in name_parts(column) if part not in _NUMBERS]
    whole = [
        compound[1] if part not in _ENTITIES and (compound := _COMPOUND.fullmatch(part)) else part for part in parts
    ]
    return bool(whole) and all(part in _ENTITIES for part in whole)
