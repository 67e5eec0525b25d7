"""Facts that only rules ask for: the time of day, whether a value is on a list, whether a policy is snoozed.

They are worked out when a transaction is decided and recorded with its other facts, so a decision can be made again
after the lists have changed. The learner never proposes rules about lists or snoozes.

Also here: which policy decides, and, if there are only so many reviews a day, where they go (`ReviewCapacity`): to the
cases where a review saves most. What the rest of the day will bring is estimated from recent decisions. A case is
reviewed if fewer cases that save more are expected than reviews are left. So the day's reviews last for the day, and
what is unused late goes to lesser cases.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from itertools import compress
from threading import Lock

import numpy as np

from acefraud.core.bullet import Bullet
from acefraud.core.context_facts import IN_LIST, LookUp, ValueList, snooze_fact
from acefraud.core.decision import Decision, ProbabilityFrom, Reason, ReasonKind
from acefraud.core.events import DecisionMade
from acefraud.core.ledger import DecisionFilter, Ledger
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import DecidingRule, ReviewCosts, number_in
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.core.transactions import Transactions
from acefraud.datasets import mapping_of
from acefraud.engine.entity_memory import time_facts_of
from acefraud.facts.time_facts import CLOCK_FACTS, DAY_FACTS, with_own_time_facts, with_time_facts
from acefraud.roles.protocols import Facts
from acefraud.settings import EMBEDDED


@dataclass(frozen=True)
class RuleContext:
    """What the rules of one revision ask for beyond the facts of a transaction."""

    time_facts: tuple[str, ...]
    """Those that every transaction gets."""
    more_time_facts: tuple[str, ...]
    """Those that only rules ask for. A text states the time of day itself, so of these it gets only the day."""
    sought: tuple[tuple[str, LookUp, ValueList | None], ...]
    """The flag of each test of a value, what it asks for, and the list if it asks for one."""
    snoozed: tuple[Bullet, ...]
    columns: Mapping[str, str]
    """The columns of entities by the names that rules call them."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> RuleContext:
        """The context that a snapshot asks for."""
        # Lists and the mapping may change where no bullet does.
        key = "rule context", snapshot.revision, time_facts_of(snapshot.mapping)
        return snapshot.table.cached(key, lambda: context_of(snapshot))

    @property
    def needs_rows(self) -> bool:
        """Whether rules ask for more than every transaction gets."""
        return bool(self.more_time_facts) or self.looks_up

    @property
    def looks_up(self) -> bool:
        """Whether rules ask for lists or snoozes, which are looked up for one transaction after another."""
        return bool(self.sought or self.snoozed)

    @property
    def flags(self) -> set[str]:
        """The facts about lists and snoozes."""
        return {flag for flag, _, _ in self.sought}.union(snooze_fact(policy.id) for policy in self.snoozed)

    @property
    def time_facts_with_text(self) -> tuple[str, ...]:
        """Those that transactions with a text get."""
        return (*self.time_facts, *(name for name in self.more_time_facts if name in DAY_FACTS))

    def added_to(self, transactions: Sequence[Transaction], clock: Callable[[], datetime]) -> list[Transaction]:
        """The transactions with these facts. What a transaction says itself stays."""
        every, days = (*self.time_facts, *self.more_time_facts), self.time_facts_with_text
        timed = [with_own_time_facts(transaction, days if transaction.text else every) for transaction in transactions]
        if not self.looks_up:
            return timed
        now: datetime | None = None
        made = []
        for transaction in timed:
            at = transaction.time
            if at is None:
                at = now = now or clock()
            more = self._flags(transaction, at)
            made.append(
                transaction.model_copy(update={"facts": {**transaction.facts, **more}}) if more else transaction
            )
        return made

    def _flags(self, transaction: Transaction, at: datetime) -> dict[str, FactValue]:
        found: dict[str, FactValue] = {}
        for flag, sought, listed in self.sought:
            value = value_of(transaction, sought.key, self.columns)
            if value is not None and flag not in transaction.facts:
                found[flag] = sought.holds(value) if listed is None else listed.has(value, at)
        for policy in self.snoozed:
            if any(snooze.covers(value_of(transaction, snooze.key, self.columns), at) for snooze in policy.snoozes):
                found[snooze_fact(policy.id)] = True
        return found


def columns_in_context(
    transactions: Iterable[Transaction], snapshot: Snapshot, clock: Callable[[], datetime]
) -> Transactions:
    """Transactions in columns, with the facts of their time and those that only rules ask for."""
    context = RuleContext.of(snapshot)
    if context.looks_up:
        return Transactions.of(context.added_to(list(transactions), clock))
    rows = Transactions.of(transactions)
    return with_time_facts(rows, context.time_facts_with_text, without_text=context.more_time_facts)


