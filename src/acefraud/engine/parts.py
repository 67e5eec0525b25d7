"""A labelled history in parts that need not fit into memory together.

Only times, labels and hashes of ids are held for all rows. Facts stay in the parts, wherever the runner keeps them.
What is learnt is the same as from one piece: samples are drawn by hashes, and whatever concerns all rows is a count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud.core.condition import Condition
from acefraud.core.table import Columns, FactTable
from acefraud.core.transactions import Cases, Ids, Transactions
from acefraud.datasets import Dataset, SchemaMapping
from acefraud.datasets.content_ids import numbered, places_among_equals
from acefraud.datasets.dataset import read_labelled
from acefraud.datasets.history_facts import EntityPast, has_amounts, usual_known_at
from acefraud.engine.entity_memory import KeptTimes, time_facts_of
from acefraud.errors import InputError
from acefraud.facts.extraction import facts_in
from acefraud.facts.time_facts import with_time_facts
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.rules.induction.fitting import MOST_POINT_CASES, fit_points
from acefraud.rules.induction.out_of_time import STRETCHES, Tally, by_row
from acefraud.rules.scorecard import score_in
from acefraud.support.arrays import BoolArray, FloatArray, IntArray
from acefraud.support.hashes import Hashes, hashes_of
from acefraud.support.runners import Progress, Runner, computed
from acefraud.support.timestamps import UNKNOWN, last_plausible

Steps = Callable[[str, int], Progress]
"""Begins to show a step of the work by its name and its rows, 0 if they are to be counted."""


@dataclass(frozen=True, slots=True)
class HistoryPart:
    """Some of the rows of a history, with all their facts."""

    cases: Cases
    waiting: Transactions

    @property
    def row_count(self) -> int:
        """How many rows it has."""
        return len(self.cases) + len(self.waiting)

    def renamed(self, ids: Ids, waiting_ids: Ids) -> HistoryPart:
        """The same rows with other ids."""
        return HistoryPart(self.cases.with_ids(ids), self.waiting.with_ids(waiting_ids))


@dataclass(frozen=True, slots=True)
class PartSummary:
    """What is held of a part."""

    times: IntArray
    labels: BoolArray
    hashes: Hashes
    known_at: IntArray
    waiting_times: IntArray
    waiting_hashes: Hashes
    texts: bool
    bad_rows: int
    unlabelled: int
    unreadable: int

    @classmethod
    def of(cls, part: HistoryPart, bad_rows: int, unlabelled: int, unreadable: int) -> PartSummary:
        rows = part.cases.transactions
        return cls(
            rows.times,
            part.cases.labels,
            hashes_of(rows.ids),
            part.cases.known_at,
            part.waiting.times,
            hashes_of(part.waiting.ids),
            rows.texts is not None,
            bad_rows,
            unlabelled,
            unreadable,
        )


def sources_of(pattern: str) -> list[str]:
    """The files that a pattern with * or the name of a folder stands for, sorted by name; none if it is neither."""
    if Path(pattern).is_dir():
        return sorted(str(path) for path in Path(pattern).iterdir() if path.is_file() and path.name[0] not in "._")
    return sorted(glob(pattern, recursive=True)) if any(sign in pattern for sign in "*?[") else []


def _read(source: Any, name: str | None, mapping: SchemaMapping | Path | None, *, strict: bool, ids: bool) -> Dataset:
    from acefraud.datasets.rows import table_of  # noqa: PLC0415  # polars is slow to import

    table = table_of(computed(source), name)
    return read_labelled(table, table.name, mapping=mapping, strict=strict, ids=ids, may_be_empty=True)


def first_labelled(
    sources: Sequence[Any], mapping: SchemaMapping | Path | None, *, strict: bool = False, ids: bool = True
) -> Dataset:
    """The first part with labelled rows, by which the columns of all others are read."""
    for source in sources:
        data = _read(*_source_and_name(source), mapping, strict=strict, ids=ids)
        if len(data.train):
            return data
    raise InputError("no part has a row with a label")


def _source_and_name(source: Any) -> tuple[Any, str | None]:
    """A part as workers find it, who may have another current folder, and what messages call it."""
    return (Path(source).absolute(), source) if isinstance(source, str) else (source, None)


def read_part(
    source: Any, name: str | None, mapping: SchemaMapping, strict: bool, ids: bool
) -> tuple[HistoryPart, PartSummary]:
    """A file or a data frame. Ids that are made from content are numbered later, when all parts are known."""
    data = _read(source, name, mapping, strict=strict, ids=ids)
    part = HistoryPart(data.train, data.waiting)
    if not mapping.id:
        without_numbers = (rows.ids.astype("U15").astype(object) for rows in (data.train.transactions, data.waiting))
        part = part.renamed(*without_numbers)  # "tx-" and 12 digits
    return part, PartSummary.of(part, len(data.bad_rows), data.unlabelled, data.unreadable)


def _numbered(part: HistoryPart, places: IntArray, waiting_places: IntArray) -> tuple[HistoryPart, Hashes]:
    """A part with the places of rows among those with the same content in their ids, and the hashes of its cases."""
    ids = numbered(part.cases.transactions.ids, places)
    return part.renamed(ids, numbered(part.waiting.ids, waiting_places)), hashes_of(ids)


# --- the history of entities: rows change places, so that each bucket has whole entities ---


@dataclass(frozen=True, slots=True)
class _Piece:
    """The rows of a part whose entities belong into one bucket."""

    places: IntArray
    """Their places among the cases of the part, then the waiting ones."""
    past: EntityPast


def _dealt(part: HistoryPart, mapping: SchemaMapping, column: str, buckets: int) -> list[_Piece]:
    """The rows of a part by the bucket of their entity in a column. Rows without one are in none."""
    past = EntityPast.of(mapping, part.cases, part.waiting)
    codes, words = past.rows.entities.get(column, (np.full(len(past.labels), -1), ()))
    bucket = np.append(hashes_of(words) % np.uint64(buckets), np.uint64(buckets)).astype(np.int64)[codes]
    rows = [np.flatnonzero(bucket == number) for number in range(buckets)]
    return [_Piece(places, past.take(places).compact()) for places in rows]


def _history(pieces: list[_Piece], mapping: SchemaMapping, column: str, last: int) -> list[Columns]:
    """The facts of the entities in a bucket, for the piece of each part."""
    if not any(len(piece.places) for piece in pieces):
        return [Columns()] * len(pieces)
    found = EntityPast.stacked([piece.past for piece in pieces]).facts(mapping, last, column)
    ends = np.cumsum([len(piece.places) for piece in pieces]).tolist()
    return [found.take(slice(start, end)) for start, end in zip([0, *ends], ends, strict=False)]


def _joined(
    part: HistoryPart, pieces: list[_Piece], facts: list[Columns], mapping: SchemaMapping, names: Sequence[str]
) -> tuple[HistoryPart]:
    """A part with its facts from history, those of each column and bucket put back in their places."""
    count = len(part.cases)
    if mapping.history is not None and mapping.history.entities:
        kinds = mapping.history.facts(amounts=has_amounts(mapping))
        numbers = {name: np.full(count, np.nan) for name, kind in kinds.items() if kind == "number"}
        flags = {name: np.full(count, -1, dtype=np.int8) for name, kind in kinds.items() if kind == "flag"}
        for piece, found in zip(pieces, facts, strict=True):
            labelled = piece.places < count
            for into, given in ((numbers, found.numbers), (flags, found.flags)):
                for name, values in given.items():
                    into[name][piece.places[labelled]] = values[labelled]
        part = replace(part, cases=part.cases.with_facts(part.cases.facts.beside(Columns(numbers, flags))))
    if names:
        part = replace(part, cases=part.cases.with_facts(with_time_facts(part.cases.transactions, names).facts))
    return (replace(part, cases=part.cases.with_facts(facts_in(part.cases.transactions))),)


# --- what is asked of a part later ---


def _taken(part: HistoryPart, rows: IntArray) -> Cases:
    return part.cases.take(rows)


def _facts_taken(part: HistoryPart, rows: IntArray) -> FactTable:
    return part.cases.facts.take(rows)


def _tallied(
    part: HistoryPart, conditions: Sequence[Condition], codes: npt.NDArray[np.uint8], timed: bool
) -> list[Tally]:
    times = part.cases.transactions.times if timed else None
    return [Tally.of(condition.holds_in(part.cases.facts), codes, times) for condition in conditions]


def _held(part: HistoryPart, condition: Condition) -> npt.NDArray[np.uint8]:
    return np.packbits(condition.holds_in(part.cases.facts))


def _scored(part: HistoryPart, points: dict[str, float]) -> FloatArray:
    return score_in(part.cases.facts, points)


@dataclass(frozen=True)
class PartedCases:
    """The labelled cases of a history in parts, in order of time, or of the hashes of ids if times are unknown.

    To learning they are what `LabelledFacts` are.
    """

    runner: Runner
    handles: tuple[Any, ...]
    """Of the parts."""
    starts: IntArray
    """The first row of each part, and the number of all rows."""
    order: IntArray
    """The row of each case."""
    labels: BoolArray
    times: IntArray
    hashes: Hashes
    from_texts: bool
    weights: None = None
    after_change: bool = False

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def frauds(self) -> int:
        """How many were fraud."""
        return int(self.labels.sum())

    @cached_property
    def timed(self) -> bool:
        """Whether every case has a time."""
        return bool((self.times != UNKNOWN).all())

    def latest(self, count: int) -> IntArray:
        """The last rows, as many as this or all."""
        return np.arange(max(0, len(self) - count), len(self))

    def take(self, rows: IntArray) -> LabelledFacts:
        """Some of the cases, in memory."""
        return LabelledFacts.of(self.cases(rows))

    def cases(self, rows: IntArray) -> Cases:
        """Some of the cases with all that is known of them, in memory."""
        found, back = self._ask(_taken, self.order[rows])
        return Cases.stacked(found).take(back)

    def facts_in(self, order: IntArray | None) -> PartedFacts:
        """The facts of the cases in this order, or in their own."""
        return PartedFacts(self, self.order if order is None else self.order[order])

    def holds(self, condition: Condition) -> BoolArray:
        """The cases on which a condition holds."""
        packed = self.runner.map(_held, [(handle, condition) for handle in self.handles])
        sizes = np.diff(self.starts).tolist()
        bits = [np.unpackbits(part, count=size) for part, size in zip(packed, sizes, strict=True)]
        return np.concatenate(bits).astype(np.bool_)[self.order]

    def knowledge(self) -> tuple[FloatArray | None, dict[str, float]]:
        """What the scorecard adds to each case, None if it is not used, and the points that were fitted."""
        if not self.from_texts or not len(self):
            return None, {}
        latest = self.latest(MOST_POINT_CASES)
        known = self.take(latest)
        fitted = fit_points(known.facts, known.labels)
        scored = self.runner.map(_scored, [(handle, fitted.points) for handle in self.handles])
        sums = np.concatenate(scored)[self.order]
        sums[latest] = fitted.sums
        return sums, fitted.points

    def _ask(self, function: Callable[..., Any], rows: IntArray) -> tuple[list[Any], IntArray]:
        """What a function says of the parts that have some of the rows, and where each row is in that."""
        by_part = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[by_part], self.starts).tolist()
        asked = [
            (handle, rows[by_part][start:end] - self.starts[at])
            for at, (handle, start, end) in enumerate(zip(self.handles, ends, ends[1:], strict=False))
            if end > start or at == 0
        ]
        return self.runner.map(function, asked), np.argsort(by_part, kind="stable")


@dataclass(frozen=True, slots=True)
class PartedFacts:
    """The facts of cases in parts."""

    among: PartedCases
    order: IntArray

    def take(self, rows: IntArray) -> FactTable:
        """The facts of some of the cases."""
        found, back = self.among._ask(_facts_taken, self.order[rows])
        return FactTable.stacked(found).take(back)

    def tally(
        self, conditions: Sequence[Condition], codes: npt.NDArray[np.uint8], times: IntArray | None
    ) -> list[Tally]:
        """The tally of each condition: the sum of those of the parts."""
        every, starts = by_row(codes, self.order), self.among.starts.tolist()
        calls = [
            (handle, list(conditions), every[start:end], times is not None)
            for handle, start, end in zip(self.among.handles, starts, starts[1:], strict=False)
        ]
        found = [Tally(np.zeros(2 * STRETCHES + 2, dtype=np.int64))] * len(conditions)
        for of_part in self.among.runner.map(_tallied, calls):
            found = [one.plus(other) for one, other in zip(found, of_part, strict=True)]
        return found


ROWS_IN_BUCKET = 500_000
"""About how many rows are in a bucket, to derive their history at once."""


@dataclass(frozen=True, slots=True)
class PartedHistory:
    """A labelled history in parts, and how it was read."""

    name: str
    mapping: SchemaMapping
    cases: PartedCases
    times: IntArray
    """Of all rows, those that wait for a label too."""
    last: int
    """The last plausible time; `UNKNOWN` if all are plausible."""
    bad_rows: int
    unlabelled: int
    unreadable: int

    @classmethod
    def read(
        cls,
        sources: Sequence[Any],
        mapping: SchemaMapping,
        runner: Runner,
        steps: Steps = lambda *_: lambda *_: None,
        *,
        name: str = "parts",
        strict: bool = False,
        ids: bool = True,
    ) -> PartedHistory:
        """Read all parts with one mapping, and derive the facts of every row. `ids` are as in `load_dataset`.

        Raises InputError if a part cannot be read with the mapping, or if two rows have the same id.
        """
        calls = [(*_source_and_name(source), mapping, strict, ids) for source in sources]
        kept = runner.keep(read_part, calls, 2, steps("reading", 0))
        parts = [part for part, _ in kept]
        summaries: list[PartSummary] = runner.map(list, [([summary for _, summary in kept],)])[0]
        hashes = [summary.hashes for summary in summaries]
        if mapping.id and ids:
            _check_ids(parts, np.concatenate(hashes), runner)
        elif not mapping.id:
            parts, hashes = _with_numbers(parts, summaries, runner)
        times = np.concatenate([of_part for some in summaries for of_part in (some.times, some.waiting_times)])
        last = last_plausible(times)
        parts = _with_history(parts, mapping, last, runner, steps, rows=len(times))
        return cls(
            name,
            mapping,
            _ordered(runner, parts, summaries, np.concatenate(hashes)),
            times,
            last,
            *(sum(getattr(each, name) for each in summaries) for name in ("bad_rows", "unlabelled", "unreadable")),
        )

    def __len__(self) -> int:
        return len(self.cases)

    @property
    def frauds(self) -> int:
        """How many cases were fraud."""
        return self.cases.frauds

    def recent(self, kept: KeptTimes) -> tuple[Cases, Transactions]:
        """The cases, and the rows that wait for a label, that a memory of entities keeps."""
        found = self.cases.runner.map(_recent, [(handle, self.mapping, kept) for handle in self.cases.handles])
        return Cases.stacked([cases for cases, _ in found]), Transactions.stacked([waiting for _, waiting in found])


def _recent(part: HistoryPart, mapping: SchemaMapping, kept: KeptTimes) -> tuple[Cases, Transactions]:
    assert mapping.history is not None
    cases, waiting = part.cases, part.waiting
    known_at = usual_known_at(cases, mapping.history)
    unknown = np.full(len(waiting), UNKNOWN)
    return cases.take(kept.reach(cases.transactions.times, known_at)), waiting.take(kept.reach(waiting.times, unknown))


def _check_ids(parts: list[Any], hashes: Hashes, runner: Runner) -> None:
    distinct, counts = np.unique(hashes, return_counts=True)
    if repeated := len(hashes) - len(distinct):
        found = runner.map(_ids_with, [(part, distinct[np.argmax(counts)]) for part in parts])
        name = next(name for names in found for name in names)
        where = "in the same part or in another one"
        raise InputError(f"{repeated:,} rows have an id that another row has, {where}; '{name}' is one of them")


def _ids_with(part: HistoryPart, sought: np.uint64) -> list[str]:
    ids = part.cases.transactions.ids
    found: list[str] = ids[hashes_of(ids) == sought].tolist()
    return found


def _with_numbers(parts: list[Any], summaries: Sequence[PartSummary], runner: Runner) -> tuple[list[Any], list[Hashes]]:
    """Rows with the same content get a number from the second on, as in a single file."""
    hashes = [*(some.hashes for some in summaries), *(some.waiting_hashes for some in summaries)]
    count = sum(len(some.waiting_hashes) for some in summaries)
    labels = np.concatenate([*(some.labels.astype(np.int8) for some in summaries), np.full(count, -1, dtype=np.int8)])
    known_at = np.concatenate([*(some.known_at for some in summaries), np.full(count, UNKNOWN)])
    places = places_among_equals(np.concatenate(hashes), labels, known_at)
    split = np.split(places, np.cumsum([len(some) for some in hashes])[:-1])
    calls = list(zip(parts, split[: len(parts)], split[len(parts) :], strict=True))
    changed = [at for at, (_, *both) in enumerate(calls) if any((some > 1).any() for some in both)]
    renamed = runner.keep(_numbered, [calls[at] for at in changed], 2)
    (found,) = runner.map(list, [([of_part for _, of_part in renamed],)])
    runner.forget([*(parts[at] for at in changed), *(of_part for _, of_part in renamed)])
    parts, hashes = list(parts), hashes[: len(parts)]
    for at, (part, _), of_part in zip(changed, renamed, found, strict=True):
        parts[at], hashes[at] = part, of_part
    return parts, hashes


def _with_history(
    parts: list[Any], mapping: SchemaMapping, last: int, runner: Runner, steps: Steps, *, rows: int
) -> list[Any]:
    """Each part with its facts from the history of entities and from the time."""
    pieces: list[list[Any]] = [[] for _ in parts]
    facts: list[list[Any]] = [[] for _ in parts]
    buckets = -(-rows // ROWS_IN_BUCKET)
    for column in mapping.history.entities if mapping.history else ():
        show = steps(f"history of {column}", rows)
        dealt = runner.keep(_dealt, [(part, mapping, column, buckets) for part in parts], buckets)
        calls = [([of_part[bucket] for of_part in dealt], mapping, column, last) for bucket in range(buckets)]
        found = runner.keep(_history, calls, len(parts), show)
        for at in range(len(parts)):
            pieces[at] += dealt[at]
            facts[at] += [of_bucket[at] for of_bucket in found]
    names = time_facts_of(mapping.describe())
    each = [(part, some, of_part, mapping, names) for part, some, of_part in zip(parts, pieces, facts, strict=True)]
    joined = runner.keep(_joined, each, 1, steps("facts", rows))
    runner.forget([*parts, *(handle for some in (*pieces, *facts) for handle in some)])
    return [part for (part,) in joined]


def _ordered(runner: Runner, parts: list[Any], summaries: list[PartSummary], hashes: Hashes) -> PartedCases:
    times = np.concatenate([summary.times for summary in summaries])
    timed = bool((times != UNKNOWN).all())
    order = np.lexsort((hashes, times)) if timed else np.argsort(hashes, kind="stable")
    return PartedCases(
        runner,
        tuple(parts),
        np.cumsum([0, *(len(summary.times) for summary in summaries)]),
        order,
        np.concatenate([summary.labels for summary in summaries])[order],
        times[order],
        hashes[order],
        any(summary.texts for summary in summaries),
    )
