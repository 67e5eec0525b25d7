"""The level of fraud: how far the latest outcomes have moved away from what the calibration expects.

Weights are fitted from time to time on thousands of cases, but an attack begins and ends within an hour. So the level
is followed separately. It is a hidden state that usually stays where the calibration has it, may jump at any outcome,
and is estimated from the outcomes by Bayes' rule. A quiet stream does not move it, while fifty frauds in a row do.
"""

from __future__ import annotations

import numpy as np

from acefraud.core.arrays import BoolArray, FloatArray
from acefraud.core.calibration import RecentLevel, log_odds, sigmoid
from acefraud.core.events import LevelMoved
from acefraud.core.playbook import Snapshot
from acefraud.learning.batch_scoring import fired_in
from acefraud.learning.options import LearnerOptions
from acefraud.roles.embedded.agent import weights_of
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.rules.induction.fitting import probabilities, strongest
from acefraud.rules.scorecard import score_in
from acefraud.storage.playbook import BulletPlaybook

LEVEL_EVERY = 25
"""Outcomes after which the level is estimated again."""
LATEST = 2_000
"""The outcomes that it is estimated on."""
SHOWN = 100
"""The outcomes that a reason speaks of."""
LEAST_SHIFT = 0.25
"""A smaller shift counts as none."""
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

_LARGEST_EXPONENT = 700.0
_PRIOR = np.where(SHIFTS == 0, UNMOVED, (1 - UNMOVED) / (len(SHIFTS) - 1))
_STAYS = (1 - JUMP) ** BLOCK


def level_moved(cases: LabelledFacts, snapshot: Snapshot, options: LearnerOptions, lag: int = 0) -> LevelMoved | None:
    """The event that moves the level to where the latest outcomes have it; None if it is there."""
    latest = cases.take(slice(max(0, len(cases) - LATEST), None))
    expected, calibration = log_odds_in(latest, snapshot, options), snapshot.calibration(options.node)
    if expected is None or calibration is None:
        return None
    recent, before = recent_level(expected, latest.labels, lag), calibration.recent
    if (recent.shift if recent else 0.0) == (before.shift if before else 0.0):
        return None
    return LevelMoved(node=options.node, recent=recent)


def lag_of(playbook: BulletPlaybook, cases: LabelledFacts, node: str) -> int:
    """How many outcomes arrived between the decisions on the latest cases and their own outcomes.

    Told by the events in between, of which outcomes are as many as usual.
    """
    ids = cases.ids[-LEVEL_EVERY:].tolist()
    made = [record for past in playbook.ledger.transaction_events(ids).values() for record in past.records]
    since = [playbook.seq - record.revision for record in made if record.node == node]
    return round(float(np.median(since)) * playbook.outcomes / playbook.seq) if since else 0


def log_odds_in(cases: LabelledFacts, snapshot: Snapshot, options: LearnerOptions) -> FloatArray | None:
    """The log-odds of fraud that the playbook gives cases, apart from recent levels; None if nothing was learnt yet."""
    calibration = snapshot.calibration(options.node)
    if calibration is None:
        return None
    rules = [(one, one.condition) for one in snapshot.for_node(options.node) if one.condition is not None]
    weights = weights_of([bullet for bullet, _ in rules], calibration.base_rate)
    fired = strongest(fired_in([condition for _, condition in rules], cases.facts), weights, options.n_bullets)
    margin: FloatArray = calibration.intercept + fired @ weights
    if cases.from_texts and calibration.knowledge_scale > 0:
        margin = margin + calibration.knowledge_scale * score_in(cases.facts, calibration.points)
    return margin


