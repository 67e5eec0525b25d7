"""Labelled transactions, and how to split them without leaking the answer."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import percent
from acefraud.core.transaction import Case, FactValue, Transaction
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import BadRow, ReadingReport, Remark
from acefraud.display.html_tables import MOST_ROWS, block, summary, table
from acefraud.display.redaction import MASKED, is_personal
from acefraud.display.short_repr import quoted, shown_names, shown_number, shown_text, shown_value
from acefraud.errors import ConfigurationError
from acefraud.facts.extraction import facts_in
from acefraud.support.arguments import check_type, check_whole
from acefraud.support.arrays import IntArray
from acefraud.support.timestamps import UNKNOWN

Fold = tuple[Cases, Cases]


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
        return table(headings, rows, total=len(self)) if len(self) else ""

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

        Rows at the same time stay in the order of the file. Without times, rows with the same facts and text
        stay on one side.

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
        return [(self.train.take(sides != one), self.train.take(sides == one)) for one in range(k)]

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
        >>> data = Dataset("cards", [Case(transaction=one, is_fraud=False) for one in orders], mapping=mapping)
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

    >>> rows = [Transaction(id=one, facts={"amount": amount}) for one, amount in [("a", 5.0), ("b", 7.0), ("c", 5.0)]]
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
        side = min(
            range(len(shares)), key=lambda one: ((filled[one][label] + len(group)) / shares[one], sum(filled[one]))
        )
        filled[side][1] += frauds
        filled[side][0] += len(group) - frauds
        sides[group] = side
    return sides