def context_of(snapshot: Snapshot) -> RuleContext:
    """The context of a snapshot, not kept: one that is only supposed shares its table with the real one."""
    time_facts = time_facts_of(snapshot.mapping)
    tested = sorted(frozenset().union(*snapshot.table.wording.facts))
    looked_up = ((flag, sought) for flag in tested if (sought := LookUp.of(flag)) is not None)
    lists = [
        (flag, sought, snapshot.lists.get(sought.what) if sought.how == IN_LIST else None)
        for flag, sought in looked_up
        if sought.how != IN_LIST or sought.what in snapshot.lists
    ]
    return RuleContext(
        time_facts,
        tuple(name for name in (*CLOCK_FACTS, *DAY_FACTS) if name in tested and name not in time_facts),
        tuple(lists),
        tuple(bullet for bullet in snapshot.table.bullets if bullet.snoozes),
        entity_columns(snapshot.mapping),
    )


def value_of(transaction: Transaction, key: str, columns: Mapping[str, str]) -> str | None:
    """The value of an entity, by its column or its name, or of a fact, as text; None if it is not known."""
    for column in (key, columns.get(key, key)):
        if (value := transaction.entities.get(column)) is not None:
            return value
    fact = transaction.facts.get(key)
    if isinstance(fact, float) and fact.is_integer():
        return str(int(fact))
    return None if fact is None else str(fact)


def entity_columns(written: str) -> Mapping[str, str]:
    """The column of each entity, by the name that facts use."""
    mapping = mapping_of(written)
    history = mapping.history if mapping else None
    return {} if history is None else {history.name_of(column): column for column in history.entities}


def deciding_policies(snapshot: Snapshot, node: str, facts: Sequence[Facts]) -> Sequence[Bullet | None]:
    """For each transaction the policy that decides it; None where none applies.

    They are checked in the order of `Snapshot.policies`: blocks that nothing overrides, then by priority. Unless they
    have their own, what allows comes before what blocks, and that before reviews; of equal ones, the older is first.
    """
    policies = snapshot.policies(node)
    if not policies:
        return [None] * len(facts)
    table = snapshot.table
    place = {table.row(policy.id): order for order, policy in enumerate(policies)}
    holding = table.wording.conditions.proven_rows(facts, table.in_force(table.node(node)).bits)
    return [
        next((policies[order] for order in sorted(place[row] for row in rows) if _awake(policies[order], each)), None)
        for rows, each in zip(holding, facts, strict=True)
    ]


def _awake(policy: Bullet, facts: Facts) -> bool:
    return not policy.snoozes or facts.get(snooze_fact(policy.id)) is not True


def ruling_of(decision: Decision, snapshot: Snapshot) -> DecidingRule:
    """Which rule gave a decision its verdict, on the snapshot that it was made with."""
    policy = snapshot.bullets.get(decision.policy or "")
    if policy is not None and policy.policy is not None:
        return DecidingRule(rule="policy", words=f"the policy {policy.id}: {policy.policy.words}")
    if decision.verdict is Verdict.REVIEW and decision.unfamiliar:
        return DecidingRule(rule="unfamiliar", words="nothing relevant is known of it, so a person decides")
    rule, by = snapshot.reviews.get(decision.node), DecidingRule.by_threshold(decision.threshold)
    if rule is not None:
        by = rule.ruling(decision.probability, decision.threshold, decision.facts)
    if decision.model == EMBEDDED or (decision.verdict is Verdict.REVIEW and by.rule != "threshold"):
        return by
    if decision.probability_from in (ProbabilityFrom.CALIBRATED, ProbabilityFrom.COMBINED):
        return DecidingRule.by_threshold(decision.threshold)
    return DecidingRule(rule="model", words=f"the verdict of {decision.model}")


def policy_reason(policy: Bullet) -> Reason:
    """A policy as the reason of a decision."""
    assert policy.policy is not None
    return Reason(
        kind=ReasonKind.POLICY, text=f"{policy.shown} ({policy.policy.words})", contribution=None, bullet_id=policy.id
    )


_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0
_DAYS = 7
"""Days whose decisions say what a day brings."""
_READ, _KEPT = 10_000, 20_000
"""Decisions that are read at once, and that are remembered."""


