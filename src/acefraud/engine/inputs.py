"""What callers give as a transaction or an outcome: the objects themselves, dicts, and texts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast
from uuid import UUID

import numpy as np
from pydantic import BaseModel, ValidationError

from acefraud.core.ledger import Ledger
from acefraud.core.outcome import Outcome, OutcomeSource
from acefraud.core.transaction import Case, Transaction, from_text, id_from
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets import SchemaMapping, parse_mapping
from acefraud.display.frames import is_frame
from acefraud.errors import InputError, point_out
from acefraud.support.timestamps import plain_value
from acefraud.support.validation import misfit

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    from acefraud.datasets.records import RecordReader


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


TransactionInput = Transaction | Mapping[str, Any] | str
"""A transaction; a record as in a line of JSON; or the text of one."""
TransactionsInput: TypeAlias = "Iterable[TransactionInput] | IntoFrame"
"""Many transactions, of any kinds, or a data frame of them."""
OutcomeInput = Outcome | Mapping[str, Any]
"""An outcome, or a record of one."""
OutcomesInput: TypeAlias = "Iterable[OutcomeInput] | IntoFrame"
"""Many outcomes, or a data frame of them."""
OptionalTransactionsInput: TypeAlias = "Iterable[TransactionInput | None] | IntoFrame"
"""Many transactions, None where there is none, or a data frame of them."""

_ONE: Final = "expected a Transaction, a dict or a text"
_MANY: Final = "expected many transactions, each a Transaction, a dict or a text, or a data frame of them"
_PLAIN: Final = (str, bool, int, float, type(None))
_TRANSACTION_FIELDS: Final = frozenset(Transaction.model_fields)
_OUTCOME_FIELDS: Final = frozenset(Outcome.model_fields)

M = TypeVar("M", bound=BaseModel)


class RememberedMapping:
    """The mapping that a playbook remembers from training, parsed once a record needs it.

    What it does not say is guessed from the first record with the same fields, and kept for those that follow.
    """

    def __init__(self, written: str = "", *, strict: bool = False) -> None:
        self.written = written
        self._strict = strict

    @cached_property
    def schema(self) -> SchemaMapping | None:
        """The mapping; None if the playbook remembers none."""
        return parse_mapping(self.written, place="the mapping this playbook was trained with") if self.written else None

    @cached_property
    def reader(self) -> RecordReader:
        """Reads records with this mapping."""
        from acefraud.datasets.records import RecordReader  # noqa: PLC0415  # imports polars, which texts do not need

        return RecordReader(remembered=self.schema, strict=self._strict)


def as_transaction(
    given: TransactionInput, mapping: RememberedMapping, *, name: str = "transaction", for_many: str = ""
) -> Transaction:
    """What was given as one transaction. A dict is read as a line of JSON would be, with the playbook's mapping.

    Raises InputError if it is none: `name` is what the caller calls it, `for_many` the method that takes several.

    >>> as_transaction({"amount": 250, "country": "FR", "vpn": None}, RememberedMapping()).facts
    {'amount': 250.0, 'country': 'FR'}
    >>> as_transaction(5, RememberedMapping())
    Traceback (most recent call last):
    acefraud.errors.InputError: transaction: expected a Transaction, a dict or a text, got int
    """
    if isinstance(given, Transaction):
        return given
    try:
        if isinstance(given, str):
            return from_text(given)
        if isinstance(given, Mapping):
            return _from_record(given, mapping)
    except InputError as problem:
        raise InputError(problem.message, file=name, field=problem.field) from problem
    hint = _hint(given)
    if not hint and for_many and (isinstance(given, Iterable) or is_frame(given)):
        hint = f"; use `{for_many}` for many"
    raise InputError(f"{_ONE}, got {_type(given)}{hint}", file=name)


def as_transactions(
    given: TransactionsInput,
    mapping: RememberedMapping,
    *,
    name: str = "transactions",
    for_one: str = "",
    ids: bool = True,
) -> Sequence[Transaction]:
    """What was given as many transactions: any kinds, or a data frame. `Transactions` are returned unchanged.

    Rows of a data frame that bring no id get one made from their content, unless `ids` are not needed.

    Raises InputError for one that is none, with its place, and for a single one: `for_one` is the method that takes it.

    >>> [one.id for one in as_transactions([Transaction(id="t1", text="$5"), "$7 purchase"], RememberedMapping())]
    ['t1', 'tx-4a24fdf7b296']
    """
    if isinstance(given, Transactions):
        return given
    if is_frame(given):
        return _from_frame(given, mapping, name, ids=ids)
    _require_many(given, _MANY, name, for_one)
    return [
        one if isinstance(one, Transaction) else as_transaction(one, mapping, name=f"{name}[{place}]")
        for place, one in enumerate(given)
    ]


def _from_frame(given: IntoFrame, mapping: RememberedMapping, name: str, *, ids: bool) -> Sequence[Transaction]:
    """The rows of a data frame. One that has nothing of what the playbook was trained on was not meant."""
    import narwhals as nw  # noqa: PLC0415  # only a data frame needs it

    from acefraud.datasets import load_transactions  # noqa: PLC0415  # imports polars, which texts do not need

    frame = nw.from_native(given)
    columns, schema = frame.collect_schema().names(), mapping.schema
    known = {column for _, column in schema.named_columns()} if schema else set()
    if known and not known.intersection(map(str, columns)):
        trained = ", ".join(sorted(known)[:10])
        raise InputError(f"none of its columns is one that the playbook was trained with: {trained}", file=name)
    if isinstance(frame, nw.DataFrame) and not len(frame):
        return []
    return load_transactions(given, remembered=schema, name=name, ids=ids)


def as_optional_transactions(
    given: OptionalTransactionsInput, mapping: RememberedMapping, *, name: str = "transactions", for_one: str = ""
) -> Sequence[Transaction | None]:
    """The transactions that a caller gave, with None where there is none."""
    if isinstance(given, Transactions) or is_frame(given):
        return as_transactions(cast("Iterable[TransactionInput]", given), mapping, name=name, for_one=for_one)
    _require_many(given, _MANY, name, for_one)
    return [
        one if one is None or isinstance(one, Transaction) else as_transaction(one, mapping, name=f"{name}[{place}]")
        for place, one in enumerate(given)
    ]


def as_outcome(
    given: OutcomeInput, mapping: RememberedMapping, *, name: str = "outcome", for_many: str = ""
) -> tuple[Outcome, Transaction | None]:
    """What was given as an outcome, and its transaction if a record describes that too.

    >>> as_outcome({"transaction_id": 7, "label": "fraud"}, RememberedMapping())[0].is_fraud
    True
    """
    if isinstance(given, Outcome):
        return given, None
    if not isinstance(given, Mapping):
        hint = f"; use `{for_many}` for many" if for_many and isinstance(given, Iterable) else ""
        raise InputError(f"expected an Outcome or a dict, got {_type(given)}{hint}", file=name)
    try:
        record = _as_json(given)
        if {"transaction_id", "is_fraud"} <= record.keys() <= _OUTCOME_FIELDS and _has_source(record):
            return _checked(Outcome, **{key: value for key, value in record.items() if value is not None}), None
        reported = mapping.reader.outcome(record, 1)
    except InputError as problem:
        raise InputError(problem.message, file=name, field=problem.field) from problem
    warn_of(reported.remarks)
    return reported.outcome, reported.transaction


def _has_source(record: Mapping[str, Any]) -> bool:
    return record.get("source") in (None, *OutcomeSource)


def as_outcomes(
    given: OutcomesInput, mapping: RememberedMapping, *, name: str = "outcomes", for_one: str = ""
) -> list[tuple[Outcome, Transaction | None]]:
    """Many outcomes as a caller gave them, or a data frame of them, each with its transaction if that is given too."""
    if is_frame(given):
        from acefraud.datasets.rows import read_outcomes  # noqa: PLC0415  # imports polars, which texts do not need

        reported = read_outcomes(given, remembered=mapping.schema, strict=True, name=name).rows
        warn_of([remark for one in reported for remark in one.remarks])
        return [(one.outcome, one.transaction) for one in reported]
    _require_many(given, "expected many outcomes, each an Outcome or a dict", name, for_one)
    return [
        (one, None) if isinstance(one, Outcome) else as_outcome(one, mapping, name=f"{name}[{place}]")
        for place, one in enumerate(given)
    ]


def _is_one(given: object) -> bool:
    """Whether this is one thing, or means to be one: a text and a dict can be iterated over too."""
    return isinstance(given, Transaction | Case | Outcome | Mapping | str | bytes)


def _from_record(given: Mapping[str, Any], mapping: RememberedMapping) -> Transaction:
    facts = given.get("facts")
    if isinstance(facts, Mapping):
        given = {**given, "facts": _with_days_since(facts, given.get("time"))}
    record = _as_json(given)
    if not (isinstance(record.get("entities"), dict) and record.keys() <= _TRANSACTION_FIELDS):
        return mapping.reader.transaction(record)
    record.setdefault("id", id_from(json.dumps(record, sort_keys=True)))
    entities = record.pop("entities")
    return _checked(Transaction, **dict(mapping.reader.transaction(record)) | {"entities": entities})


def _with_days_since(facts: Mapping[str, Any], time: Any) -> dict[str, Any]:
    """Facts in which times have become the days between them and the transaction, as in a `Transaction`."""
    times = {name: value for name, value in facts.items() if isinstance(plain_value(value), date)}
    if not times:
        return dict(facts)
    others = {name: value for name, value in facts.items() if name not in times}
    return others | _checked(Transaction, id="-", time=time, facts=times).facts


def _as_json(given: Mapping[str, Any]) -> dict[str, Any]:
    """A record in the values that JSON has. What says that there is no value is None."""
    try:
        return {_name(key): _json_value(value, key) for key, value in given.items()}
    except RecursionError:
        raise InputError("nested too deeply") from None


def _json_value(value: Any, field: str) -> Any:
    plain = plain_value(value)
    if isinstance(plain, _PLAIN):
        return plain
    if isinstance(plain, date):  # or a datetime
        return plain.isoformat()
    if isinstance(plain, UUID):
        return str(plain)
    if isinstance(plain, Mapping):
        return {_name(key): _json_value(inner, f"{field}.{key}") for key, inner in plain.items()}
    if isinstance(plain, list | tuple | np.ndarray):
        return [_json_value(inner, field) for inner in plain]
    raise InputError(f"expected a number, a flag, a text or a time, got {_type(value)}", field=field)


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise InputError(f"expected names of fields that are text, got {_type(key)}")
    return str(key)


def _checked(model: type[M], **fields: Any) -> M:
    """The model with these fields. Raises InputError with the first that is wrong."""
    try:
        return model(**fields)
    except ValidationError as problem:
        field, message = misfit(problem.errors(include_url=False, include_input=False)[0], model)
        raise InputError(message, field=field or None) from None


def _require_many(given: object, expected: str, name: str, for_one: str) -> None:
    if _is_one(given):
        hint = _hint(given) or (f"; use `{for_one}` for one" if for_one else "")
        raise InputError(f"{expected}, got one {_type(given)}{hint}", file=name)
    if isinstance(given, Cases) or not isinstance(given, Iterable):
        raise InputError(f"{expected}, got {_type(given)}{_hint(given)}", file=name)


def _hint(given: object) -> str:
    """How to pass something that holds a transaction, or several."""
    if isinstance(given, Case):
        return "; pass its `transaction`"
    if isinstance(given, Cases):
        return "; pass its `transactions`"
    if hasattr(given, "to_dict") and not is_frame(given):  # a row of a data frame
        return "; pass its `to_dict()`"
    return ""


def _type(given: object) -> str:
    return "None" if given is None else type(given).__name__
