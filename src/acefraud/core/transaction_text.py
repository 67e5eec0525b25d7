"""Transactions that are only a text: their ids are made from it."""

from __future__ import annotations

import hashlib

from acefraud.core.transaction import MAX_TEXT, Transaction
from acefraud.errors import InputError


def from_text(text: str) -> Transaction:
    """A transaction with this text, and an id made from it.

    >>> from_text("$7 purchase").id
    'tx-4a24fdf7b296'
    """
    if not text.strip():
        raise InputError("expected a transaction, got an empty text")
    if len(text) > MAX_TEXT:
        raise InputError(f"the text has {len(text):,} characters, expected at most {MAX_TEXT:,}")
    return Transaction(id=id_from(text), text=text)


def id_from(content: str) -> str:
    """An id made from the content, for a transaction that has none."""
    try:
        return "tx-" + hashlib.sha256(content.encode()).hexdigest()[:12]
    except UnicodeEncodeError as problem:
        raise InputError(f"expected valid UTF-8, got something else at character {problem.start + 1}") from None
