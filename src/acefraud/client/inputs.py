"""What callers give, as the service wants it: transactions, outcomes, times and names in a path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import quote
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Transaction, Verdict, from_text
from acefraud.errors import InputError
from acefraud.support.arguments import check_choice, check_text, check_type
from acefraud.support.timestamps import in_utc
from acefraud.support.validation import first_fault

TransactionInput: TypeAlias = Transaction | Mapping[str, Any] | str
"""A transaction, a dict with its fields, or its text."""
OutcomeInput: TypeAlias = Outcome | Mapping[str, Any]
"""An outcome, or a dict with its fields."""

FRAUD, LEGITIMATE = "fraud", "legitimate"
LONGEST_NAME: Final = 1_000
LONGEST_KEY: Final = 200

M = TypeVar("M", bound=BaseModel)


def transaction_json(given: TransactionInput, name: str = "transaction") -> dict[str, Any]:
    """A transaction for the wire. A text gets an id made from it, so the same text is the same transaction.

    >>> transaction_json({"id": 7, "facts": {"amount": 250, "vpn": None}})
    {'id': '7', 'facts': {'amount': 250.0}}
    """
    check_type(name, given, (Transaction, Mapping, str), "a Transaction, a dict or a text")
    if isinstance(given, str):
        transaction = from_text(given)
    else:
        transaction = given if isinstance(given, Transaction) else _checked(Transaction, given, name)
    content = transaction.model_dump(mode="json")
    return {field: value for field, value in content.items() if value not in (None, "", {})}


def transactions_json(given: Iterable[TransactionInput]) -> list[dict[str, Any]]:
    """Many transactions for the wire."""
    if isinstance(given, Transaction | Mapping | str) or not isinstance(given, Iterable):
        raise InputError("transactions: expected many; use `decide` for one")
    return [transaction_json(transaction, f"transactions[{index}]") for index, transaction in enumerate(given)]


def outcome_json(given: OutcomeInput, name: str = "outcome") -> dict[str, Any]:
    """An outcome for the wire. One without an id gets one from what it says and when; without a time, a new one.

    So a label can be revised back and forth.

    >>> outcome_json({"id": "cb-881", "transaction_id": "t1", "label": "fraud", "source": "chargeback"})
    {'id': 'cb-881', 'transaction_id': 't1', 'label': 'fraud', 'source': 'chargeback'}
    """
    check_type(name, given, (Outcome, Mapping), "an Outcome or a dict")
    outcome = given if isinstance(given, Outcome) else _checked(Outcome, _outcome_fields(given, name), name)
    content = {
        "id": outcome.key if outcome.id or outcome.at else uuid4().hex,
        "transaction_id": outcome.transaction_id,
        "label": FRAUD if outcome.is_fraud else LEGITIMATE,
        "source": str(outcome.source),
    }
    more = {"note": outcome.note, "author": outcome.author, "details": outcome.details}
    time = {} if outcome.at is None else {"time": outcome.at.isoformat()}
    return content | time | {name: value for name, value in more.items() if value}


def outcomes_json(given: OutcomeInput | Iterable[OutcomeInput]) -> list[dict[str, Any]]:
    """One outcome or many for the wire."""
    if isinstance(given, Outcome | Mapping):
        return [outcome_json(given)]
    check_type("outcomes", given, Iterable, "an Outcome, a dict, or many of them")
    return [outcome_json(outcome, f"outcomes[{index}]") for index, outcome in enumerate(given)]


def _outcome_fields(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The fields of an Outcome, also if they have the names of the wire: `label` and `time`."""
    fields = dict(given)
    if "label" in fields:
        label = fields.pop("label")
        if label not in (FRAUD, LEGITIMATE):
            raise InputError(f"{name}: label: expected {FRAUD} or {LEGITIMATE}")
        fields["is_fraud"] = label == FRAUD
    if "time" in fields:
        fields["at"] = fields.pop("time")
    return {field: value for field, value in fields.items() if value is not None}


def _checked(model: type[M], given: Mapping[str, Any], name: str) -> M:
    try:
        return model.model_validate(dict(given))
    except ValidationError as problem:
        raise InputError(f"{name}: {first_fault(problem, model)}") from None


def time_text(time: datetime | None) -> str | None:
    """A time for the wire. One without a zone is read as UTC."""
    return None if time is None else in_utc(time).isoformat()


def verdict_text(verdict: Verdict | str) -> str:
    """A verdict for the wire, given in any case.

    >>> verdict_text("decline")
    'DECLINE'
    """
    check_type("verdict", verdict, str, "a verdict")
    check_choice("verdict", verdict.upper(), Verdict)
    return verdict.upper()


def checked_key(key: str) -> str:
    """An idempotency key. Raises InputError if it cannot stand in a header."""
    if not (0 < len(key) <= LONGEST_KEY and all("!" <= char <= "~" for char in key)):
        raise InputError(f"idempotency_key: expected 1 to {LONGEST_KEY} printable ASCII characters without spaces")
    return key


def segment(name: str, value: str) -> str:
    """A name as one part of a path.

    >>> segment("bullet_id", "a/b c"), segment("bullet_id", "..")
    ('a%2Fb%20c', '%2E%2E')
    """
    check_text(name, value)
    if len(value) > LONGEST_NAME:
        raise InputError(f"{name}: expected at most {LONGEST_NAME:,} characters, got {len(value):,}")
    try:
        quoted = quote(value, safe="")
    except UnicodeEncodeError:
        raise InputError(f"{name}: expected valid UTF-8") from None
    # A path leaves out parts that are only dots.
    return quoted.replace(".", "%2E") if value in (".", "..") else quoted


def without_nothing(**fields: Any) -> dict[str, Any]:
    """The fields that say something: neither None nor False nor empty. A zero does.

    >>> without_nothing(priority=0, final=False, reason="")
    {'priority': 0}
    """
    return {name: value for name, value in fields.items() if value or (value == 0 and value is not False)}
