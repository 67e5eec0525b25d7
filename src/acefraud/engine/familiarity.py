"""What a playbook knows of a transaction: which of its facts it has seen before, and which of those it relies on."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Literal

import numpy as np
from rapidfuzz import fuzz, process

from acefraud.core.context_facts import UNFAMILIAR, is_context_fact
from acefraud.core.events import DecisionMade
from acefraud.core.fact_names import NAMED_FACTS, FactCatalog, FactProfile, words_for
from acefraud.core.ledger import DecisionFilter
from acefraud.core.playbook import Snapshot
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.datasets import mapping_of
from acefraud.display.short_repr import shown_text
from acefraud.engine.entity_memory import memory_for, time_facts_of
from acefraud.engine.options import LearnerOptions
from acefraud.errors import InputError
from acefraud.facts.extraction import KnownFacts
from acefraud.facts.time_facts import CLOCK_FACTS, DAY_FACTS
from acefraud.roles.embedded.agent import knowledge_of
from acefraud.rules.scorecard import GENERAL
from acefraud.selection.bullet_stats import stats_of
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.playbook_reading import SAMPLE, facts_at_hand, plain_name
from acefraud.support.timestamps import A_YEAR, last_plausible, micros_of, time_of

LOOKED_AT = 1_000
"""The latest remembered cases whose facts count as known."""
USUAL = 0.9
"""A fact that at least this share of them has is missed where it is absent."""
ALIKE = 80.0
"""Of 100: how much alike two names have to be written for one to be suggested."""
EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)
"""An earlier time comes from a clock that was not set, unless those of the past are as early."""
_LONG_AGO, _NO_LIMIT = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_FROM_TIME = frozenset((*CLOCK_FACTS, *DAY_FACTS))
_DERIVED = _FROM_TIME | {"amount_to_usual", "amount_to_usual_max"}


@dataclass(frozen=True)
class ReliedOn:
    """The facts that the rules of one revision test at a node, and how much each carries.

    A bullet in use carries its weight in either direction, a line of general knowledge its points where general
    knowledge counts, and a policy 1. Each is shared equally by the facts that its condition tests.
    """

    carried: Mapping[str, float]
    learnt: bool
    """Whether anything but general knowledge is among them."""

    @classmethod
    def of(cls, snapshot: Snapshot, node: str) -> ReliedOn:
        """What a snapshot relies on, worked out once for its bullets and calibration."""
        cache, calibration = snapshot.table.cache, snapshot.calibration(node)
        kept = cache.get(("relied on", node))
        if kept is None or kept[0] is not calibration:
            kept = cache["relied on", node] = calibration, cls._worked_out(snapshot, node)
        return kept[1]

    @classmethod
    def _worked_out(cls, snapshot: Snapshot, node: str) -> ReliedOn:
        table, calibration = snapshot.table, snapshot.calibration(node) or GENERAL
        weights, number = stats_of(table, calibration.base_rate).weights, table.node(node)
        policies = table.in_force(number).mask
        counted = np.flatnonzero(policies | table.in_use(number).mask & (weights != 0)).tolist()
        rules = [(table.wording.facts[row], 1.0 if policies[row] else float(weights[row])) for row in counted]
        learnt = bool(rules) or snapshot.calibration(node) is not None
        rules += [(point.condition.facts, weight) for point, weight in knowledge_of(calibration)]
        carried: defaultdict[str, float] = defaultdict(float)
        for facts, weight in rules:
            for fact in facts:
                carried[fact] += abs(weight) / len(facts)
        return cls(dict(carried), learnt)

    @cached_property
    def _total(self) -> float:
        return math.fsum(self.carried.values())

    @cached_property
    def _telling(self) -> frozenset[str]:
        """Without what follows from the time alone, which every transaction has."""
        return frozenset(self.carried) - _FROM_TIME

    def share(self, facts: Iterable[str]) -> float | None:
        """The share that is carried by these facts; None if nothing was learnt."""
        if not self.learnt or not self._total:
            return None
        carried = self.carried
        there = math.fsum([carried[fact] for fact in facts if fact in carried])  # the same in any order
        return min(1.0, there / self._total)

    def marked(self, known: Sequence[KnownFacts], options: LearnerOptions) -> Sequence[KnownFacts]:
        """The facts of transactions; where they are unfamiliar, with a flag for whether a person is to decide.

        They are if something was learnt and none of them, apart from those of the time, carries any of it.
        """
        telling, flag = self._telling, {UNFAMILIAR: options.review_unfamiliar}
        if not self.learnt or not telling:
            return known
        return [
            KnownFacts({**each.facts, **flag}, each.unread) if telling.isdisjoint(each.facts) else each
            for each in known
        ]


@dataclass(frozen=True, slots=True)
class InputRemark:
    """Something unusual about transactions."""

    words: str
    rows: int = 1
    """In how many of them."""
    of: int = 1
    name: str | None = None
    """The fact or entity, if the playbook does not know it."""
    nearest: str | None = None
    """The known name that is written most like it; None if none is."""
    is_refused: bool = False
    """Whether a strict learner refuses them..."""
    otherwise: str = ""
    """...and what becomes of them if none does."""

    def __str__(self) -> str:
        return self.words + self.otherwise + self.where

    @property
    def where(self) -> str:
        """In how many rows, in words; empty if there is only one."""
        return f" ({self.rows:,} of {self.of:,} rows)" if self.of > 1 else ""


@dataclass(frozen=True, slots=True)
class CheckedInput:
    """Transactions as they are decided, and what is unusual about them."""

    transactions: Sequence[Transaction]
    remarks: tuple[InputRemark, ...] = ()

    @property
    def unfamiliar_facts(self) -> tuple[InputRemark, ...]:
        """The remarks on names that the playbook does not know."""
        return tuple(remark for remark in self.remarks if remark.name is not None)

    def refuse(self) -> None:
        """Raise InputError for what a strict learner does not take."""
        if refused := [remark for remark in self.remarks if remark.is_refused]:
            told = "; ".join(remark.words + remark.where for remark in refused)
            raise InputError(told, field=refused[0].name or "time")


class FamiliarFacts:
    """What a playbook knows by name, to compare transactions with. It follows what the playbook learns."""

    def __init__(self, playbook: BulletPlaybook, options: LearnerOptions) -> None:
        self._playbook = playbook
        self._options = options
        self._seen: tuple[object, FactCatalog] | None = None
        self._names: tuple[Snapshot, _Names] | None = None
        self._earliest, self._surely = _LONG_AGO, self._latest()
        """Times that are within bounds whatever the clock says by now."""

    def checked(self, given: Sequence[Transaction], snapshot: Snapshot) -> CheckedInput:
        """Transactions with the names of entities and the times as the playbook takes them, and all remarks."""
        if self._names is None or self._names[0] is not snapshot:
            state = self._playbook.learning(self._options.node)
            reviewed = snapshot.mapping, state.remembered, state.reviews
            if self._seen is None or self._seen[0] != reviewed:
                self._seen = reviewed, facts_at_hand(self._playbook.ledger, LOOKED_AT)
                late = any(case.time >= micros_of(EARLIEST) for case in self._playbook.ledger.remembered(1))
                self._earliest = EARLIEST if late else _LONG_AGO
            self._names = snapshot, _Names(snapshot, self._options.node, self._seen[1])
        names = self._names[1]
        if (
            len(given) == 1
            and names.are_usual(given[0])
            and self._earliest <= (given[0].time or EARLIEST) <= self._surely
        ):
            return CheckedInput(given)
        named = [names.with_columns(transaction) for transaction in given] if names.columns else given
        counts = Counter[str]()
        for layout, rows in Counter(tuple(row.facts) for row in named).items():  # most have the same facts
            counts.update(dict.fromkeys(layout, rows))
        remarks = [*names.unknown(counts, named), *names.missing(counts, named), *names.other_case(named)]
        latest, times = self._latest(), [row.time for row in named if row.time is not None]
        why = f"more than {self._options.days_ahead} days after now"
        if times and max(times) - min(times) > A_YEAR:
            last = time_of(last_plausible(np.array(list(map(micros_of, times)), dtype=np.int64)))
            if last is not None and last < latest:
                latest, why = last, "far later than all others"
        if odd := [row for row in named if row.time is not None and not self._earliest <= row.time <= latest]:
            if odd[0].time is not None and odd[0].time < self._earliest:
                why = f"before {EARLIEST.year}, as of a clock that was not set"
            words, otherwise = f"the time {odd[0].time} is {why}", ": taken as unknown, so it counts in no history"
            remarks.append(InputRemark(words, len(odd), len(given), is_refused=True, otherwise=otherwise))
            wrong = set(map(id, odd))
            told = {*time_facts_of(snapshot.mapping)}
            named = [
                row.model_copy(
                    update={"time": None, "facts": {name: fact for name, fact in row.facts.items() if name not in told}}
                )
                if id(row) in wrong
                else row
                for row in named
            ]
        return CheckedInput(named, tuple(remarks))

    def _latest(self) -> datetime:
        """The latest time that a transaction may have now."""
        days = self._options.days_ahead
        self._surely = _NO_LIMIT if days is None else self._playbook.clock() + timedelta(days=days)
        return self._surely


class _Names:
    """The names that one revision knows."""

    def __init__(self, snapshot: Snapshot, node: str, catalog: FactCatalog) -> None:
        mapping, memory = mapping_of(snapshot.mapping), memory_for(snapshot.mapping)
        plan = memory.plan if memory else None
        self.columns = frozenset(column for _, column in plan.named_columns()) if plan else frozenset[str]()
        self._entities = frozenset(plan.entities if plan else ())
        entities = {plan.name_of(column): column for column in plan.entities} if plan else {}
        memory_facts = frozenset(memory.facts if memory else ())
        self._everything = bool(catalog)
        self._known = {*NAMED_FACTS, *catalog, *(self.columns - self._entities)}.union(*snapshot.table.wording.facts)
        if mapping is not None:
            declared = [*mapping.numbers, *mapping.flags, *mapping.categories, *mapping.known, mapping.amount or ""]
            facts = mapping.facts_by_column(list(dict.fromkeys(declared)))
            self._known |= {*facts.values(), *mapping.elapsed, *mapping.days_between, *(mapping.ignore or ())}
        relied = {fact for fact in ReliedOn.of(snapshot, node).carried if fact in catalog and not is_context_fact(fact)}
        if (snapshot.calibration(node) or GENERAL).knowledge_scale > 0:
            relied = set()  # texts were learnt from: each says something else
        self._by_plain_name = {plain_name(said): column for name, column in entities.items() for said in (name, column)}
        categories = {fact: catalog[fact].values for fact in relied if catalog[fact].kind == "category"}
        self._values = {
            fact: (frozenset(values), {value.casefold(): value for value in values})
            for fact, values in categories.items()
        }
        usual = {fact for fact in relied if catalog[fact].coverage >= USUAL}
        self._usual = usual - _DERIVED - self.columns - memory_facts
        self._usual_entities = {
            column
            for name, column in entities.items()
            if any(fact.startswith(f"{name}_") and fact in memory_facts for fact in usual)
        }

    def are_usual(self, transaction: Transaction) -> bool:
        """Whether there is nothing to remark about the names of one transaction, as of nearly every one."""
        names, entities = transaction.facts.keys(), transaction.entities.keys()
        usual = names <= self._known and (names >= self._usual or bool(transaction.text))
        if self._values and any(self._meant(fact, transaction.facts.get(fact)) for fact in self._values):
            return False
        if not self.columns:
            return usual
        timed = transaction.time is not None or bool(transaction.text)
        return usual and timed and self._usual_entities | (names & self._entities) <= entities <= self.columns

    def _meant(self, fact: str, value: FactValue | None) -> str | None:
        """The known value of a category that differs from a new one only in lower and upper case."""
        seen, by_lower_case = self._values[fact]
        return by_lower_case.get(value.casefold()) if isinstance(value, str) and value not in seen else None

    def other_case(self, given: Sequence[Transaction]) -> Iterator[InputRemark]:
        """Values of categories that the playbook relies on and knows in another case only: its rules do not hold."""
        for fact, (seen, _) in self._values.items():
            said = [transaction.facts.get(fact) for transaction in given]
            for value, rows in Counter(value for value in said if value not in seen).items() if {*said} - seen else ():
                if meant := self._meant(fact, value):
                    words = f"`{fact}` was never `{shown_text(str(value))}`; did you mean `{shown_text(meant)}`?"
                    yield InputRemark(words, rows, len(given))

    @cached_property
    def _plain_names(self) -> dict[str, str]:
        return {plain_name(name): name for name in sorted({*self._known, *self.columns})}

    def _nearest(self, name: str) -> str | None:
        plain, names = plain_name(name), self._plain_names
        alike = process.extractOne(plain, list(names), scorer=fuzz.ratio, score_cutoff=ALIKE)
        return names.get(plain) or (names[alike[0]] if alike else None)

    def with_columns(self, transaction: Transaction) -> Transaction:
        """A transaction whose entities have the names of their columns, where it is clear which are meant.

        One that is given among the facts is an entity all the same.
        """
        among = self._entities & transaction.facts.keys() - transaction.entities.keys()
        given = {**transaction.entities, **{name: _as_id(transaction.facts[name]) for name in sorted(among)}}
        if given.keys() <= self.columns:
            return transaction.model_copy(update={"entities": given}) if among else transaction
        meant = {name: self._by_plain_name.get(plain_name(name), name) for name in given}
        times = Counter(meant.values())
        entities = {(meant[name] if times[meant[name]] == 1 else name): value for name, value in given.items()}
        return transaction.model_copy(update={"entities": entities})

    def unknown(self, counts: Counter[str], given: Sequence[Transaction]) -> Iterator[InputRemark]:
        """The facts that were never seen, and the entities that no history is kept of, if one is kept of any.

        Before the first case, only those that look like another one.
        """
        entities = Counter(name for row in given for name in row.entities) if self.columns else Counter[str]()
        new = [name for name in counts if name not in self._known and name not in entities]  # a column may be both
        strange = [name for name in entities if name not in self.columns] if self.columns else []
        for name in (*new, *strange):
            if is_context_fact(name) or words_for(name):
                continue
            nearest = self._nearest(name)
            meant = f"; did you mean `{shown_text(nearest)}`?" if nearest else ""
            if nearest == name:
                meant = "; it is an entity, and belongs among the `entities`"
            if nearest or self._everything:
                kind = "a fact" if name in counts else "an entity"
                words = f"`{shown_text(name)}` is not {kind} this playbook knows{meant}"
                yield InputRemark(words, counts[name] or entities[name], len(given), name, nearest, is_refused=True)

    def missing(self, counts: Counter[str], given: Sequence[Transaction]) -> Iterator[InputRemark]:
        """What the playbook relies on and most cases had, where it is missing from more than half of these."""
        described = [transaction for transaction in given if not transaction.text]
        for name in sorted(self._usual | self._usual_entities):
            there = counts[name] or sum(name in transaction.entities for transaction in described)
            if 2 * there < len(described):
                words = f"`{shown_text(name)}`, which this playbook relies on, is missing"
                yield InputRemark(words, len(described) - there, len(described))
        if self.columns and (untimed := sum(row.time is None and not row.text for row in given)):
            yield InputRemark("there is no `time`: it counts in no history", untimed, len(given))


def _as_id(value: FactValue) -> str:
    return value.strip() if isinstance(value, str) else f"{value:.15g}"


def unfamiliar_remarks(facts: Collection[Mapping[str, FactValue]], verdicts: Iterable[Verdict]) -> list[InputRemark]:
    """That nothing relevant was known of some of the transactions that were decided, and what became of them."""
    found = [verdict for each, verdict in zip(facts, verdicts, strict=True) if UNFAMILIAR in each]
    then = "left to a person" if Verdict.REVIEW in found else "decided all the same, since nothing sends it to a person"
    words = f"unfamiliar: none of the facts that this playbook relies on is known; {then}"
    return [InputRemark(words, len(found), len(facts))] if found else []


ENOUGH = 20
"""Decisions and cases from which on they are compared."""
HAD_USUALLY, HAS_RARELY = 0.5, 0.1
"""A fact that this share had is missing if fewer than a tenth as many have it; a new one is one that a tenth has."""
TIMES = 10.0
"""A middle value that is so many times larger or smaller is in another unit."""
MOSTLY = 0.5
"""The share of words that have to be new; by how much the share of a flag has to change; and the words for each case
from which on a category names things, of which new ones are usual."""


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact that is not what it was."""

    name: str
    change: Literal["missing", "new", "shifted"]
    words: str


