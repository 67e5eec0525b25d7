"""How the facts of the latest decisions differ from those that a playbook has learnt from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from acefraud.core.context_facts import is_context_fact
from acefraud.core.events import DecisionMade
from acefraud.core.fact_catalog import FactCatalog, FactProfile
from acefraud.core.ledger import DecisionFilter
from acefraud.core.table import FactTable
from acefraud.display.short_repr import shown_text
from acefraud.facts.time_facts import CLOCK_FACTS, DAY_FACTS
from acefraud.storage.facts_at_hand import SAMPLE, facts_at_hand
from acefraud.storage.playbook import BulletPlaybook

ENOUGH = 20
"""Decisions and cases from which on they are compared."""
USUAL, RARE = 0.5, 0.1
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
    records = [one.record for one in made if isinstance(one, DecisionMade) and one.record.node == node]
    learnt, now = facts_at_hand(playbook), FactCatalog.of(FactTable([record.basis[0] for record in records]))
    compared = FactChanges(learnt.rows, now.rows)
    return FactChanges(learnt.rows, now.rows, tuple(_changes(learnt, now))) if compared.are_known else compared


def _changes(learnt: FactCatalog, now: FactCatalog) -> Iterator[FactChange]:
    for name in sorted(name for name in {*learnt, *now} if not is_context_fact(name)):
        before, after = learnt.get(name), now.get(name)
        had, has = (0.0 if one is None else one.coverage for one in (before, after))
        if had >= USUAL and has < RARE * had and name not in DAY_FACTS + CLOCK_FACTS:  # decisions have those in use
            told = f"{100 * had:.0f}% of the cases had it, {100 * has:.0f}% of the decisions have it"
            yield FactChange(name, "missing", told)
        elif before is None and has >= RARE:
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
