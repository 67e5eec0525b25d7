"""Which policy decides a transaction, before anything is scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acefraud.core.bullet import Bullet
from acefraud.core.context_facts import snooze_fact
from acefraud.core.decision import Decision, ProbabilityFrom, Reason, ReasonKind
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import DecidingRule
from acefraud.core.transaction import FactValue, Verdict
from acefraud.settings import EMBEDDED


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
