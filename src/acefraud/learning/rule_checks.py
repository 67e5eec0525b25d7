"""What may be wrong with a rule, as the labelled cases show: it never fires, is mostly unknown, is shadowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches

import numpy as np

from acefraud.core.arrays import BoolArray
from acefraud.core.bullet import Bullet
from acefraud.core.comparison import ORDERED, Test, plain_number
from acefraud.core.condition import Condition
from acefraud.core.context_facts import is_context_fact
from acefraud.core.policy import Policy
from acefraud.core.table import FactTable
from acefraud.facts.time_facts import CLOCK_FACTS, DAY_FACTS, time_facts
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.rules.english import say_test

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
    remarks = [*_why_unknown(condition, known, holds)]
    for other in others:
        remark = _overlap(holds, other, known, policy)
        if remark:
            remarks.append(remark)
    return remarks


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
