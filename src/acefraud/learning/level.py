"""The level of fraud: how far the latest outcomes have moved away from what the calibration expects.

Weights are fitted from time to time on thousands of cases, but an attack begins and ends within an hour. So the level
is followed separately. It is a hidden state that usually stays where the calibration has it, may jump at any outcome,
and is estimated from the outcomes by Bayes' rule. A quiet stream does not move it, while fifty frauds in a row do.

If every decision gets an outcome, the outcomes are a fair sample. If only frauds are reported, what tells is the share
of decisions that were reported, given how late reports usually are; the share of fraud among reports says nothing.
A step is bounded. Unless the feed is complete, a step that would change many verdicts waits for a person.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from acefraud.core.bullet_table import packed_flags, unpacked
from acefraud.core.calibration import Calibration, HeldLevel, RecentLevel, log_odds
from acefraud.core.events import OUTCOME_KINDS, Event, LevelHeld, LevelMoved
from acefraud.core.ledger import DecisionFilter
from acefraud.core.outcome import FeedKind
from acefraud.core.playbook import Snapshot
from acefraud.core.table import FactTable
from acefraud.core.transaction import Verdict
from acefraud.engine.options import LearnerOptions
from acefraud.engine.score import AdditiveScore
from acefraud.learning.outcome_feeds import arrived_share, decisions_of, truths_in
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.rules.induction.fitting import strongest
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arrays import BoolArray, FloatArray
from acefraud.support.exact_math import exp_of, log_of, sigmoid, sigmoid_of, softplus_of
from acefraud.support.timestamps import UNKNOWN

LEVEL_EVERY = 25
"""Outcomes after which the level is estimated again."""
LATEST = 2_000
"""The outcomes that it is estimated on."""
SHOWN = 100
"""The outcomes that a reason speaks of."""
LEAST_SHIFT = 0.25
"""A smaller shift counts as none."""
MOST_STEP = 4.0
"""The level moves by no more at once."""
MOST_CHANGE = 0.2
"""The share of declines may change by this part of itself before a person is asked, unless the feed is complete."""
LATEST_DECISIONS = 5_000
"""The decisions on which the level is estimated if only frauds are reported."""
LEAST_REPORTED, LEAST_ARRIVALS = 30, 3
"""Reports, and times at which some arrived, below which nothing is known about how late they are."""
LATEST_REPORTS = 1_000
"""The reports that tell how late reports are."""
LEAST_EXPOSURE = 0.5
"""Decisions too young for this share of reports to have arrived tell nothing."""
LEAST_DECISIONS = 50
"""Decisions below which a share of declines says little."""
JUMP = 1 / 1_000
"""The chance that the level jumps between two outcomes."""
UNMOVED = 0.98
"""The chance that it is where the calibration has it, after a jump too."""
BLOCK = 5
"""Outcomes that are taken in together."""
JUMPED = np.linspace(0.0, 1.0, 21)
"""Chances of a jump that are compared..."""
FEW_JUMPS = 1.0
"""...and what their log-likelihood is reduced by, for a chance of one."""
SHIFTS = np.linspace(-8.0, 8.0, 81)
Told = tuple[RecentLevel | None, FloatArray]
"""Where outcomes have the level, None if it has not moved, and the log-odds that it is added to."""

USUAL_REPORTS = 30.0
"""The latest decisions of which so many would be reported by now tell the level..."""
CLEAR = 2.5
"""...if more or fewer were, by so many standard deviations."""
DAY = 86_400.0
_PRIOR = np.where(SHIFTS == 0, UNMOVED, (1 - UNMOVED) / (len(SHIFTS) - 1))
_STAYS = math.prod([1 - JUMP] * BLOCK)


def level_change(
    recent: RecentLevel | None, expected: FloatArray, calibration: Calibration, *, fair: bool, node: str, outcomes: int
) -> LevelMoved | LevelHeld | None:
    """What to do about where outcomes have the level: move it, hold the step for a person, or nothing.

    `expected` are the log-odds of the latest decisions apart from any shift, `outcomes` how many were heard so far. If
    the outcomes are no `fair` sample of the decisions, a step that changes many verdicts is held.
    """
    before, held = _shift(calibration.recent), calibration.held
    if calibration.recent is not None and calibration.recent.outcomes == outcomes:
        return None
    recent = _bounded(recent, calibration)
    wanted = _shift(recent)
    if recent is not None:
        recent = recent.model_copy(update={"outcomes": outcomes})
    if wanted == before:
        return LevelHeld(node=node, held=None) if held else None
    bar = log_odds(calibration.threshold)
    now, then, anchor = (_share(expected + shift >= bar) for shift in (before, wanted, calibration.anchor_shift))
    if not fair and changes_much(anchor, then, len(expected)):
        step = HeldLevel(recent=recent, declines=now, would_decline=then)
        known = held is not None and _shift(held.recent) == wanted
        return None if known else LevelHeld(node=node, held=step)
    return LevelMoved(node=node, recent=recent, declines=(now, then))


def changes_much(share: float, other: float, among: int) -> bool:
    """Whether two shares of declined decisions differ by more than a person should have to find out by himself.

    >>> changes_much(0.05, 0.059, 1000), changes_much(0.05, 0.062, 1000)
    (False, True)
    """
    return abs(other - share) > MOST_CHANGE * share + 1 / max(among, 1)


def _share(declined: BoolArray) -> float:
    return float(declined.mean()) if len(declined) else 0.0


def _shift(level: RecentLevel | None) -> float:
    return 0.0 if level is None else level.shift


def after_review(
    playbook: BulletPlaybook, before: Snapshot, remembered: LabelledFacts, options: LearnerOptions, told: Told | None
) -> list[LevelMoved | LevelHeld]:
    """The events that bring the level where outcomes have it after a review, if they have `told` that.

    If review and level together would change the share of declines by much, it stays as it was `before`, and a person
    is asked. There are no events if nothing was learnt before, or if there are no decisions to compare. If only frauds
    are reported, the `remembered` cases stand in for decisions.
    """
    feed, after = playbook.feed(options.node), playbook.snapshot()
    old, new = (snapshot.calibration(options.node) for snapshot in (before, after))
    if old is None or new is None:
        return []
    cases, _ = _unlabelled(playbook.ledger.find_decisions(DecisionFilter(), limit=LATEST), options.node)
    if len(cases) < LEAST_DECISIONS and feed.kind is FeedKind.FRAUD_ONLY:
        cases = remembered.take(slice(max(0, len(remembered) - LATEST), None))
    margins = [log_odds_in(cases, snapshot, options) for snapshot in (before, after)]
    if len(cases) < LEAST_DECISIONS or margins[0] is None or margins[1] is None:
        return []
    wanted = _bounded(told[0], old) if told else new.recent
    declined = _share(margins[0] + _shift(old.recent) >= log_odds(old.threshold))
    would = _share(margins[1] + _shift(wanted) >= log_odds(new.threshold))
    if not changes_much(declined, would, len(cases)):
        moves = _shift(wanted) != _shift(new.recent)
        return [LevelMoved(node=options.node, recent=wanted, declines=(declined, would))] if moves else []
    bar = float(np.quantile(margins[1], 1 - declined))
    shift = round(log_odds(new.threshold) - bar, 1)
    if new.held is not None and (_shift(new.recent), _shift(new.held.recent)) == (shift, _shift(wanted)):
        return []  # a person was asked before
    kept = RecentLevel(shift=shift, cases=len(cases), frauds=0, expected=0.0, among="review")
    step = HeldLevel(recent=wanted, declines=declined, would_decline=would)
    moved = LevelMoved(node=options.node, recent=kept, anchors=True)
    return [moved, LevelHeld(node=options.node, held=step)]


def _bounded(recent: RecentLevel | None, calibration: Calibration) -> RecentLevel | None:
    """A level that is no more than one step away from the present one."""
    before, wanted = _shift(calibration.recent), _shift(recent)
    if abs(wanted - before) <= MOST_STEP:
        return recent
    shift = round(before + math.copysign(MOST_STEP, wanted - before), 1)
    from_there = recent or calibration.recent
    return from_there and from_there.model_copy(update={"shift": shift})


def _unlabelled(events: Sequence[Event], node: str, *, passed: bool = False) -> tuple[LabelledFacts, FloatArray]:
    """Decisions of a node as cases that are not labelled, oldest first, and when they were made, in seconds since 1970.

    If only those that `passed` count, declined ones are left out.
    """
    made = [
        (event.at, record)
        for event, record in decisions_of(sorted(events, key=lambda event: event.seq), node)
        if not (passed and record.verdict == Verdict.DECLINE)
    ]
    cases = LabelledFacts(
        np.array([record.transaction_id for _, record in made], dtype=object),
        FactTable([record.basis[0] for _, record in made]),
        np.zeros(len(made), dtype=np.bool_),
        np.full(len(made), UNKNOWN),
        any(record.decision.transaction.text for _, record in made[-1:]),
    )
    return cases, np.array([at.timestamp() for at, _ in made])


def reported_level(playbook: BulletPlaybook, snapshot: Snapshot, options: LearnerOptions) -> Told | None:
    """Where reports of frauds have the level, with the log-odds of the decisions; None if that cannot be told yet.

    What tells is how many of the decisions of each age were reported, beside how many would usually be by now. How late
    reports are is known once the first decisions are so old that nothing more is to come.
    """
    node, feed, ledger = options.node, playbook.feed(options.node), playbook.ledger
    made_at, arrived = _latest_reports(playbook, node)
    first = ledger.find_decisions(DecisionFilter(), limit=1, newest_first=False)
    if len(made_at) < LEAST_REPORTED or len(np.unique(arrived)) < LEAST_ARRIVALS or not first:
        return None
    lags, now = arrived - made_at, float(arrived.max())
    latest_lag = 2 * float(np.quantile(lags, 0.95)) if feed.silence_days is None else feed.silence_days * DAY
    if now - first[0].at.timestamp() < latest_lag:
        return None
    usual = np.unique(lags)
    young = usual[arrived_share(lags, now - made_at, usual) < LEAST_EXPOSURE]
    until = datetime.fromtimestamp(now - (young.max() if len(young) else 0.0), UTC)
    decided = ledger.find_decisions(DecisionFilter(until=until), limit=LATEST_DECISIONS)
    cases, times = _unlabelled(decided, node, passed=not feed.declines_pass)
    expected = log_odds_in(cases, snapshot, options)
    if expected is None or not len(cases):
        return None
    share = arrived_share(lags, now - made_at, now - times)
    return _told_by_reports(expected, _reported(playbook, cases.ids.tolist(), node), share), expected


def _told_by_reports(expected: FloatArray, frauds: BoolArray, share: FloatArray) -> RecentLevel | None:
    """The level of the latest decisions of which enough reports would be usual by now; None if as many have come.

    `share` is the chance that a fraud among them has been reported by now.

    >>> usual, few = np.full(2000, -3.0), np.arange(2000) % 21 == 0
    >>> _told_by_reports(usual, few, np.full(2000, 0.7)) is None
    True
    >>> _told_by_reports(usual, few | (np.arange(2000) % 7 == 0), np.full(2000, 0.7)).shift
    1.6
    """
    usual = share * sigmoid_of(expected)
    start = max(0, len(usual) - 1 - int(np.searchsorted(np.cumsum(usual[::-1]), USUAL_REPORTS)))
    latest = slice(start, None)
    seen, due = int(frauds[latest].sum()), float(usual[latest].sum())
    shift = round(level_of_all(expected[latest], frauds[latest], share[latest]), 1)
    if abs(seen - due) < CLEAR * math.sqrt(max(due, 1.0)) or abs(shift) < LEAST_SHIFT:
        return None
    return RecentLevel(shift=shift, cases=len(usual) - start, frauds=seen, expected=round(due, 2), among="decisions")


def _latest_reports(playbook: BulletPlaybook, node: str) -> tuple[FloatArray, FloatArray]:
    """When the decisions were made that were reported as fraud lately, and when the reports arrived."""
    events = playbook.ledger.find_events(OUTCOME_KINDS, limit=LATEST_REPORTS, newest_first=True)
    arrived = {
        heard.decision_id: event.at.timestamp()
        for event in events
        for heard in truths_in([event], node)
        if heard.outcome.is_fraud
    }
    wanted = DecisionFilter(ids=[decision_id for decision_id in arrived if decision_id])
    made = playbook.ledger.find_decisions(wanted, limit=LATEST_REPORTS)
    pairs = [(event.at.timestamp(), arrived[record.id]) for event, record in decisions_of(made, node)]
    made_at, arrived_at = np.array(pairs).reshape(-1, 2).T
    return made_at, arrived_at


def _reported(playbook: BulletPlaybook, ids: list[str], node: str) -> BoolArray:
    """Whether each transaction was reported as fraud and still counts as one."""
    told = playbook.ledger.outcome_events(ids)
    truths = (truths_in(told.get(transaction_id, ()), node)[-1:] for transaction_id in ids)
    return np.array([any(heard.outcome.is_fraud for heard in latest) for latest in truths], dtype=np.bool_)


def lag_of(playbook: BulletPlaybook, cases: LabelledFacts, node: str) -> int:
    """How many outcomes arrived between the decisions on the latest cases and their own outcomes.

    Told by the events in between, of which outcomes are as many as usual.
    """
    latest = DecisionFilter(transaction_ids=cases.ids[-LEVEL_EVERY:].tolist())
    made = decisions_of(playbook.ledger.find_decisions(latest, limit=sys.maxsize), node)
    since = [playbook.seq - record.revision for _, record in made]
    return round(float(np.median(since)) * playbook.outcomes / playbook.seq) if since else 0


def log_odds_in(cases: LabelledFacts, snapshot: Snapshot, options: LearnerOptions) -> FloatArray | None:
    """The log-odds of fraud that the playbook gives cases, apart from recent levels; None if nothing was learnt yet."""
    unmoved = _unmoved_score(snapshot, options.node)
    return None if unmoved is None else _log_odds(unmoved, cases, options)


def _unmoved_score(snapshot: Snapshot, node: str) -> AdditiveScore | None:
    calibration = snapshot.calibration(node)
    if calibration is None:
        return None
    unmoved = calibration.model_copy(update={"recent": None, "held": None})
    return replace(AdditiveScore.of(snapshot, node), calibration=unmoved)


def _log_odds(additive: AdditiveScore, cases: LabelledFacts, options: LearnerOptions) -> FloatArray:
    fired, counting = unpacked(additive.fired(cases.facts), len(additive.table)), np.flatnonzero(additive.weights)
    fired[:, counting] = strongest(fired[:, counting], additive.weights[counting], options.n_bullets)
    return additive.scores(cases.facts, packed_flags(fired)).log_odds


class LatestLogOdds:
    """The log-odds of the latest cases of a memory, and how likely they are at each shift.

    As long as the playbook gives the same log-odds, only those of new cases are computed.
    """

    def __init__(self, options: LearnerOptions) -> None:
        self._options = options
        self._of: tuple[object, ...] = ()
        """What the log-odds follow from."""
        self._log_odds, self._last = np.zeros(0), 0
        self._likely, self._likely_to = np.zeros((0, len(SHIFTS))), 0

    def of(self, cases: LabelledFacts, snapshot: Snapshot) -> FloatArray | None:
        """As `log_odds_in`. The cases, `LATEST` at most, must be the latest that the memory has taken in."""
        additive = _unmoved_score(snapshot, self._options.node)
        if additive is None:
            return None
        if self._of != (of := (additive.table.wording, additive.calibration, additive.weights.tobytes())):
            self._of, self._log_odds, self._likely = of, self._log_odds[:0], self._likely[:0]
        new = cases.last - self._last
        if new > len(cases) or new + len(self._log_odds) < len(cases):
            new, self._log_odds = len(cases), self._log_odds[:0]
        if new:
            fresh = _log_odds(additive, cases.take(slice(len(cases) - new, None)), self._options)
            self._log_odds = np.concatenate([self._log_odds, fresh])[-LATEST:]
        self._last = cases.last
        return self._log_odds[len(self._log_odds) - len(cases) :]

    def likelihoods(self, labels: BoolArray) -> FloatArray:
        """How likely each block of these outcomes is, of the cases whose log-odds were asked for last."""
        expected, blocks = self._log_odds[len(self._log_odds) - len(labels) :], len(labels) // BLOCK
        new, apart = divmod(self._last - self._likely_to, BLOCK)
        if apart or new + len(self._likely) < blocks:
            new = blocks
        if new := min(new, blocks):
            fresh = _likelihoods(expected[-BLOCK * new :], labels[-BLOCK * new :])
            self._likely = np.concatenate([self._likely, fresh])
        self._likely, self._likely_to = self._likely[len(self._likely) - blocks :], self._last
        first = len(labels) % BLOCK
        return np.concatenate([_likelihoods(expected[:first], labels[:first]), self._likely]) if first else self._likely


def recent_level(
    expected: FloatArray, labels: BoolArray, lag: int = 0, *, likelihoods: FloatArray | None = None
) -> RecentLevel | None:
    """The level after the latest outcomes, given the log-odds expected for each; None if it has not moved.

    `lag` is how many outcomes arrive between a decision and its own. `likelihoods` are those of the blocks of outcomes,
    if they are known.

    >>> quiet, attack = np.arange(300) % 50 == 0, np.arange(100) % 5 < 2
    >>> recent_level(np.full(300, -3.9), quiet) is None
    True
    >>> recent_level(np.full(400, -3.9), np.concatenate([quiet, attack])).shift
    3.5
    """
    if not len(labels):
        return None
    levels = _mean_shifts(_filtered(_likelihoods(expected, labels) if likelihoods is None else likelihoods))
    if (np.abs(levels) < LEAST_SHIFT).all():
        return None
    at_each = _for_each_outcome(levels, len(labels))
    usual = level_of_all(expected, labels)
    jumped = _chance_of_a_jump(expected, labels, at_each, usual, max(lag, BLOCK))
    shown = slice(max(0, len(labels) - SHOWN), None)
    typical = float(np.median(expected[shown]))
    chance = (1 - jumped) * sigmoid(typical + float(levels[-1])) + jumped * sigmoid(typical + usual)
    shift = round(log_odds(min(max(chance, 1e-6), 1 - 1e-6)) - typical, 1)
    if abs(shift) < LEAST_SHIFT:
        return None
    return RecentLevel(
        shift=shift,
        cases=len(labels[shown]),
        frauds=int(labels[shown].sum()),
        expected=round(float(sigmoid_of(expected[shown]).sum()), 2),
    )


def _chance_of_a_jump(expected: FloatArray, labels: BoolArray, levels: FloatArray, usual: float, lag: int) -> float:
    """The chance that the level has jumped since the last outcome that was known, to where it usually is.

    It is the one that explains best what happened `lag` outcomes after each level. If frauds come in short stretches
    and labels late, the level of the latest outcomes says little, and this chance is high. All outcomes within a lag
    come after the same jump, so together they count as one.
    """
    known = levels[: max(0, len(levels) - lag)]
    moved = np.abs(known) >= LEAST_SHIFT
    later, truth = expected[lag:][moved], labels[lag:][moved]
    same, other = sigmoid_of(later + known[moved]), sigmoid_of(later + usual)
    mixed = same[:, None] + JUMPED * (other - same)[:, None]
    likely = log_of(np.clip(np.where(truth[:, None], mixed, 1 - mixed), 1e-9, None)).sum(axis=0)
    return float(JUMPED[np.argmax(likely / lag - FEW_JUMPS * JUMPED)])


def level_at(expected: FloatArray, labels: BoolArray) -> FloatArray:
    """The level at the time of each outcome, given those before and after it, beside that of all of them."""
    likelihoods = _likelihoods(expected + level_of_all(expected, labels), labels)
    forward, backward = _filtered(likelihoods), _looking_back(likelihoods)
    together = forward * backward
    together /= together.sum(axis=1, keepdims=True)
    shifts = _mean_shifts(together)
    shifts[np.abs(shifts) < LEAST_SHIFT] = 0.0
    return _for_each_outcome(shifts, len(labels))


def level_of_all(expected: FloatArray, labels: BoolArray, share: FloatArray | float = 1.0) -> float:
    """The one shift with which as many frauds are expected as there were, if a `share` of them is known."""
    shift, most = 0.0, float(np.broadcast_to(share, labels.shape).sum())
    frauds = min(max(float(labels.sum()), 0.5), most - 0.5)
    for _ in range(50):
        p = sigmoid_of(expected + shift)
        step = (frauds - float((share * p).sum())) / max(float((share * p * (1 - p)).sum()), 1e-9)
        shift += min(max(step, -1.0), 1.0)
        if abs(step) < 1e-6:
            break
    return shift


def _mean_shifts(chances: FloatArray) -> FloatArray:
    """The mean shift of each block, from the chance of each shift. BLAS would add in an order of its own."""
    shifts: FloatArray = (chances * SHIFTS).sum(axis=1)
    return shifts


def _for_each_outcome(blocks: FloatArray, count: int) -> FloatArray:
    return np.repeat(blocks, BLOCK)[_padding(count) :]


def _padding(count: int) -> int:
    """The outcomes missing from the first block."""
    return -count % BLOCK


def _likelihoods(expected: FloatArray, labels: BoolArray) -> FloatArray:
    """How likely each block of outcomes is at each shift, at most one."""
    margin = expected[:, None] + SHIFTS
    against = np.where(labels[:, None], -margin, margin)
    padded = np.pad(-softplus_of(against), ((_padding(len(labels)), 0), (0, 0)))
    blocks = padded.reshape(-1, BLOCK, len(SHIFTS)).sum(axis=1)
    return exp_of(blocks - blocks.max(axis=1, keepdims=True))


def _filtered(likelihoods: FloatArray) -> FloatArray:
    """The chance of each shift after each block, given the blocks so far."""
    chance, jumped, found = _PRIOR, (1 - _STAYS) * _PRIOR, np.empty_like(likelihoods)
    for index, likelihood in enumerate(likelihoods):  # in place: most of the time goes into calls
        chance = np.multiply(chance, _STAYS, out=found[index])
        chance += jumped
        chance *= likelihood
        chance /= np.add.reduce(chance)
    return found


def _looking_back(likelihoods: FloatArray) -> FloatArray:
    """How likely the blocks after each one are, at each shift, up to a factor."""
    later, found = np.ones(len(SHIFTS)), np.empty_like(likelihoods)
    for index in range(len(likelihoods) - 1, -1, -1):
        found[index] = later
        seen = likelihoods[index] * later
        later = _STAYS * seen + (1 - _STAYS) * float((_PRIOR * seen).sum())
        later = later / later.max()
    return found