@dataclass(frozen=True, slots=True)
class FactChanges:
    """The latest day of decisions, compared with the cases that were learnt from."""

    cases: int
    decisions: int
    changes: tuple[FactChange, ...] = ()

    @property
    def are_known(self) -> bool:
        """Whether there are enough of both to compare."""
        return min(self.cases, self.decisions) >= ENOUGH


def fact_changes(playbook: BulletPlaybook, node: str) -> FactChanges:
    """What changed between the cases that a playbook remembers and the decisions of its latest day."""
    newest = playbook.ledger.find_decisions(DecisionFilter(), limit=1)
    wanted = DecisionFilter(since=newest[0].at - timedelta(days=1) if newest else None)
    made = [event.payload for event in playbook.ledger.find_decisions(wanted, limit=SAMPLE)]
    records = [event.record for event in made if isinstance(event, DecisionMade) and event.record.node == node]
    learnt, now = facts_at_hand(playbook.ledger), FactCatalog.of(FactTable([record.basis[0] for record in records]))
    compared = FactChanges(learnt.rows, now.rows)
    return FactChanges(learnt.rows, now.rows, tuple(_changes(learnt, now))) if compared.are_known else compared


def _changes(learnt: FactCatalog, now: FactCatalog) -> Iterator[FactChange]:
    for name in sorted(name for name in {*learnt, *now} if not is_context_fact(name)):
        before, after = learnt.get(name), now.get(name)
        had, has = (0.0 if profile is None else profile.coverage for profile in (before, after))
        # Decisions have only those facts of the day and the clock that are in use.
        if had >= HAD_USUALLY and has < HAS_RARELY * had and name not in DAY_FACTS + CLOCK_FACTS:
            told = f"{100 * had:.0f}% of the cases had it, {100 * has:.0f}% of the decisions have it"
            yield FactChange(name, "missing", told)
        elif before is None and has >= HAS_RARELY:
            yield FactChange(name, "new", f"no case had it, {100 * has:.0f}% of the decisions have it")
        elif before is not None and after is not None and (shift := _shift(before, after, learnt.rows)):
            yield FactChange(name, "shifted", shift)


def _shift(before: FactProfile, after: FactProfile, cases: int) -> str:
    """How the values of a fact differ; empty if they do not by much."""
    if before.kind != after.kind:
        return f"it was a {before.kind} and is a {after.kind}"
    was, now = before.middle or 0.0, after.middle or 0.0
    if was * now > 0 and not 1 / TIMES < now / was < TIMES:
        return f"usually about {now:,.6g}, where {was:,.6g} was usual: perhaps another unit"
    if abs((after.true_share or 0.0) - (before.true_share or 0.0)) >= MOSTLY:
        return f"true in {100 * (after.true_share or 0):.0f}%, where {100 * (before.true_share or 0):.0f}% was usual"
    new = [word for word in after.values if word not in before.values]
    often = [word for word in after.examples if word in new]  # rare words are new every day
    if len(often) > MOSTLY * len(after.examples) and len(before.values) <= MOSTLY * cases:
        return f"{len(new):,} of {len(after.values):,} words are new, among them {shown_text(', '.join(new[:3]))}"
    return ""
