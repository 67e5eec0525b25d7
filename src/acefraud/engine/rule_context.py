"""Facts that only rules ask for: the time of day, whether a value is on a list, whether a policy is snoozed.

They are worked out when a transaction is decided and recorded with its other facts, so a decision can be made again
after the lists have changed. The learner never proposes rules about lists or snoozes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from acefraud.core.bullet import Bullet
from acefraud.core.context_facts import ValueList, list_of, snooze_fact
from acefraud.core.decision import Decision, ProbabilityFrom, Reason, ReasonKind
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import DecidingRule
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.datasets import parse_mapping
from acefraud.facts.time_facts import CLOCK_FACTS, DAY_FACTS, with_own_time_facts
from acefraud.settings import EMBEDDED


@dataclass(frozen=True)
class RuleContext:
    """What the rules of one revision ask for beyond the facts of a transaction."""

    time_facts: tuple[str, ...]
    """Those that every transaction gets."""
    more_time_facts: tuple[str, ...]
    """Those that only rules ask for. A text states the time of day itself, so of these it gets only the day."""
    lists: tuple[tuple[str, str, ValueList], ...]
    """The flag, the key and the list of each test of a list."""
    snoozed: tuple[Bullet, ...]
    columns: Mapping[str, str]
    """The columns of entities by the names that rules call them."""

    @classmethod
    def of(cls, snapshot: Snapshot, time_facts: Iterable[str]) -> RuleContext:
        """The context that a snapshot asks for; `time_facts` are those that its mapping wants anyway."""
        wanted = tuple(time_facts)
        return snapshot.table.cached(
            ("rule context", snapshot.revision, wanted),  # lists may change where no bullet does
            lambda: context_of(snapshot, wanted),
        )

    @property
    def needs_rows(self) -> bool:
        """Whether rules ask for more than every transaction gets."""
        return bool(self.more_time_facts or self.lists or self.snoozed)

    @property
    def flags(self) -> set[str]:
        """The facts about lists and snoozes."""
        return {flag for flag, _, _ in self.lists}.union(snooze_fact(policy.id) for policy in self.snoozed)

    def added_to(self, transactions: Sequence[Transaction], clock: Callable[[], datetime]) -> list[Transaction]:
        """The transactions with these facts. What a transaction says itself stays."""
        every = (*self.time_facts, *self.more_time_facts)
        days = (*self.time_facts, *(name for name in self.more_time_facts if name in DAY_FACTS))
        timed = [with_own_time_facts(one, days if one.text else every) for one in transactions]
        if not self.lists and not self.snoozed:
            return timed
        now: datetime | None = None
        made = []
        for one in timed:
            at = one.time
            if at is None:
                at = now = now or clock()
            more = self._flags(one, at)
            made.append(one.model_copy(update={"facts": {**one.facts, **more}}) if more else one)
        return made

    def _flags(self, transaction: Transaction, at: datetime) -> dict[str, FactValue]:
        found: dict[str, FactValue] = {}
        for flag, key, listed in self.lists:
            value = value_of(transaction, key, self.columns)
            if value is not None and flag not in transaction.facts:
                found[flag] = listed.has(value, at)
        for policy in self.snoozed:
            if any(one.covers(value_of(transaction, one.key, self.columns), at) for one in policy.snoozes):
                found[snooze_fact(policy.id)] = True
        return found


def context_of(snapshot: Snapshot, time_facts: tuple[str, ...]) -> RuleContext:
    """The context of a snapshot, not kept: one that is only supposed shares its table with the real one."""
    tested = sorted(frozenset().union(*snapshot.table.wording.facts))
    lists = []
    for flag in tested:
        if (found := list_of(flag)) is not None and found[1] in snapshot.lists:
            lists.append((flag, found[0], snapshot.lists[found[1]]))
    return RuleContext(
        time_facts,
        tuple(name for name in (*CLOCK_FACTS, *DAY_FACTS) if name in tested and name not in time_facts),
        tuple(lists),
        tuple(one for one in snapshot.table.bullets if one.snoozes),
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


@lru_cache(maxsize=16)
def entity_columns(mapping: str) -> Mapping[str, str]:
    """The column of each entity, by the name that facts use."""
    if not mapping:
        return {}
    history = parse_mapping(mapping, place="the mapping this playbook was trained with").history
    return {} if history is None else {history.name_of(column): column for column in history.entities}


def deciding_policies(
    snapshot: Snapshot, node: str, facts: Sequence[Mapping[str, FactValue]]
) -> Sequence[Bullet | None]:
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


def _awake(policy: Bullet, facts: Mapping[str, FactValue]) -> bool:
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
    if decision.probability_from is ProbabilityFrom.CALIBRATED:
        return DecidingRule.by_threshold(decision.threshold)
    return DecidingRule(rule="model", words=f"the verdict of {decision.model}")


def policy_reason(policy: Bullet) -> Reason:
    """A policy as the reason of a decision."""
    assert policy.policy is not None
    return Reason(
        kind=ReasonKind.POLICY, text=f"{policy.shown} ({policy.policy.words})", contribution=None, bullet_id=policy.id
    )