@dataclass(frozen=True, slots=True)
class ReviewsLeft:
    """What is left of a day's reviews, and what the rest of the day is expected to bring."""

    per_day: int
    used: int = 0
    savings: Sequence[float] = ()
    """What reviews of the cases that are still to come would save, ascending; 0 where they save nothing."""
    weight: float = 1.0
    """How many such cases each of these stands for."""

    @property
    def cut(self) -> float:
        """What a review of the next case has to save."""
        left = max(self.per_day - self.used, 0)
        place = len(self.savings) - max(math.ceil(left / self.weight), 1) if self.weight else -1
        return self.savings[place] if place >= 0 else 0.0

    def cuts(self, savings: Sequence[float | None]) -> list[float]:
        """What a review of each case of a batch has to save, so that the best of them and of later ones are reviewed.

        Of the cases that are still to come, the batch itself is some. Of equal cases, the first are reviewed.

        >>> ReviewsLeft(per_day=2).cuts([1.0, None, 3.0, 2.0])
        [2.0, 0.0, 0.0, 0.0]
        """
        later = replace(self, weight=max(0.0, self.weight - len(savings) / max(1, len(self.savings))))
        left, cut = self.per_day - self.used, later.cut
        cuts, lowest = [cut] * len(savings), cut
        best_first = sorted((-saving, index) for index, saving in enumerate(savings) if saving is not None)
        for rank, (negative, index) in enumerate(best_first):
            better = rank + later.weight * (len(self.savings) - bisect_right(self.savings, -negative))
            if better < left:
                cuts[index], lowest = min(cut, -negative), -negative
            else:  # an equal case may have been taken before it
                cuts[index] = max(lowest, math.nextafter(-negative, math.inf))
        return cuts

    @property
    def words(self) -> str:
        """How many reviews are used up, and what the next one has to save."""
        next_one = f"the next saves at least {self.cut:.2f}" if self.used < self.per_day else "none is left"
        return f"{self.used:,} of today's {self.per_day:,} reviews used, {next_one}"


class ReviewCapacity:
    """The reviews of a playbook with a limit a day, in UTC and by the clock. What was read once is not read again."""

    def __init__(self, ledger: Ledger, node: str) -> None:
        self._ledger, self._node = ledger, node
        self._lock = Lock()
        self._day: datetime | None = None
        self._used = self._seq = 0
        self._seen: deque[tuple[float, float, float | None]] = deque(maxlen=_KEPT)
        """When decisions were made, their probabilities and amounts."""
        self._read = self._due = 0
        self._estimate, self._made_for = ReviewsLeft(0), (0.0, ReviewCosts(false_decline=0))

    def left(self, snapshot: Snapshot, clock: Callable[[], datetime]) -> ReviewsLeft | None:
        """What all processes have left of today's reviews, and what is still to come; None if there is no limit."""
        rule = snapshot.reviews.get(self._node)
        if rule is None or rule.costs is None or rule.costs.per_day is None:
            return None
        costs, now = rule.costs, clock()
        midnight, moment = datetime.combine(now.date(), time(), now.tzinfo), now.timestamp()
        with self._lock:
            if midnight != self._day:
                self._day, self._used, self._seq = midnight, 0, 0
            more, self._seq = self._ledger.reviews_since(midnight, self._seq)
            self._used += more
            made_for = moment // _MINUTE, costs
            if made_for != self._made_for or self._seq >= self._due:
                self._read_new()
                self._made_for, self._due = made_for, self._seq + max(8, len(self._seen) // 8)
                self._estimate = self._rest_of_day(costs, moment, midnight.timestamp() + _DAY)
            return replace(self._estimate, used=self._used)

    def _read_new(self) -> None:
        """Read the decisions since the last time. If there are too many, the latest of them take the place of all."""
        events = self._ledger.find_decisions(DecisionFilter(), after=self._read, limit=_READ)
        if len(events) == _READ:
            self._seen.clear()
        for event in reversed(events):
            assert isinstance(event.payload, DecisionMade)
            record, self._read = event.payload.record, event.seq
            of_policy = '"policy"' in record.body and record.decision.policy is not None
            if record.setup is not None and record.node == self._node and not of_policy:
                amount = number_in(record.basis[0], "amount")
                self._seen.append((event.at.timestamp(), record.probability, amount))

    def _rest_of_day(self, costs: ReviewCosts, now: float, day_end: float) -> ReviewsLeft:
        """What is expected until midnight: what came at these hours of the last days, or else today's pace goes on.

        Files may be decided within minutes, so the pace is that since midnight.
        """
        ages = now - np.array([at for at, _, _ in self._seen])
        span, rest = float(ages.max(initial=0.0)), day_end - now
        weight, counted = rest / max(_DAY - rest, span, _HOUR), ages <= span
        if span >= _DAY:
            days = min(_DAYS, int(span // _DAY))
            weight, counted = 1 / days, (ages <= days * _DAY) & (-ages % _DAY < rest)
        cases = compress(self._seen, counted.tolist())
        savings = sorted(costs.saving(probability, amount) or 0.0 for _, probability, amount in cases)
        return ReviewsLeft(costs.per_day or 0, 0, savings, weight)
