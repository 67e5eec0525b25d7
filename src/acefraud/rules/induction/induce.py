"""From labelled history to rules: several searches, each checked out of time, distilled into one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from acefraud.core.bullet import Evidence, NewBullet, Source
from acefraud.core.calibration import Calibration
from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict
from acefraud.rules.english import sentence
from acefraud.rules.induction.boosting import (
    NOTHING,
    Boosting,
    FittedRules,
    InductionOptions,
    Searched,
    are_in,
    distilled,
    distinct,
    nearly_same,
    with_weight,
    worth_keeping,
)
from acefraud.rules.induction.fitting import (
    FitCases,
    Fitted,
    fit,
    improving,
    levelled,
    slope_of,
    strongest,
    threads_for,
)
from acefraud.rules.induction.out_of_time import Checked, History, SplitHistory, spread_of
from acefraud.support.arrays import BoolArray
from acefraud.support.timestamps import time_of

SEPARATED, SEPARATED_TOO = 2.5, 1.0
"""How far apart the rules of the searches must put later frauds and other cases, in standard errors under chance, for
rules to count that chance could explain one by one; and if half of the searches have others that it could not."""
_FINAL_FITS = 4
"""Fits at the end of a search, each on the conditions that the fit before would have cited."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A rule found in labelled cases: its condition and verdict, its measured record and its fitted weight."""

    condition: Condition
    argues: Verdict
    evidence: Evidence
    weight: float

    def new_bullet(self, source: Source) -> NewBullet:
        """The rule as a bullet in English."""
        return NewBullet(
            content=sentence(self.condition, self.evidence),
            source=source,
            condition=self.condition,
            argues=self.argues,
            evidence=self.evidence,
            weight=self.weight,
            problem_types=problem_types(self.condition),
        )


@dataclass(frozen=True, slots=True)
class Induced:
    """The result of a search."""

    lessons: tuple[Lesson, ...]
    calibration: Calibration
    weights: Mapping[Condition, float] = field(default_factory=dict)
    """The fitted weight of each `written` condition, whether it became a lesson or not."""

    def with_points(self, points: Mapping[str, float]) -> Induced:
        """This result for a scorecard with these fitted points."""
        return replace(self, calibration=self.calibration.model_copy(update={"points": dict(points)}))


def induce(
    history: History,
    options: InductionOptions,
    generator: np.random.Generator,
    progress: Callable[[float], None] = lambda _: None,
    *,
    known: Sequence[Condition] = (),
    written: Sequence[Condition] = (),
) -> Induced | None:
    """Search a history for rules. None if it has too few cases or nothing is found.

    Conditions are grown on the earlier part and must hold on the out-of-time part; weights are then fitted on all
    cases. `known` conditions take part from the start. So do those `written` by people, which are never dropped and do
    not count against `most_bullets`.
    """
    if too_little(history.labels, options):
        return None
    progress(0.0)
    split = SplitHistory.of(history, options.later_share)
    if not history.labels[: split.cut].any():
        return None
    always = frozenset(written)
    if history.knowledge is not None and len(history) <= options.small:
        options = replace(options, chance=1.0)  # there rules are cross-validated
    with threads_for(min(len(history), 2 * options.most_rows) * options.most_bullets):
        searches: list[Searched] = []
        for done in range(options.searches):
            by_chance = searches[0].by_chance if searches else None
            boosting = Boosting(split, options, generator, [*written, *known], always=always, by_chance=by_chance)
            searches.append(boosting.run(_part(progress, done, options.searches)))
        least = SEPARATED_TOO if np.mean([bool(search.proven) for search in searches]) >= 0.5 else SEPARATED
        separated = np.mean([search.separation for search in searches]) >= least
        kept = [search.conditions if separated else search.proven for search in searches]
        checked = split.check(condition for conditions in kept for condition in conditions)
        found = []
        for conditions in kept:
            fitted = _fit_all(split, conditions, checked, options, generator, always=always)
            found.append(FittedRules(conditions, fitted))
        rules = found[0] if len(found) == 1 else distilled(found, split, options, generator, always)
    progress(1.0)
    spread = spread_of([checked[condition] for condition in with_weight(found)])
    lessons = tuple(
        _lesson(condition, checked[condition], weight, rules.found_again.get(condition), spread=spread)
        for condition, weight in zip(rules.conditions, rules.fitted.weights, strict=True)
        if abs(weight) > NOTHING and checked[condition].holds_up and weight * checked[condition].side > 0
    )
    weights = dict(zip(rules.conditions, rules.fitted.weights.tolist(), strict=True))
    by_hand = {condition: weights[condition] for condition in always if condition in weights}
    return Induced(lessons, rules.fitted.calibration, by_hand) if lessons or known or by_hand else None


def too_little(labels: BoolArray, options: InductionOptions) -> str:
    """Why labelled cases are too few to learn from; empty if they are enough.

    >>> too_little(np.array([True, False]), InductionOptions())
    '2 labelled cases, 40 are needed'
    """
    frauds = int(labels.sum())
    if len(labels) < options.least_cases:
        return f"{len(labels)} labelled cases, {options.least_cases} are needed"
    if frauds < options.least_frauds:
        return f"{frauds} frauds among {len(labels):,} labelled cases, {options.least_frauds} are needed"
    return "all labelled cases are fraud" if frauds == len(labels) else ""


