"""The memory of one entity: its latest transactions and labels one by one, earlier ones in cells of time.

However busy an entity is, its row stays small. Partners that it met longer ago have rows of their own, of which a
transaction reads and writes only those of its own partners.
"""

from __future__ import annotations

import json
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, count, islice
from typing import Any, NamedTuple, Protocol

from acefraud.core.transaction import FactValue
from acefraud.facts.history.plan import EXACT, HOUR, UNITS, HistoryPlan, Place, Window
from acefraud.support.great_circle import great_circle_km
from acefraud.support.timestamps import UNKNOWN

_SPARE = EXACT // 4
"""How many more than the exact ones a row may hold, so that cells do not change with every transaction."""
_LONG = 8192
"""Longer rows are compressed."""
_PLAIN, _COMPRESSED = b"\x01", b"\x02"
_ALWAYS = 2**63 - 1

Pair = tuple[int, int, int]
"""Another entity that was met: the earliest and the latest time, and the number of the latest transaction."""


_encoded = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def to_json(content: Any) -> bytes:
    """Compact JSON."""
    return _encoded(content).encode("utf-8", "surrogatepass")


def from_json(row: bytes) -> Any:
    """The content of `to_json`."""
    return json.loads(row.decode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class EntityEvent:
    """A transaction as one of its entities remembers it."""

    time: int
    amount: int | None = None
    """In whole units, as `acefraud.facts.history.plan.amount_units` makes them."""
    category: str | None = None
    others: tuple[str | None, ...] = ()
    """The values of the other entities, in the order of the plan."""
    place: Place | None = None


class WindowNames(NamedTuple):
    """A window, and the names of its facts."""

    window: Window
    number: str
    sum: str
    mean: str
    max: str
    frauds: str
    fraud_share: str
    distinct: tuple[str, ...]
    """For each other entity; empty if partners are not counted in this window."""


@dataclass(frozen=True, slots=True)
class EntityPlan:
    """A plan as it applies to the entities of one column, with the names of their facts."""

    plan: HistoryPlan
    name: str
    amounts: bool
    windows: tuple[WindowNames, ...]
    new: tuple[str, ...]
    usual: str
    usual_in_category: str
    since_last: str

    @classmethod
    def of(cls, plan: HistoryPlan, column: str, *, amounts: bool) -> EntityPlan:
        """The part of a plan for one column. `amounts` says whether transactions have amounts."""
        name, others = plan.name_of(column), tuple(name for _, name in plan.others(column))
        figures = ("count", "sum", "mean", "max", "known_frauds", "known_fraud_share")
        windows = []
        for window in plan.spans:
            met = others if window in plan.pair_spans else ()
            distinct = tuple(f"{name}_distinct_{other}_{window.name}" for other in met)
            windows.append(WindowNames._make([window, *(f"{name}_{one}_{window.name}" for one in figures), distinct]))
        alone = ("amount_to_usual", "amount_to_usual_in_category", "hours_since_last")
        new = tuple(f"{name}_new_{other}" for other in others)
        return cls(plan, name, amounts, tuple(windows), new, *(f"{name}_{figure}" for figure in alone))


class EntityRows(Protocol):
    """Rows that belong to one entity, by name."""

    def get(self, name: str, /) -> Any:
        """A row; None if there is none."""

    def pop(self, name: str, default: None, /) -> Any:
        """A row, which is deleted; None if there is none."""

    def __setitem__(self, name: str, row: Any, /) -> None:
        """Insert or replace a row."""


Cell = list[Any]
"""Figures of all that happened in one cell of time."""


@dataclass(slots=True)
class Timeline:
    """Times in order: the latest one by one, and in cells all up to a time."""

    times: list[int] = field(default_factory=list)
    until: int = UNKNOWN
    """Whatever happened up to then is in cells; `UNKNOWN` if nothing is."""
    cells: list[dict[int, Cell]] = field(default_factory=list)
    """The cells of each window of the plan, by number."""

    def start(self, time: int, end: int, window: Window, *, cells: bool = True) -> int:
        """Where a window that ends at a time begins, among those up to ``end`` that are known one by one.

        Those before the latest `EXACT` count if their cell lies wholly in the window, or never without ``cells``.
        """
        start = bisect_right(self.times, time - window.length)
        if end - start <= EXACT:
            return start
        last = self.times[end - EXACT - 1]
        return max(start, bisect_right(self.times, min(last, window.first_whole_cell(time) - 1) if cells else last))

    def cells_in(self, index: int, window: Window, time: int) -> list[Cell]:
        """The cells that lie wholly in a window which ends at a time."""
        if not self.cells:
            return []
        low, high = (time - window.length) // window.cell, time // window.cell
        late = time < self.until
        return [cell for number, cell in self.cells[index].items() if low < number and not (late and number >= high)]

    def put(self, time: int, newest: int, plan: HistoryPlan, empty: Cell) -> Iterator[Cell]:
        """The cell of a time for each window that reaches it."""
        self.cells = self.cells or [{} for _ in plan.spans]
        for cells, window in zip(self.cells, plan.spans, strict=True):
            if (number := time // window.cell) >= window.first_whole_cell(newest) // window.cell:
                yield cells.setdefault(number, list(empty))

    def surplus(self, newest: int, plan: HistoryPlan) -> int:
        """How many of the times go to cells now. Cells that no window reaches any more are dropped."""
        end = bisect_right(self.times, newest)
        if end <= EXACT + _SPARE:
            return 0
        for cells, window in zip(self.cells, plan.spans, strict=False):
            for number in [number for number in cells if number < window.first_whole_cell(newest) // window.cell]:
                del cells[number]
        self.until = self.times[end - EXACT - 1]
        return bisect_right(self.times, self.until)


@dataclass(slots=True)
class EntityState:
    """The memory of one entity, in order of time and then of arrival.

    It holds what the longest window can need, counted back from the newest transaction. A transaction that arrives late
    sees only those before it that are still remembered, and no places: only the newest place is kept.
    """

    count: int = 0
    """How many transactions were ever added. Each is numbered by it."""
    newest: int = UNKNOWN
    place: Place | None = None
    past: Timeline = field(default_factory=Timeline)
    """A cell is the number of transactions and of known amounts, their sum and the highest, and then for each other
    entity how many of its values were met there last."""
    amounts: list[int | None] = field(default_factory=list)
    categories: list[str | None] = field(default_factory=list)
    others: list[list[str | None]] = field(default_factory=list)
    """By the position of the other entity in the plan."""
    labels: Timeline = field(default_factory=Timeline)
    """In the order in which they became known. A cell is their number and how many say fraud."""
    numbers: list[int] = field(default_factory=list)
    """The transaction of each label."""
    frauds: list[int] = field(default_factory=list)
    """1 for those that say fraud, 0 for others."""
    valid: list[int] = field(default_factory=list)
    """Until when each label was not revised."""
    pairs: list[dict[str, Pair]] = field(default_factory=list)
    """By the position of the other entity; the one met longest ago comes first."""
    pages: list[int] = field(default_factory=lambda: [0, 0])
    """The numbers of the first page of partners that have rows of their own, and of the one to come."""
    rows: EntityRows = field(default_factory=dict[str, Any], compare=False)

    # --- facts -------------------------------------------------------------------------------------------------

    def facts(self, event: EntityEvent, of: EntityPlan) -> dict[str, FactValue]:
        """The facts of a transaction that comes next. Unknown facts are left out."""
        found: dict[str, FactValue] = {}
        time, end, number, total = event.time, bisect_right(self.past.times, event.time), 0, 0
        complete = None not in self.amounts
        for index, names in enumerate(of.windows):
            start = self.past.start(time, end, names.window)
            cells = self.past.cells_in(index, names.window, time)
            found[names.number] = float(end - start + sum([cell[0] for cell in cells]))
            if of.amounts:
                known: list[Any] = self.amounts[start:end]
                if not complete:
                    known = [amount for amount in known if amount is not None]
                number, total = len(known), sum(known)
                if cells:
                    number += sum([cell[1] for cell in cells])
                    total += sum([cell[2] for cell in cells])
                    known += [cell[3] for cell in cells if cell[1]]
                found[names.sum] = total / float(UNITS)
                if number:
                    found[names.mean] = total / float(number * UNITS)
                    found[names.max] = max(known) / float(UNITS)
            for position, name in enumerate(names.distinct):
                met = set(self.others[position][start:end]) if end else set()
                met.discard(None)
                found[name] = float(len(met) + sum([cell[4 + position] for cell in cells]))
        if event.amount is not None and number and total > 0:
            found[of.usual] = float(event.amount) * number / total
        if of.plan.category and of.amounts:
            self._usual_in_category(found, event, end, of)
        self._known_frauds(found, time, of)
        self._since_last(found, event, end, of)
        for position, value in enumerate(event.others):
            if value is not None:
                pair = self._pair(position, value)
                forgotten = pair is None or pair[2] < self.count - of.plan.pair_memory
                found[of.new[position]] = pair is None or forgotten or pair[0] > time
        return found

    def _known_frauds(self, found: dict[str, FactValue], time: int, of: EntityPlan) -> None:
        end, revised = bisect_right(self.labels.times, time), self.revised
        for index, names in enumerate(of.windows):
            start = self.labels.start(time, end, names.window)
            frauds = self.frauds[start:end]
            if revised:
                frauds = [fraud for fraud, until in zip(frauds, self.valid[start:end], strict=True) if time < until]
            known, many = sum(frauds), len(frauds)
            for cell in self.labels.cells_in(index, names.window, time):
                known, many = known + cell[1], many + cell[0]
            found[names.frauds] = float(known)
            if many:
                found[names.fraud_share] = known / many

    @property
    def revised(self) -> bool:
        """Whether any of the labels was revised."""
        return bool(self.valid) and min(self.valid) < _ALWAYS

    def _usual_in_category(self, found: dict[str, FactValue], event: EntityEvent, end: int, of: EntityPlan) -> None:
        if event.amount is None or event.category is None:
            return
        start = self.past.start(event.time, end, of.plan.longest, cells=False)
        alike = zip(self.amounts[start:end], self.categories[start:end], strict=True)
        known = [amount for amount, category in alike if amount is not None and category == event.category]
        if (total := sum(known)) > 0:
            found[of.usual_in_category] = float(event.amount) * len(known) / total

    def _since_last(self, found: dict[str, FactValue], event: EntityEvent, end: int, of: EntityPlan) -> None:
        late = event.time < self.newest
        if self.newest == UNKNOWN or (late and not end):
            return
        hours = (event.time - (self.past.times[end - 1] if late else self.newest)) / float(HOUR)
        found[of.since_last] = hours
        if of.plan.has_places and self.place and event.place and not late:
            way = great_circle_km(self.place, event.place)
            found[f"{of.name}_km_from_last"] = way
            if hours:
                found[f"{of.name}_kmh_from_last"] = way / hours

    def _pair(self, position: int, value: str) -> Pair | None:
        pair = self.pairs[position].get(value) if self.pairs else None
        if pair is None and self.pages[0] < self.pages[1]:
            pair = self.rows.get(f"{position}:{value}")
        return pair

    # --- adding ------------------------------------------------------------------------------------------------

    def add(self, event: EntityEvent, of: EntityPlan) -> int:
        """Remember a transaction, and forget what no window needs any more. Returns its number."""
        if not self.pairs:
            self.others, self.pairs = [[] for _ in event.others], [{} for _ in event.others]
        if event.time >= self.newest:
            self.newest, self.place = event.time, event.place
        for position, value in enumerate(event.others):
            if value is not None:
                self._meet(position, value, event.time, of.plan)
        self.count += 1
        if event.time <= self.past.until:
            self._add_to_cells(event.time, event.amount, [0] * len(event.others), of.plan)
        else:
            at = bisect_right(self.past.times, event.time)
            self.past.times.insert(at, event.time)
            self.amounts.insert(at, event.amount)
            self.categories.insert(at, event.category)
            for column, value in zip(self.others, event.others, strict=True):
                column.insert(at, value)
        self._forget(of.plan)
        return self.count - 1

    def _meet(self, position: int, value: str, time: int, plan: HistoryPlan) -> None:
        pair = self.pairs[position].pop(value, None)
        if pair is None and self.pages[0] < self.pages[1]:
            pair = self.rows.pop(f"{position}:{value}", None)
        earliest, latest = (time, time) if pair is None else (min(time, pair[0]), max(time, pair[1]))
        if pair is not None and pair[2] < self.count - plan.pair_memory:
            earliest = time
        if self.past.cells and latest == time and value not in self.others[position]:
            if pair is not None:
                self._count_partner(position, pair[1], -1, plan)
            if time <= self.past.until:
                self._count_partner(position, time, 1, plan)
        self.pairs[position][value] = (earliest, latest, self.count)

    def _count_partner(self, position: int, time: int, by: int, plan: HistoryPlan) -> None:
        for cell in self.past.put(time, self.newest, plan, _empty(self.others)):
            cell[4 + position] += by

    def _add_to_cells(self, time: int, amount: int | None, partners: Sequence[int], plan: HistoryPlan) -> None:
        for cell in self.past.put(time, self.newest, plan, _empty(self.others)):
            cell[0] += 1
            if amount is not None:
                cell[3] = max(amount, cell[3]) if cell[1] else amount
                cell[1] += 1
                cell[2] += amount
            for position, met in enumerate(partners, 4):
                cell[position] += met

    def _forget(self, plan: HistoryPlan) -> None:
        limit = self.newest - plan.longest.length
        self._drop(bisect_right(self.past.times, limit))
        self._drop_labels(bisect_right(self.labels.times, limit))
        if surplus := self.past.surplus(self.newest, plan):
            seen = [set(column[surplus:]) for column in self.others]
            for at in reversed(range(surplus)):
                partners = [column[at] for column in self.others]
                last = [value is not None and value not in later for value, later in zip(partners, seen, strict=True)]
                self._add_to_cells(self.past.times[at], self.amounts[at], last, plan)
                for value, later in zip(partners, seen, strict=True):
                    later.add(value)
            self._drop(surplus)
        if surplus := self.labels.surplus(self.newest, plan):
            for known_at, fraud, until in zip(self.labels.times[:surplus], self.frauds, self.valid, strict=False):
                if until == _ALWAYS:
                    self._count_label(known_at, fraud, 1, plan)
            self._drop_labels(surplus)
        for position, pairs in enumerate(self.pairs):
            while pairs and self._outlived(pairs[oldest := next(iter(pairs))], plan):
                del pairs[oldest]
            kept = _SPARE if self.past.cells else EXACT
            if len(pairs) > kept + _SPARE:
                self._turn_page(position, len(pairs) - kept, plan)

    def _drop(self, first: int) -> None:
        if first:
            columns: list[list[Any]] = [self.past.times, self.amounts, self.categories, *self.others]
            for column in columns:
                del column[:first]

    def _drop_labels(self, first: int) -> None:
        if first:
            columns: list[list[Any]] = [self.labels.times, self.numbers, self.frauds, self.valid]
            for column in columns:
                del column[:first]

    def _outlived(self, pair: Pair, plan: HistoryPlan) -> bool:
        """Whether neither a window nor the memory of pairs reaches a partner any more."""
        return pair[2] < self.count - plan.pair_memory and pair[1] <= self.newest - plan.longest.length

    def _turn_page(self, position: int, first: int, plan: HistoryPlan) -> None:
        """Move the partners that were met longest ago to rows of their own, and drop a page of them that outlived."""
        pairs = self.pairs[position]
        moved = {f"{position}:{value}": pairs.pop(value) for value in list(islice(pairs, first))}
        for name, pair in moved.items():
            self.rows[name] = pair
        latest, number = (max(pair[at] for pair in moved.values()) for at in (1, 2))
        self.rows[f"page {self.pages[1]}"] = (latest, latest, number, *moved)
        self.pages[1] += 1
        while (page := self.rows.get(f"page {self.pages[0]}")) and self._outlived(page, plan):
            for name in page[3:]:
                if (pair := self.rows.get(name)) and self._outlived(pair, plan):
                    self.rows.pop(name, None)
            self.rows.pop(f"page {self.pages[0]}", None)
            self.pages[0] += 1

    def hear(
        self, number: int, is_fraud: bool, known_at: int, before: tuple[int | None, bool] | None, of: EntityPlan
    ) -> None:
        """The truth of one of its transactions. From its arrival on it replaces the one ``before`` it.

        When that became known is None if an earlier version heard it.
        """
        if before is not None:
            for at, other in enumerate(self.numbers):
                if other == number:
                    self.valid[at] = min(self.valid[at], known_at)
            if before[0] is not None and before[0] <= self.labels.until:
                self._count_label(before[0], before[1], -1, of.plan)
        if known_at <= self.newest - of.plan.longest.length:
            return
        if known_at <= self.labels.until:
            self._count_label(known_at, is_fraud, 1, of.plan)
            return
        at = bisect_right(self.labels.times, known_at)
        self.labels.times.insert(at, known_at)
        self.numbers.insert(at, number)
        self.frauds.insert(at, int(is_fraud))
        self.valid.insert(at, _ALWAYS)

    def _count_label(self, known_at: int, is_fraud: int, by: int, plan: HistoryPlan) -> None:
        for cell in self.labels.put(known_at, self.newest, plan, [0, 0]):
            cell[0] += by
            cell[1] += by * is_fraud

    # --- storing -----------------------------------------------------------------------------------------------

    def dump(self) -> bytes:
        """The state as bytes: whole numbers first, then names and cells."""
        categories = self.categories if any(self.categories) else []
        words = chain((None,), *self.others, *self.pairs, categories)
        index = dict(zip(dict.fromkeys(words), count(), strict=False))
        past, labels, amounts = self.past, self.labels, self.amounts
        if None in amounts:
            amounts = [UNKNOWN if amount is None else amount for amount in amounts]
        sizes = (len(past.times), len(categories), len(labels.times), len(self.pairs), *map(len, self.pairs))
        numbers = [self.count, self.newest, past.until, labels.until, *self.pages, *sizes, *past.times, *amounts]
        for column in (*self.others, categories):
            numbers += map(index.__getitem__, column)
        numbers += (*labels.times, *self.numbers, *self.frauds)
        for pairs in self.pairs:
            numbers += map(index.__getitem__, pairs)
            numbers += chain.from_iterable(zip(*pairs.values(), strict=True))
        revised = [(at, until) for at, until in enumerate(self.valid) if until < _ALWAYS] if self.revised else []
        cells = [[[number, *cell] for number, cell in each.items()] for each in (*past.cells, *labels.cells)]
        row = struct.pack(f"<i{len(numbers)}q", len(numbers), *numbers)
        row += to_json([list(index)[1:], self.place, revised, len(past.cells), cells])
        return _PLAIN + row if len(row) <= _LONG else _COMPRESSED + zlib.compress(row, 1)

    @classmethod
    def load(cls, row: bytes) -> EntityState:
        """The state that was dumped.

        >>> state = EntityState()
        >>> EntityState.load(state.dump()) == state
        True
        """
        if row[:1] not in (_PLAIN, _COMPRESSED):
            return cls._of_json(from_json(row))
        row = row[1:] if row[:1] == _PLAIN else zlib.decompress(row[1:])
        (size,) = struct.unpack_from("<i", row)
        numbers = list(struct.unpack_from(f"<{size}q", row, 4))
        words, place, revised, windows, cells = from_json(row[4 + 8 * size :])
        value, at = [None, *words].__getitem__, 10 + numbers[9]

        def take(many: int) -> list[int]:
            nonlocal at
            at += many
            return numbers[at - many : at]

        number, newest, until, heard_until, first, last, times, categories, labels, others = numbers[:10]
        kept = [{cell[0]: cell[1:] for cell in each} for each in cells]
        state = cls(number, newest, None if place is None else (place[0], place[1]), pages=[first, last])
        state.past = Timeline(take(times), until, kept[:windows])
        amounts = take(times)
        state.amounts = [None if one == UNKNOWN else one for one in amounts] if UNKNOWN in amounts else [*amounts]
        state.others = [list(map(value, take(times))) for _ in range(others)]
        state.categories = list(map(value, take(categories))) or [None] * times
        state.labels = Timeline(take(labels), heard_until, kept[windows:])
        state.numbers, state.frauds, state.valid = take(labels), take(labels), [_ALWAYS] * labels
        for index, until in revised:
            state.valid[index] = until
        for many in numbers[10 : 10 + others]:
            pairs = zip(take(many), take(many), take(many), take(many), strict=True)
            state.pairs.append({value(word): (earliest, latest, number) for word, earliest, latest, number in pairs})
        return state

    @classmethod
    def _of_json(cls, content: dict[str, Any]) -> EntityState:
        """The state as it was stored before there were cells."""
        others = [tuple(values) for values in content["o"]]
        state = cls(content["n"], place=None if content["p"] is None else (content["p"][0], content["p"][1]))
        state.past.times = list(accumulate(content["t"]))
        state.newest = max(state.past.times, default=UNKNOWN)
        state.amounts, state.categories = content["a"], content["c"] or [None] * len(others)
        state.others = [list(column) for column in zip(*others, strict=True)]
        state.pairs = [{} for _ in state.others]
        latest = [dict(zip(column, state.past.times, strict=True)) for column in state.others]
        for position, value, earliest, number in content["m"]:
            state.pairs[position][value] = (earliest, latest[position].get(value, earliest), number)
        for known_at, number, fraud, until in content["l"]:
            state.labels.times.append(known_at)
            state.numbers.append(number)
            state.frauds.append(fraud)
            state.valid.append(_ALWAYS if until is None else until)
        return state


def _empty(others: Sequence[object]) -> Cell:
    return [0, 0, 0, 0, *[0] * len(others)]
