"""Labelled transactions: how to load them, and how to split them without leaking the answer."""

from __future__ import annotations

import random
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import percent
from acefraud.core.transaction import Case, FactValue, Transaction
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import BadRow, ReadingReport, Remark, Table
from acefraud.datasets.world import WorldOptions, generate
from acefraud.display.frames import is_frame
from acefraud.display.html_tables import MOST_ROWS, block, summary
from acefraud.display.html_tables import table as html_table
from acefraud.display.redaction import MASKED, is_personal
from acefraud.display.short_repr import given, quoted, shown_names, shown_number, shown_text, shown_value
from acefraud.errors import ConfigurationError, InputError, point_out
from acefraud.facts.extraction import facts_in
from acefraud.support.arguments import check_type, check_whole, nearest_file
from acefraud.support.arrays import FloatArray, IntArray
from acefraud.support.timestamps import UNKNOWN

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

Fold = tuple[Cases, Cases]
SHIPPED = ("complex_fraud_detection",)
"""Datasets that need no file."""

_TRAIN_PERIOD = 0.6


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Dataset(Sequence[Case]):
    """A sequence over the rows to learn from; the test rows have to be asked for by name.

    >>> orders = [Transaction(id=f"t{number}", facts={"amount": 10.0 * number}) for number in range(10)]
    >>> data = Dataset("cards", [Case(transaction=order, is_fraud=order.facts["amount"] > 60) for order in orders])
    >>> len(data), data.frauds, data[9].transaction.id
    (10, 3, 't9')
    >>> parts = data.split(test_share=0.4)
    >>> len(parts.train), len(parts.test)
    (6, 4)
    """

    name: str
    """Of the file or of the shipped dataset."""
    train: Cases
    """The rows to learn from."""
    test: Cases
    """The rows to be decided."""
    mapping: SchemaMapping
    """How the columns of the file were read."""
    bad_rows: tuple[BadRow, ...]
    """Rows that could not be read, each with the reason."""
    unlabelled: int
    """Rows whose label had not arrived; they are no cases, and nothing is wrong with them."""
    waiting: Transactions
    """Those rows, if there is a history: they happened, and count for the rows after them."""
    unreadable: int
    """Rows with a word such as ``NA`` in place of a number or flag, which is read as unknown."""
    report: ReadingReport
    """How the file was read: everything that was guessed, left out or read in a special way, and what changes it."""
    dropped: int
    """Rows that `without_duplicates` left out."""

    def __init__(
        self,
        name: str,
        train: Sequence[Case],
        test: Sequence[Case] = (),
        *,
        mapping: SchemaMapping | None = None,
        bad_rows: tuple[BadRow, ...] = (),
        unlabelled: int = 0,
        waiting: Sequence[Transaction] = (),
        unreadable: int = 0,
        report: Sequence[str] = (),
        dropped: int = 0,
    ) -> None:
        self.__dict__.update(
            name=name,
            train=Cases.of(train),
            test=Cases.of(test),
            mapping=mapping or SchemaMapping(),
            bad_rows=bad_rows,
            unlabelled=unlabelled,
            waiting=Transactions.of(waiting),
            unreadable=unreadable,
            report=ReadingReport(report),
            dropped=dropped,
        )

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What a person should know of the report."""
        return self.report.remarks

    def __repr__(self) -> str:
        rows = f"train={len(self.train):,}, test={len(self.test):,}, frauds={self.frauds:,}"
        return f"Dataset({quoted(self.name)}, {rows})"

    def _repr_html_(self) -> str:
        """What is in it and its first rows, for a notebook. Sensitive and personal facts are masked."""
        columns, span = self.train.facts.columns, self.train.transactions.span
        by_kind = {"numbers": columns.numbers, "flags": columns.flags, "words": columns.categories}
        entries = {
            "rows to learn from": f"{len(self):,}",
            "frauds among them": f"{self.frauds:,} ({percent(self.frauds / len(self))})" if len(self) else "",
            "rows to test on": f"{len(self.test):,}" if len(self.test) else "",
            "time": " to ".join(shown_value(time) for time in span) if span else "",
            **{f"facts: {kind}": shown_names(sorted(some), 20) for kind, some in by_kind.items() if some},
            "entities with a history": shown_names(list(self.mapping.entities), 20),
            "columns left out": shown_names(list(self.mapping.ignore or ()), 20),
            "rows left out": f"{len(self.bad_rows):,}" if self.bad_rows else "",
            "rows without a label": f"{self.unlabelled:,}" if self.unlabelled else "",
            "remarks": shown_text("; ".join(self.remarks), 600),
        }
        return block(f"Dataset {shown_text(self.name)}", summary(entries), self._first_rows())

    def _first_rows(self) -> str:
        names = self.train.facts.names[:8]
        hidden = self._hidden(names)
        texts = self.train.transactions.texts is not None
        rows = (
            (
                shown_text(case.transaction.id),
                "fraud" if case.is_fraud else "honest",
                *(MASKED if name in hidden else _cell(case.transaction.facts.get(name)) for name in names),
                *([shown_text(case.transaction.text, 200, hidden=case.transaction.hidden_values)] if texts else []),
            )
            for case in self.train[:MOST_ROWS]
        )
        headings = ["id", "label", *(shown_text(name) for name in names), *(["text"] if texts else [])]
        return html_table(headings, rows, total=len(self)) if len(self) else ""

    def _hidden(self, names: Sequence[str]) -> set[str]:
        """The facts that are shown without values: sensitive and personal ones, and words that hardly ever repeat."""
        sensitive = {name.casefold() for name in self.mapping.sensitive_facts}
        columns = self.train.facts.columns
        rare = {name for name, (_, words) in columns.categories.items() if 2 * len(words) > max(2, len(self))}
        return {name for name in names if name.casefold() in sensitive or is_personal(name)} | rare

    def delay_remark(self, given: SchemaMapping | None = None) -> str:
        """What to know if figures depend on how late labels are and nobody has said it; empty if that does not matter.

        ``given`` is the mapping that a person wrote, if there was one.
        """
        plan = self.mapping.history
        if plan is None or not plan.entities or (self.train.known_at != UNKNOWN).all():
            return ""
        stated = given.history if given else None
        if stated is not None and "label_delay" in stated.model_fields_set:
            return ""
        return (
            f'label_delay = "{plan.label_delay}" is {"a guess" if stated is None else "not stated"}: if labels arrive '
            "later than that, facts about known frauds come too early and every figure looks better than it is; state "
            "it under [history] in a mapping"
        )

    def __contains__(self, value: object) -> bool:
        """Whether a case is among the rows to learn from, or one whose transaction has that id."""
        return value in self.train

    def __len__(self) -> int:
        return len(self.train)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.train)

    @overload
    def __getitem__(self, index: int) -> Case: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Case]: ...

    def __getitem__(self, index: int | slice) -> Case | Sequence[Case]:
        return self.train[index]

    @property
    def has_time(self) -> bool:
        """Whether every row has a time, so that the order of events is known."""
        return self.train.transactions.timed and self.test.transactions.timed

    @property
    def frauds(self) -> int:
        """How many of the rows to learn from are fraud."""
        return int(self.train.labels.sum())

    @property
    def duplicates(self) -> int:
        """How many of the rows to learn from repeat the facts and the text of an earlier one."""
        return len(self.train) - len(np.unique(first_alike(self.train)))

    def without_duplicates(self) -> Dataset:
        """The dataset without rows that repeat the facts and the text of an earlier one.

        Meant for collections of texts. If transactions have few facts, two equal rows may still be two transactions.

        >>> orders = [Transaction(id=f"t{number}", text="$20 purchase") for number in range(3)]
        >>> data = Dataset("texts", [Case(transaction=order, is_fraud=False) for order in orders])
        >>> len(data.without_duplicates()), data.without_duplicates().dropped
        (1, 2)
        """
        alike = first_alike(self._all())
        first = alike == np.arange(len(alike))
        train, test = self.train.take(first[: len(self.train)]), self.test.take(first[len(self.train) :])
        return replace(self, train=train, test=test, dropped=self.dropped + int(np.sum(~first)))

    def split(self, test_share: float = 0.3, seed: int = 0) -> Dataset:
        """All rows split anew: the latest are the test if times are known, else a random share of each label.

        Rows at the same time go by the hashes of their ids. Without times, rows with the same facts and text stay on
        one side.

        >>> from datetime import UTC, datetime
        >>> times = [datetime(2025, 3, day, tzinfo=UTC) for day in (4, 2, 1, 3)]
        >>> orders = [Transaction(id=f"t{time.day}", time=time, text="$20 purchase") for time in times]
        >>> data = Dataset("march", [Case(transaction=order, is_fraud=False) for order in orders]).split(0.25)
        >>> [case.transaction.id for case in data.train], [case.transaction.id for case in data.test]
        (['t1', 't2', 't3'], ['t4'])
        """
        check_type("test_share", test_share, (int, float), "a share between 0 and 1", ConfigurationError)
        check_whole("seed", seed)
        if not 0 < test_share < 1:
            raise ConfigurationError(f"test_share must be between 0 and 1, got {test_share}")
        cases = self._all()
        if self.has_time:
            cases = cases.in_order()
            cut = len(cases) - round(test_share * len(cases))
            return replace(self, train=cases[:cut], test=cases[cut:])
        sides = _deal(cases, (1 - test_share, test_share), seed)
        return replace(self, train=cases.take(sides == 0), test=cases.take(sides == 1))

    def folds(self, k: int = 5, seed: int = 0) -> list[Fold]:
        """The rows to learn from as k pairs of train and test, stratified by label.

        Rows with the same facts and text always go to the same fold; otherwise they would leak the answer.

        >>> orders = [Transaction(id=f"t{number}", facts={"amount": number}) for number in range(10)]
        >>> data = Dataset("cards", [Case(transaction=order, is_fraud=order.facts["amount"] > 4) for order in orders])
        >>> [(len(train), int(test.labels.sum())) for train, test in data.folds(k=5)]
        [(8, 1), (8, 1), (8, 1), (8, 1), (8, 1)]
        """
        check_whole("k", k)
        check_whole("seed", seed)
        groups = len(self.train) - self.duplicates
        if not 2 <= k <= groups:
            raise ConfigurationError(f"k must be between 2 and the {groups} distinct rows, got {k}")
        sides = _deal(self.train, (1 / k,) * k, seed)
        return [(self.train.take(sides != fold), self.train.take(sides == fold)) for fold in range(k)]

    def with_history(self) -> Dataset:
        """The dataset in the order of time, with the facts of the declared history as plain facts of every case.

        A learner that keeps no history itself needs this. The facts come from all rows together, so the test rows see
        the past in the training rows. Labels without a time get the usual delay. The mapping of the result declares no
        history, so that nothing is derived twice.

        >>> from datetime import UTC, datetime
        >>> from acefraud import SchemaMapping
        >>> times = [datetime(2025, 3, 1, hour, tzinfo=UTC) for hour in range(3)]
        >>> orders = [Transaction(id=f"t{at.hour}", time=at, text="$20", entities={"card": "c1"}) for at in times]
        >>> mapping = SchemaMapping(history={"entities": ("card",), "windows": ("24h",)})
        >>> data = Dataset("cards", [Case(transaction=order, is_fraud=False) for order in orders], mapping=mapping)
        >>> [case.transaction.facts["card_count_24h"] for case in data.with_history()]
        [0.0, 1.0, 2.0]
        """
        ordered = replace(self, train=self.train.in_order(), test=self.test.in_order())
        plan = self.mapping.history
        if plan is None or not plan.entities:
            return ordered
        # Late, because it imports polars, which is slow to import.
        from acefraud.datasets.cells import compact  # noqa: PLC0415
        from acefraud.datasets.history_facts import history_facts, usual_known_at  # noqa: PLC0415

        cases = ordered._all()
        facts = cases.facts.beside(compact(history_facts(self.mapping, cases, self.waiting)))
        known = Cases(
            cases.transactions.with_facts(facts),
            cases.labels,
            known_at=usual_known_at(cases, plan),
            difficulty=cases.difficulty,
            metadata=cases.metadata,
        )
        at = len(self.train)
        mapping = self.mapping.model_copy(update={"history": None})
        return replace(self, train=known[:at], test=known[at:], mapping=mapping, waiting=Transactions.of(()))

    def with_read_facts(self) -> Dataset:
        """The dataset with every fact that the engine decides on: also those read from texts and derived from others.

        For learners that read no texts.

        >>> case = Case(transaction=Transaction(id="t1", text="$900 purchase through a VPN"), is_fraud=True)
        >>> Dataset("texts", [case]).with_read_facts()[0].transaction.facts
        {'amount': 900.0, 'vpn': True}
        """
        train, test = (cases.with_facts(facts_in(cases.transactions)) for cases in (self.train, self.test))
        return replace(self, train=train, test=test)

    def _all(self) -> Cases:
        return Cases.stacked([self.train, self.test])


def _cell(value: FactValue | None) -> str:
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value)
    return shown_number(value) if isinstance(value, float) else shown_text(value)


def first_alike(cases: Cases) -> IntArray:
    """For each row the first one with the same facts and text.

    >>> rows = [Transaction(id=name, facts={"amount": amount}) for name, amount in [("a", 5.0), ("b", 7.0), ("c", 5.0)]]
    >>> first_alike(Cases.of([Case(transaction=row, is_fraud=False) for row in rows])).tolist()
    [0, 1, 0]
    """
    columns, texts = cases.facts.columns, cases.transactions.texts
    numbers = dict(columns.numbers)
    for name, flags in columns.flags.items():  # True is 1 where one row has a flag and another a number
        numbers[name] = np.where(flags >= 0, flags, numbers[name]) if name in numbers else flags.astype(np.float64)
    compared: list[npt.NDArray[Any]] = [*numbers.values(), *(codes for codes, _ in columns.categories.values())]
    if texts is not None:
        compared.append(np.array(texts, dtype=object))
    groups = np.zeros(len(cases), dtype=np.int64)
    for column in compared:
        values, codes = np.unique(column, return_inverse=True)
        groups = np.unique(groups * len(values) + codes, return_inverse=True)[1]
    first = np.unique(groups, return_index=True)[1]
    return first[groups]


def _deal(cases: Cases, shares: Sequence[float], seed: int) -> IntArray:
    """For each case its side, so that each label is shared out in the given proportion and equal rows stay together."""
    groups: dict[int, list[int]] = defaultdict(list)
    for row, first in enumerate(first_alike(cases).tolist()):
        groups[first].append(row)
    dealt = list(groups.values())
    random.Random(int(seed)).shuffle(dealt)
    sides = np.zeros(len(cases), dtype=np.int64)
    filled = [[0.0, 0.0] for _ in shares]
    for group in dealt:
        frauds = int(cases.labels[group].sum())
        label = int(2 * frauds > len(group))
        # The side that stays furthest behind its share takes the group.
        behind = [((rows[label] + len(group)) / share, sum(rows)) for rows, share in zip(filled, shares, strict=True)]
        side = behind.index(min(behind))
        filled[side][1] += frauds
        filled[side][0] += len(group) - frauds
        sides[group] = side
    return sides


class ShippedDatasetWarning(UserWarning):
    """A path does not exist and names a shipped dataset, which was loaded instead.

    >>> import warnings
    >>> from acefraud.datasets.world import WorldOptions
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ShippedDatasetWarning)
    ...     data = load_dataset("agents/complex_fraud_detection.json", options=WorldOptions(transactions=20))
    >>> data.name
    'complex_fraud_detection'
    """


def load_dataset(
    source: str | Path | IntoFrame,
    *,
    mapping: SchemaMapping | Mapping[str, Any] | Path | str | None = None,
    remembered: SchemaMapping | None = None,
    strict: bool = False,
    seed: int = 0,
    options: WorldOptions | None = None,
    name: str | None = None,
    weights: npt.ArrayLike | None = None,
    ids: bool = True,
    labels_apart: bool = False,
) -> Dataset:
    """A shipped dataset by its name, or labelled transactions from a file or a data frame.

    A data frame may come from pandas, polars, pyarrow or any other library that narwhals reads. Its columns are read
    and guessed as those of a file; NaN is an unknown number. ``mapping`` is a `SchemaMapping`, its fields as a dict, or
    the path of a TOML file. ``name`` is what messages call the data: by default the file or "frame". ``weights``, one
    for each row of a data frame, say how much it counts when bullets are weighed. Rows that bring no id get
    one made from their content. Without ``ids``, those that a data frame brings may repeat. ``labels_apart`` says that
    the label was put beside a data frame, so that no other column is the label by its name alone.

    If there is no such file, a path that ends in the name of a shipped dataset and ``.json`` stands for that one, with
    a `ShippedDatasetWarning`: so ``load_dataset("agents/complex_fraud_detection.json")`` works anywhere. The shipped
    dataset is generated from ``seed`` and ``options``, and comes split by time. A file comes whole, as rows to learn
    from; `Dataset.split` splits it. A column that is likely to leak the label is left out with an `InputWarning`,
    unless the mapping names it; `Dataset.remarks` says what else is worth knowing. With ``strict`` the first bad row
    raises, otherwise bad rows are collected and the rest is used.

    >>> import polars as pl
    >>> data = load_dataset(pl.DataFrame({"amount": [5.0, 900.0], "is_fraud": [0, 1]}))
    >>> len(data), data.frauds, data.mapping.label
    (2, 1, 'is_fraud')

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "orders.csv")
    ...     _ = file.write_text("id,amount,vpn,is_fraud\\nt1,900,yes,1\\nt2,12,no,0\\n", "utf-8")
    ...     data = load_dataset(file)
    >>> [case.transaction.facts for case in data], [case.is_fraud for case in data]
    ([{'amount': 900.0, 'vpn': True}, {'amount': 12.0, 'vpn': False}], [True, False])

    >>> from acefraud.datasets.world import WorldOptions
    >>> shipped = load_dataset("complex_fraud_detection", options=WorldOptions(transactions=50))
    >>> len(shipped.train), len(shipped.test)
    (27, 23)
    """
    mapping = _mapping_of(mapping)
    if is_frame(source):
        if options is not None:
            raise ConfigurationError(f"options shape a shipped dataset ({', '.join(SHIPPED)}); this is a data frame")
        from acefraud.datasets.files import FRAME, frame_table  # noqa: PLC0415

        table = frame_table(source, name or FRAME)
        checked = None if weights is None else _checked_weights(weights, table.height)
        table = replace(table, weights=checked, labels_apart=labels_apart)
        return read_labelled(table, table.name, mapping=mapping, remembered=remembered, strict=strict, ids=ids)
    if weights is not None:
        raise ConfigurationError("weights belong to the rows of a data frame; the source is none")
    path = _path_of(source, "the path of a file, the name of a shipped dataset")
    shipped = path.stem if path.suffix == ".json" else str(source)
    if shipped in SHIPPED and not path.exists():
        if mapping is not None:
            raise ConfigurationError(f"the shipped dataset '{shipped}' takes no mapping")
        if str(source) != shipped:
            message = f"there is no file {source}: the shipped dataset '{shipped}' is used"
            warnings.warn(message, ShippedDatasetWarning, stacklevel=2)
        check_type("options", options or WorldOptions(), WorldOptions, "WorldOptions", ConfigurationError)
        return _generate(shipped, seed, options or WorldOptions())
    if options is not None:
        raise ConfigurationError(f"options shape a shipped dataset ({', '.join(SHIPPED)}); {source} is a file")
    if not path.exists():
        shipped = f"the shipped datasets are: {', '.join(SHIPPED)}{nearest_file(path)}"
        raise InputError(f"there is no such file, and {shipped}", file=str(source))
    # Reading files needs polars, which is slow to import; the shipped dataset does not.
    from acefraud.datasets.files import read_table  # noqa: PLC0415

    table = read_table(path, name=name)
    return read_labelled(table, name or path.stem, mapping=mapping, remembered=remembered, strict=strict)


def read_labelled(table: Table, name: str, **options: Any) -> Dataset:
    """The labelled rows of a table, with a warning of each guess that may cost something."""
    from acefraud.datasets.rows import read_dataset  # noqa: PLC0415

    data = read_dataset(table, name, **options)
    for remark in data.report:
        if remark.weight == "warning":
            point_out(f"{data.name}: {remark}")
    return data


def load_transactions(
    source: str | Path | IntoFrame,
    *,
    mapping: SchemaMapping | Mapping[str, Any] | Path | str | None = None,
    remembered: SchemaMapping | None = None,
    name: str | None = None,
    ids: bool = True,
) -> Transactions:
    """Transactions to decide, from a file or a data frame. The first row that cannot be read raises InputError.

    A label is neither needed nor read. ``mapping`` says how columns are read; without one, a ``remembered`` one does,
    such as that of an earlier `load_dataset`, and columns that it does not know are guessed. Without ``ids``, rows that
    bring none stay without: enough to score them, and faster.

    >>> import polars as pl
    >>> rows = load_transactions(pl.DataFrame({"id": ["t1", "t2"], "amount": [5.0, 900.0]}))
    >>> rows.ids.tolist(), rows.facts.numbers("amount").tolist()
    (['t1', 't2'], [5.0, 900.0])
    """
    from acefraud.datasets.rows import read_transactions  # noqa: PLC0415

    rows = source if is_frame(source) else _path_of(source, "the path of a file")
    loaded = read_transactions(
        rows, mapping=_mapping_of(mapping), remembered=remembered, strict=True, name=name, ids=ids
    )
    return loaded.rows


def _mapping_of(given: SchemaMapping | Mapping[str, Any] | Path | str | None) -> SchemaMapping | Path | None:
    if isinstance(given, str):
        return Path(given)
    return SchemaMapping(**given) if isinstance(given, Mapping) else given


def _path_of(source: object, others: str) -> Path:
    if not isinstance(source, str | PathLike):
        accepted = f"{others}, or a data frame of pandas, polars or pyarrow"
        raise InputError(f"source: expected {accepted}, got {given(source)}")
    return Path(source)


def _checked_weights(weights: npt.ArrayLike, rows: int) -> FloatArray:
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (rows,):
        raise InputError(f"weights: expected a number for each of {rows:,} rows, got an array of shape {found.shape}")
    if not (np.isfinite(found) & (found >= 0)).all():
        raise InputError("weights: expected finite numbers of at least 0")
    return found


def _generate(name: str, seed: int, options: WorldOptions) -> Dataset:
    cases = generate(options, seed)
    times = [case.transaction.time for case in cases if case.transaction.time is not None]
    cut = times[0] + _TRAIN_PERIOD * (times[-1] - times[0]) + timedelta(microseconds=1)
    at = sum(time < cut for time in times)
    mapping = SchemaMapping(label="answer", text="query", difficulty="difficulty")
    return Dataset(name=name, train=cases[:at], test=cases[at:], mapping=mapping)
