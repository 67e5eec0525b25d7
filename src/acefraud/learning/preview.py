"""What a change of the playbook would do to past decisions and labelled cases, before it is made.

Every decision is made twice, on the playbook as it is and as it would be, with the draws it was made with. So only the
change shows. What rules ask of lists, snoozes and the clock is looked up anew each time. Nothing is recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from acefraud.core.bullet import Bullet, Firings, Policy, Record, record_in_words
from acefraud.core.comparison import ORDERED, Test, plain_number
from acefraud.core.condition import Condition
from acefraud.core.context_facts import REVIEW_CUT, REVIEWS_TODAY, is_context_fact
from acefraud.core.decision import DecisionRecord
from acefraud.core.events import EventPayload
from acefraud.core.ledger import Ledger
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import number_in
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr
from acefraud.engine.decider import EmbeddedDecisions, decide_embedded
from acefraud.engine.models import Decider
from acefraud.engine.rule_context import ReviewCapacity, ReviewsLeft, RuleContext, context_of
from acefraud.facts.extraction import KnownFacts
from acefraud.facts.time_facts import CLOCK_FACTS, DAY_FACTS, time_facts
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.rules.english import say_test
from acefraud.rules.induction.out_of_time import record_of
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arrays import BoolArray
from acefraud.support.validation import construct_unchecked

CASES, DECISIONS = 1_000, 10_000
"""The latest labelled cases and decisions that a preview looks at."""
SHOWN = 10


@dataclass(frozen=True, slots=True, repr=False)
class Flip(ShortRepr):
    """A transaction that would be decided differently."""

    transaction_id: str
    before: Verdict
    after: Verdict
    probability_before: float
    probability_after: float
    amount: float | None
    is_fraud: bool | None
    """None for a decision whose truth is not among the labelled cases."""


@dataclass(frozen=True, slots=True)
class Money:
    """Amounts of labelled cases that would be declined, or no longer declined."""

    declined_rightly: float = 0.0
    declined_wrongly: float = 0.0
    released_rightly: float = 0.0
    released_wrongly: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Preview(ShortRepr):
    """What a change would do."""

    cases: int
    decisions: int
    fires_on: Record
    """The labelled cases on which the rule fires."""
    fires_on_decisions: int
    unknown_on: int
    """Labelled cases on which an unknown fact leaves the rule open."""
    flips: tuple[Flip, ...]
    money: Money
    overlaps: Mapping[str, float] = field(default_factory=dict)
    """The share of the cases it fires on that each other rule fires on too, the largest first."""
    contradicts: tuple[str, ...] = ()

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(f"{self.cases:,} cases, {self.decisions:,} decisions")
        yield "fires_on", Plain(record_in_words(self.fires_on))
        yield "fires_on_decisions", self.fires_on_decisions
        yield "flips", len(self.flips)

    def as_json(self) -> dict[str, Any]:
        """The preview for scripts."""
        low, high = self.fires_on.interval
        return {
            "cases": self.cases,
            "decisions": self.decisions,
            "fires_on_cases": self.fires_on.support,
            "frauds_among_them": self.fires_on.frauds,
            "fraud_share": self.fires_on.precision,
            "low": low,
            "high": high,
            "unknown_on_cases": self.unknown_on,
            "fires_on_decisions": self.fires_on_decisions,
            "flips": len(self.flips),
            "sample": [asdict(flip) for flip in self.flips[:SHOWN]],
            "money": asdict(self.money),
            "overlaps": dict(list(self.overlaps.items())[:SHOWN]),
            "contradicts": list(self.contradicts),
        }


class PastRow(NamedTuple):
    """A transaction to decide again, with its facts, the revision its draws belong to, and its label if it has one."""

    transaction: Transaction
    known: KnownFacts
    drawn_at: int
    label: bool | None


@dataclass(frozen=True, repr=False)
class Past(ShortRepr):
    """Transactions to decide again: the latest labelled cases, then the latest decisions."""

    rows: Sequence[PastRow]
    cases: int

    @classmethod
    def of(
        cls, cases: LabelledFacts, decisions: Sequence[DecisionRecord], revision: int, ledger: Ledger | None
    ) -> Past:
        """The past of a playbook at its current revision, which the draws of cases belong to.

        With the `ledger`, transactions have the times, entities and facts that they came with.
        """
        latest = cases.take(slice(max(0, len(cases) - CASES), None))
        truth = dict(zip(latest.ids.tolist(), latest.labels.tolist(), strict=True))
        kept = {} if ledger is None else ledger.known_cases(truth)
        rows = []
        for (name, label), facts in zip(truth.items(), latest.facts.rows(), strict=True):
            given = kept[name].case.transaction if name in kept else _bare(name)
            rows.append(PastRow(given, KnownFacts(facts), revision, label))
        for made in decisions:
            given = _bare(made.transaction_id) if ledger is None else made.decision.transaction
            rows.append(PastRow(given, KnownFacts(*made.basis), made.revision, truth.get(made.transaction_id)))
        return cls(rows, len(truth))

    def in_context(self, context: RuleContext, recorded: Collection[str], clock: Callable[[], datetime]) -> Past:
        """These cases with the facts that the rules ask for, looked up now, not as they were `recorded` then."""
        if not context.needs_rows:
            return self
        given = [
            row.transaction.model_copy(update={"facts": _without(row.transaction.facts, recorded)}) for row in self.rows
        ]
        rows = []
        for row, before, asked in zip(self.rows, given, context.added_to(given, clock), strict=True):
            facts = _without(row.known.facts, recorded) | _without(asked.facts, before.facts)
            rows.append(row._replace(transaction=before, known=replace(row.known, facts=facts)))
        return replace(self, rows=rows)

    def only(self, indices: Sequence[int]) -> Past:
        """Some of it."""
        return Past([self.rows[index] for index in indices], sum(index < self.cases for index in indices))

    def decided(self, snapshot: Snapshot, by: Decider, reviews: ReviewsLeft | None) -> EmbeddedDecisions:
        """All of it decided on a snapshot, each with its own draws, and as if these reviews were left."""
        known = [row.known for row in self.rows]
        if reviews is not None:
            left = {REVIEWS_TODAY: float(reviews.used), REVIEW_CUT: reviews.cut}
            known = [replace(each, facts={**each.facts, **left}) for each in known]
        given, drawn_at = [row.transaction for row in self.rows], [row.drawn_at for row in self.rows]
        return decide_embedded(given, known, snapshot, by.selector, by.options, drawn_at=drawn_at)


def _bare(name: str) -> Transaction:
    return construct_unchecked(Transaction, id=name, time=None, facts={}, text="", entities={})


def preview(
    playbook: BulletPlaybook, payloads: Sequence[EventPayload], rule: Bullet | None, cases: LabelledFacts, by: Decider
) -> Preview:
    """What these events would do. `rule` is the bullet that they add, edit or retire, as it is or will be, if any."""
    snapshots = playbook.snapshot(), playbook.snapshot_with(payloads)
    contexts = [context_of(snapshot) for snapshot in snapshots]
    in_rows = any(context.needs_rows for context in contexts)
    decisions = playbook.ledger.latest_decisions(DECISIONS)
    past = Past.of(cases, decisions, snapshots[0].revision, playbook.ledger if in_rows else None)
    recorded = frozenset().union(*(context.flags for context in contexts))
    pasts = [past.in_context(context, recorded, playbook.clock) for context in contexts]
    touched = _touched(pasts, snapshots, rule)
    tomorrow = datetime.combine(playbook.clock().date() + timedelta(days=1), time(), UTC)
    usual = ReviewCapacity(playbook.ledger, by.options.node)  # what a review has to save when a day begins
    before, after = (
        each.only(touched).decided(snapshot, by, usual.left(snapshot, lambda: tomorrow))
        for each, snapshot in zip(pasts, snapshots, strict=True)
    )
    flips = tuple(_flips(past.only(touched), before, after))
    condition = None if rule is None else rule.condition
    facts = [
        {**was.known.facts, **is_now.known.facts} for was, is_now in zip(pasts[0].rows, pasts[1].rows, strict=True)
    ]
    fires = [condition.truth(each) if condition else None for each in facts]
    labelled = [(truth, row.label) for truth, row in zip(fires, past.rows, strict=True)][: past.cases]
    return Preview(
        cases=past.cases,
        decisions=len(past.rows) - past.cases,
        fires_on=Record(
            support=sum(truth is True for truth, _ in labelled),
            frauds=sum(truth is True and bool(label) for truth, label in labelled),
        ),
        fires_on_decisions=sum(truth is True for truth in fires[past.cases :]),
        unknown_on=sum(truth is None for truth, _ in labelled) if condition else 0,
        flips=flips,
        money=_money(flips),
        overlaps={} if rule is None else _overlaps(rule, snapshots[0], facts),
        contradicts=() if rule is None else rule.contradicts,
    )


def _touched(pasts: Sequence[Past], snapshots: Sequence[Snapshot], rule: Bullet | None) -> Sequence[int]:
    """The places of the transactions that a change can touch: those that the rule fires on, as it was or as it will be.

    A rule that does not fire takes no part in a decision. Without a rule, the change may touch all of them.
    """
    if rule is None:
        return range(len(pasts[0].rows))
    versions = [snapshot.bullets.get(rule.id) for snapshot in snapshots]
    touched = set[int]()
    for bullet, past in zip(versions, pasts, strict=True):
        if bullet is not None and bullet.condition is not None:
            holds = bullet.condition.holds
            touched.update(index for index, row in enumerate(past.rows) if holds(row.known.facts))
    return sorted(touched)


def _flips(past: Past, before: EmbeddedDecisions, after: EmbeddedDecisions) -> list[Flip]:
    made = zip(past.rows, before.verdicts, after.verdicts, before.probabilities, after.probabilities, strict=True)
    return [
        Flip(row.transaction.id, was, becomes, first, then, number_in(row.known.facts, "amount"), row.label)
        for row, was, becomes, first, then in made
        if was is not becomes
    ]


def _without(facts: Mapping[str, FactValue], names: Collection[str]) -> dict[str, FactValue]:
    return {name: value for name, value in facts.items() if name not in names}


def _money(flips: Sequence[Flip]) -> Money:
    """The amounts of labelled transactions that a change would decline or release, each counted once."""
    known = {flip.transaction_id: flip for flip in flips if flip.is_fraud is not None and flip.amount is not None}

    def total(side: str, is_fraud: bool) -> float:
        moved = (flip for flip in known.values() if flip.is_fraud is is_fraud)
        return sum(flip.amount or 0.0 for flip in moved if getattr(flip, side) is Verdict.DECLINE)

    return Money(total("after", True), total("after", False), total("before", False), total("before", True))


def _overlaps(rule: Bullet, snapshot: Snapshot, facts: Sequence[Mapping[str, FactValue]]) -> dict[str, float]:
    """How much of what a rule fires on other rules fire on too, the largest share first."""
    mine = [each for each in facts if rule.condition is not None and rule.condition.holds(each)]
    if not mine:
        return {}
    table = snapshot.table
    fired = table.wording.conditions.proven_rows(mine, table.of_node(table.node(rule.node)).bits)
    counts = Counter(table.bullets[row].id for rows in fired for row in rows)
    del counts[rule.id]
    return {name: counts[name] / len(mine) for name in sorted(counts, key=lambda name: (-counts[name], name))}


MOSTLY = 0.5
"""A rule that is unknown on a larger share of the cases is worth a remark."""
FEWEST = 20
"""With fewer cases, nothing is said of how often a rule fires."""


def cases_for(cases: LabelledFacts, condition: Condition) -> LabelledFacts:
    """The cases with the facts of their times that a condition asks for."""
    wanted = DAY_FACTS if cases.from_texts else (*CLOCK_FACTS, *DAY_FACTS)  # a text states the time of day itself
    missing = [name for name in wanted if name in condition.facts and name not in cases.facts.names]
    if not missing or not len(cases):
        return cases
    return replace(cases, facts=cases.facts.beside(time_facts(cases.times, missing)))


def firings_on(cases: LabelledFacts, bullet: Bullet) -> Firings | None:
    """On which of these cases a bullet fires and their money, else what outcomes have counted; None for a note.

    >>> from acefraud import BulletPlaybook, Learner, Outcome
    >>> learner = Learner(BulletPlaybook())
    >>> name = learner.playbook.add_bullet("VPN: decline")
    >>> orders = [Transaction(id=f"t{n}", facts={"vpn": n < 4, "amount": 10 * n}) for n in range(20)]
    >>> _ = learner.hear_all_sync([Outcome(transaction_id=f"t{n}", is_fraud=n < 3) for n in range(20)], orders)
    >>> firings_on(learner.remembered(), learner.playbook[name]).in_words(short=True)
    'fired on 4 labelled cases, 3 of them fraud (75%, against 15% of all); 60 in money, 30 of it fraud'
    """
    if bullet.condition is None:
        return None
    known = cases_for(cases, bullet.condition)
    holds, amounts = bullet.condition.holds_in(known.facts), known.facts.numbers("amount")
    base_rate, priced = float(known.labels.mean()) if len(known) else None, holds & ~np.isnan(amounts)
    record = record_of(holds, known.labels) if holds.any() else bullet.record  # what was on a list then is not known
    money = [float(amounts[rows].sum()) if priced.any() else None for rows in (priced, priced & known.labels)]
    return Firings(record, base_rate, *money)


def rule_remarks(
    condition: Condition, cases: LabelledFacts, others: Sequence[Bullet] = (), policy: Policy | None = None
) -> list[str]:
    """What the author of a rule should know: each remark is one line. `others` are the rules that are there already."""
    if len(cases) < FEWEST:
        return []
    known = cases_for(cases, condition)
    holds = condition.holds_in(known.facts)
    if not holds.any():
        return list(_why_never(condition, known))
    overlaps = (_overlap(holds, other, known, policy) for other in others)
    return [*_why_unknown(condition, known, holds), *filter(None, overlaps)]


def _why_never(condition: Condition, cases: LabelledFacts) -> Iterator[str]:
    yield f"It fires on none of the {len(cases):,} cases remembered here."
    for leaf in condition.leaves:
        if leaf.in_table(cases.facts).any():
            continue
        if is_context_fact(leaf.fact):
            yield f"Whether '{say_test(leaf)}' was not known for these cases: lists count from now on."
        elif not cases.facts.known(leaf.fact).any():
            yield f"No case has the fact '{leaf.fact}'."
        elif isinstance(leaf, Test):
            yield f"'{say_test(leaf)}' is never true: {_range(leaf, cases.facts)}."
        else:
            yield f"'{say_test(leaf)}' is never true."


def _range(test: Test, facts: FactTable) -> str:
    """What the values of a fact are, for a test that is never true of it."""
    codes, words = facts.categories(test.fact)
    if (codes >= 0).any():
        wanted = test.value if isinstance(test.value, str) else ""
        near = get_close_matches(wanted, words, 1, 0.6)
        if near:
            return f'did you mean "{near[0]}"?'
        return f"the values are {', '.join(words[:5])}{', ...' if len(words) > 5 else ''}"
    numbers = facts.numbers(test.fact)
    if test.op in ORDERED and (~np.isnan(numbers)).any():
        low, high = plain_number(float(np.nanmin(numbers))), plain_number(float(np.nanmax(numbers)))
        return f"it lies between {low} and {high}"
    return "another value is what all cases have"


def _why_unknown(condition: Condition, cases: LabelledFacts, holds: BoolArray) -> Iterator[str]:
    unknown = ~holds & ~condition.fails_in(cases.facts)
    share = float(unknown.mean())
    if share > MOSTLY:
        known = {fact: float(cases.facts.known(fact).mean()) for fact in condition.facts}
        least = min(known, key=lambda fact: (known[fact], fact))
        yield (
            f"It is unknown on {100 * share:.0f}% of the cases: '{least}' is known on {100 * known[least]:.0f}%. "
            f"Where a fact is missing, a rule does not fire, nor does its opposite."
        )


def _overlap(holds: BoolArray, other: Bullet, cases: LabelledFacts, policy: Policy | None) -> str:
    """How another rule stands in the way of this one."""
    if other.condition is None:
        return ""
    theirs = other.condition.holds_in(cases_for(cases, other.condition).facts)
    if policy is not None and other.policy is not None:
        if other.policy.rank >= policy.rank and not (holds & ~theirs).any():
            return f"It is shadowed: {other.id} decides every case it fires on first ({other.policy.words})."
        return ""
    if policy is None and other.policy is not None and not (holds & ~theirs).any():
        return f"It changes nothing: the policy {other.id} decides every case it fires on ({other.policy.words})."
    if policy is None and other.policy is None and np.array_equal(holds, theirs):
        return f"It fires on the same cases as {other.id}."
    return ""