def _part(progress: Callable[[float], None], done: int, count: int) -> Callable[[float], None]:
    """The progress of one of several equal parts."""
    return lambda share: progress((done + share) / count)


def _fit_all(
    split: SplitHistory,
    conditions: Sequence[Condition],
    checked: Mapping[Condition, Checked],
    options: InductionOptions,
    generator: np.random.Generator,
    *,
    always: frozenset[Condition],
) -> Fitted:
    """All weights fitted on all cases, calibrated on the out-of-time part.

    A pattern that stopped still explains the cases of its time, so it takes part in the fit but becomes no lesson.
    """
    places, counts = split.sample(options.most_rows, generator)
    cases, rows = split.cases(places, counts), split.history.facts.take(places)
    masks = np.zeros((len(places), len(conditions)), dtype=np.bool_)
    for index, condition in enumerate(conditions):
        if checked[condition].holds_up or checked[condition].stopped:
            masks[:, index] = condition.holds_in(rows)
    masks &= distinct(nearly_same(masks, counts), conditions, always)
    fitted = fit(masks, cases, options.fit)
    if cases.knowledge is not None and len(split.history) <= options.small:
        masks &= improving(masks, cases, fitted, options.fit) | are_in(conditions, always)
        fitted = fit(masks, cases, options.fit)
    for _ in range(_FINAL_FITS - 1):
        spoken = strongest(masks, fitted.weights, options.most_cited)
        fitted = fit(spoken, cases, options.fit, fitted, options.steps * 3)
    kept = np.array([checked[condition].holds_up for condition in conditions], dtype=np.bool_)
    fitted = replace(fitted, weights=np.where(kept, fitted.weights, 0.0))
    kept = worth_keeping(fitted.weights, masks, cases, options.most_bullets, are_in(conditions, always))
    fitted = replace(fitted, weights=fitted.weights * kept)
    return _set_to_later(fitted, masks & (fitted.weights != 0), cases, places < split.cut, options)


def _set_to_later(
    fitted: Fitted, masks: BoolArray, cases: FitCases, earlier: BoolArray, options: InductionOptions
) -> Fitted:
    """Calibrate on the out-of-time part. The slope corrects how far weights fitted before it overshoot there."""
    then, now = cases.take(earlier), cases.take(~earlier)
    before = fit(strongest(masks[earlier], fitted.weights, options.most_cited), then, options.fit, fitted)
    slope = slope_of(before, strongest(masks[~earlier], before.weights, options.most_cited), now)
    return levelled(fitted, slope, strongest(masks[~earlier], fitted.weights, options.most_cited), now)


def _lesson(
    condition: Condition, checked: Checked, weight: float, found_again: float | None, *, spread: float
) -> Lesson:
    first, last = (None, None) if checked.span is None else map(time_of, checked.span)
    evidence = Evidence(
        learnt=checked.learnt,
        base_rate=checked.base_rate,
        later=checked.later,
        spread=round(spread, 3),
        found_again=None if found_again is None else round(found_again, 3),
        cases=checked.cases,
        first_seen=first,
        last_seen=last,
    )
    return Lesson(condition, Verdict.of(weight > 0), evidence, float(weight))


_FACTS: dict[str, tuple[str, ...]] = {
    "spending_anomaly": ("amount", "amount_to_usual", "amount_to_usual_max", "usual_amount", "usual_amount_max"),
    "account_history": ("account_age_days", "account_transactions", "transactions_per_month", "larger_purchases"),
    "suspicious_time": ("hour", "night"),
    "location_fraud": (
        "location_change", "high_risk_country", "sanctioned", "impossible_travel", "distance_km", "travel",
    ),
    "merchant_risk": (
        "merchant_rating", "fraud_reports", "fraud_report_window_days", "merchant_category", "crypto", "gift_cards",
        "first_time_merchant", "purchases_at_merchant", "prepaid_card",
    ),
    "device_risk": ("vpn", "emulator", "new_device", "device_age_days", "remote_access"),
    "account_takeover": ("password_reset", "contact_changed", "failed_attempts", "days_since_last"),
    "velocity": (
        "velocity", "recent_transactions", "recent_window_minutes", "declined_before", "escalating_amounts",
    ),
    "identity": ("kyc_missing", "verified", "strong_authentication", "vip", "business_account", "address_mismatch"),
    "payment_route": ("new_payee", "funds_forwarded", "channel", "payment_method", "payment_method_age_days"),
    "dispute_history": ("chargebacks", "disputes_before"),
}  # fmt: skip
_TYPE_OF = {fact: kind for kind, facts in _FACTS.items() for fact in facts}


def problem_types(condition: Condition) -> list[str]:
    """Categories of a bullet, in alphabetical order; "other" for columns that are no named facts.

    >>> problem_types(Condition.parse("vpn is true and high_risk_country is true"))
    ['device_risk', 'location_fraud']
    """
    return sorted({_TYPE_OF.get(fact, "other") for fact in condition.facts})
