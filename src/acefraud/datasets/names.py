"""The names that files usually give to the columns that play a part."""

from __future__ import annotations

import re

from acefraud.core.lexicon import LEXICON, words_for

_LABEL = """answer label is_fraud fraud class target fraudulent is_fraudulent tx_fraud fraud_flag
    fraud_label fraud_bool has_cbk chargeback is_chargeback fraud_found_p fraud_found fraud_reported fraud_ind
    ground_truth verdict truth outcome"""
_ID = """transaction_id tx_id txn_id trans_id trx_id transaction_number trans_num id payment_id order_id case_id
    claim_id uuid"""
_TIME = """timestamp datetime tx_datetime transaction_datetime transaction_timestamp transaction_time transaction_date
    tx_time tx_date txn_date txn_time purchase_time purchase_date event_time event_timestamp payment_time order_date
    trans_date_trans_time transaction_dt created_at date_time time date claim_date"""
_TEXT = "query text description narrative narration analyst_text memo message notes"
_AMOUNT = """amount tx_amount transaction_amount txn_amount amt transaction_amt purchase_value purchase_amount
    payment_amount order_amount total_amount claim_amount total_claim_amount value"""
_KNOWN_AT = "known_at label_time label_date labelled_at reported_at chargeback_date chargeback_time cbk_date"


def plain_name(column: str) -> str:
    """A name without case and punctuation, so that ``isFraud`` and ``is_fraud`` are the same.

    >>> plain_name("TX_Fraud"), plain_name("FraudFound_P")
    ('txfraud', 'fraudfoundp')
    """
    return re.sub(r"[^0-9a-z]+", "", column.lower())


USUAL_NAMES: dict[str, tuple[str, ...]] = {
    role: tuple(plain_name(name) for name in names.split())
    for role, names in (
        ("label", _LABEL),
        ("known_at", _KNOWN_AT),
        ("id", _ID),
        ("time", _TIME),
        ("text", _TEXT),
        ("amount", _AMOUNT),
        ("difficulty", "difficulty"),
    )
}
"""For each part, the names that are looked for, the most telling first."""

_ENTITY = re.compile(
    r"(?:^|_)(?:id|uuid|guid|iban|e_?mail|ip|ip_address)$"
    r"|(?:^|_)(?:card|cc|account|acct|policy|phone|iban|passport|ssn)_?(?:number|num|no|nr|hash)$"
)
_LEAK = re.compile(r"fraud|label|chargeback|chargedback|cbk")


def names_an_entity(column: str) -> bool:
    """Whether a column says who or what, which no rule should learn by heart.

    >>> names_an_entity("customer_id"), names_an_entity("CustomerID"), names_an_entity("paid")
    (True, True, False)
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column)
    return _ENTITY.search(re.sub(r"[\s.-]+", "_", snake).lower()) is not None


PLACES: dict[str, tuple[str, ...]] = {
    "latitude": ("latitude", "lat", "geolat"),
    "longitude": ("longitude", "lon", "long", "lng", "geolon", "geolong", "geolng"),
}
"""The plain names of columns with a place."""

_SUM = re.compile(r"^(?:amount|amt|value)_|_(?:amount|amt)$")


def names_an_amount(column: str) -> bool:
    """Whether a column is called an amount of something.

    >>> names_an_amount("value_brl"), names_an_amount("usual_amount"), names_an_amount("amount_to_usual")
    (True, False, False)
    """
    return words_for(column.lower()) is None and _SUM.search(column.lower()) is not None


def names_a_label(column: str) -> bool:
    """Whether a column sounds like another word for the label; facts of the house are no such thing.

    >>> names_a_label("TX_FRAUD_SCENARIO"), names_a_label("fraud_reports")
    (True, False)
    """
    return column.lower() not in LEXICON and _LEAK.search(plain_name(column)) is not None