def recent_level(expected: FloatArray, labels: BoolArray, lag: int = 0) -> RecentLevel | None:
    """The level after the latest outcomes, given the log-odds expected for each; None if it has not moved.

    `lag` is how many outcomes arrive between a decision and its own.

    >>> quiet, attack = np.arange(300) % 50 == 0, np.arange(100) % 5 < 2
    >>> recent_level(np.full(300, -3.9), quiet) is None
    True
    >>> recent_level(np.full(400, -3.9), np.concatenate([quiet, attack])).shift
    3.5
    """
    if not len(labels):
        return None
    levels = _filtered(_likelihoods(expected, labels)) @ SHIFTS
    if (np.abs(levels) < LEAST_SHIFT).all():
        return None
    at_each = _for_each_outcome(levels, len(labels))
    usual = _overall(expected, labels)
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
        expected=round(float(probabilities(expected[shown]).sum()), 2),
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
    same, other = probabilities(later + known[moved]), probabilities(later + usual)
    mixed = same[:, None] + JUMPED * (other - same)[:, None]
    likely = np.log(np.clip(np.where(truth[:, None], mixed, 1 - mixed), 1e-9, None)).sum(axis=0)
    return float(JUMPED[np.argmax(likely / lag - FEW_JUMPS * JUMPED)])


def level_at(expected: FloatArray, labels: BoolArray) -> FloatArray:
    """The level at the time of each outcome, given those before and after it, beside that of all of them."""
    likelihoods = _likelihoods(expected + _overall(expected, labels), labels)
    forward, backward = _filtered(likelihoods), _looking_back(likelihoods)
    together = forward * backward
    together /= together.sum(axis=1, keepdims=True)
    shifts: FloatArray = together @ SHIFTS
    shifts[np.abs(shifts) < LEAST_SHIFT] = 0.0
    return _for_each_outcome(shifts, len(labels))


def _overall(expected: FloatArray, labels: BoolArray) -> float:
    """The one shift with which as many frauds are expected as there were."""
    shift, frauds = 0.0, min(max(float(labels.sum()), 0.5), len(labels) - 0.5)
    for _ in range(50):
        p = probabilities(expected + shift)
        step = (frauds - float(p.sum())) / max(float((p * (1 - p)).sum()), 1e-9)
        shift += min(max(step, -1.0), 1.0)
        if abs(step) < 1e-6:
            break
    return shift


def _for_each_outcome(blocks: FloatArray, count: int) -> FloatArray:
    each: FloatArray = np.repeat(blocks, BLOCK)[_padding(count) :]
    return each


def _padding(count: int) -> int:
    """The outcomes missing from the first block."""
    return -count % BLOCK


def _likelihoods(expected: FloatArray, labels: BoolArray) -> FloatArray:
    """How likely each block of outcomes is at each shift, at most one."""
    margin = expected[:, None] + SHIFTS
    against = np.where(labels[:, None], -margin, margin)
    each = -np.log1p(np.exp(np.minimum(against, _LARGEST_EXPONENT)))
    padded = np.pad(each, ((_padding(len(labels)), 0), (0, 0)))
    blocks = padded.reshape(-1, BLOCK, len(SHIFTS)).sum(axis=1)
    likelihoods: FloatArray = np.exp(blocks - blocks.max(axis=1, keepdims=True))
    return likelihoods


def _filtered(likelihoods: FloatArray) -> FloatArray:
    """The chance of each shift after each block, given the blocks so far."""
    chance, found = _PRIOR, np.empty_like(likelihoods)
    for place, likelihood in enumerate(likelihoods):
        chance = (_STAYS * chance + (1 - _STAYS) * _PRIOR) * likelihood
        found[place] = chance = chance / chance.sum()
    return found


def _looking_back(likelihoods: FloatArray) -> FloatArray:
    """How likely the blocks after each one are, at each shift, up to a factor."""
    later, found = np.ones(len(SHIFTS)), np.empty_like(likelihoods)
    for place in range(len(likelihoods) - 1, -1, -1):
        found[place] = later
        seen = likelihoods[place] * later
        later = _STAYS * seen + (1 - _STAYS) * float(_PRIOR @ seen)
        later = later / later.max()
    return found
