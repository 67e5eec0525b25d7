"""What is odd about outcomes that were taken all the same: a time before the transaction, or an id that nearly fits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

from acefraud.core.ledger import Ledger
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Transaction
from acefraud.errors import point_out

_LONGEST_NUMBER = 20
"""Ids of digits are tried with leading zeros up to this length."""
_MOST = 1_000
"""Unmatched ids that are compared with those that were decided."""


def outcome_remarks(
    outcomes: Sequence[Outcome], transactions: Sequence[Transaction | None], ledger: Ledger, now: datetime
) -> list[str]:
    """What is odd about each outcome, empty where nothing is. The transactions are those that they are about, if known.

    >>> from acefraud.storage.memory import MemoryLedger
    >>> chargeback = Outcome(transaction_id="t1", is_fraud=True, at="2026-01-02T00:00Z")
    >>> order = Transaction(id="t1", time="2026-02-01T00:00Z", text="$5 coffee")
    >>> outcome_remarks([chargeback], [order], MemoryLedger(), datetime.fromisoformat("2026-03-01T00:00Z"))
    ["the time 2026-01-02 00:00 is before the transaction 't1' of 2026-02-01 00:00"]
    """
    unmatched = [outcome.transaction_id for outcome, known in zip(outcomes, transactions, strict=True) if known is None]
    near = nearly_decided(unmatched[:_MOST], ledger) if unmatched else {}
    return [
        _remark(outcome, known, near.get(outcome.transaction_id), now)
        for outcome, known in zip(outcomes, transactions, strict=True)
    ]


def _remark(outcome: Outcome, known: Transaction | None, near: str | None, now: datetime) -> str:
    at = f"{outcome.at:%Y-%m-%d %H:%M}" if outcome.at else ""
    if outcome.at and outcome.at > now + timedelta(days=1):
        return f"the time {at} of the outcome is still to come"
    if known is not None and known.time is not None and outcome.at is not None and outcome.at < known.time:
        return f"the time {at} is before the transaction '{known.id}' of {known.time:%Y-%m-%d %H:%M}"
    if near is not None:
        return f"no decision was made on '{outcome.transaction_id}', but on '{near}'"
    return ""


def nearly_decided(ids: Collection[str], ledger: Ledger) -> dict[str, str]:
    """For ids without a decision, one that was decided and differs only in what spreadsheets and exports change.

    That is lower or upper case, blanks, leading zeros, and ".0" at the end.
    """
    forms = {one: [form for form in dict.fromkeys(_forms(one)) if form != one] for one in ids}
    pasts = ledger.transaction_events({form for some in forms.values() for form in some})
    decided = {form for form, past in pasts.items() if past.records}
    found = {one: next((form for form in some if form in decided), None) for one, some in forms.items()}
    return {one: form for one, form in found.items() if form is not None}


def nearly_reported(ids: Collection[str], ledger: Ledger) -> set[str]:
    """Which of these transactions have no report, although there is one with an id that differs only in that."""
    forms = {one: {one, *_forms(one)} for one in ids}
    reported = ledger.outcome_events({form for some in forms.values() for form in some}).keys()
    return {one for one, some in forms.items() if one not in reported and not some.isdisjoint(reported)}


def _forms(one: str) -> Iterator[str]:
    bare = "".join(one.split())
    whole = bare.removesuffix(".0")
    for form in (one.strip(), bare, whole, f"{whole}.0", whole.lstrip("0")):
        yield from (form, form.lower(), form.upper(), form.capitalize())
    if whole.isdigit():
        yield from (whole.zfill(length) for length in range(len(whole) + 1, _LONGEST_NUMBER + 1))


def warn_of(remarks: Sequence[str]) -> None:
    """Warn of what is odd about outcomes: of the first, and how many there are."""
    if told := [remark for remark in remarks if remark]:
        more = f" (and {len(told) - 1:,} more)" if len(told) > 1 else ""
        point_out(f"{told[0]}; it was taken all the same{more}")
