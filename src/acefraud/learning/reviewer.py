"""Learns from outcomes and histories: asks a model if one reflects, plans a review, and writes it.

A model must be asked first, which takes time and may fail. The plan itself is then computed from what the model said,
the remembered cases and the current playbook. If somebody else changes the playbook meanwhile, the plan is computed
again without asking again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from functools import partial
from threading import RLock

import numpy as np

from acefraud.core.bullet import NewBullet, Source, Status
from acefraud.core.events import EventPayload, LevelHeld, LevelMoved, PatternsChanged, Reread, Reviewed
from acefraud.core.ledger import Precondition, RememberedCase
from acefraud.core.playbook import LearningState, Snapshot
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.curation.curator import Curator
from acefraud.engine.models import FittedOdds
from acefraud.engine.options import LearnerOptions
from acefraud.errors import AcefraudError, StoreConflict, StoreError, StoreUnavailable
from acefraud.facts.extraction import READER, facts_of
from acefraud.learning import level
from acefraud.learning.credits import HeardOutcome
from acefraud.learning.level import level_at, level_of_all
from acefraud.learning.model_lessons import ModelLessons, ReflectionPolicy
from acefraud.learning.outcome_feeds import reaches_most
from acefraud.learning.review import ReviewPlan, StatusMove, apply, refit, review, watch
from acefraud.learning.training import Training
from acefraud.roles.embedded.case_memory import CaseMemory, LabelledFacts
from acefraud.roles.proposals import Admission, AdmissionStatus
from acefraud.roles.reflector import Reflector
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.change_log import what_happened
from acefraud.storage.changes import retry_on_conflict
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arrays import BoolArray, FloatArray
from acefraud.support.exact_math import log, sigmoid_of, softplus_of

_MANY_OUTCOMES = 500
"""Outcomes after which half as many cases of the rarer kind are enough."""
_SLOWEST_FROM = 1_000
"""Remembered cases at or above which a review waits for the largest share of new ones."""
FEWER_REPORTS = 5
"""Outcomes after which the level is estimated again if only frauds are reported."""
ATTEMPTS = 5
"""How often learning is tried because somebody else changed the playbook meanwhile."""
Admissions = Sequence[Admission]
"""What a model proposed and the remembered cases do not refute; empty if the embedded engine reflects."""


class RememberedCases:
    """Keeps a case memory up with the ledger of a playbook.

    A cursor marks what it has seen, so catching up costs only what is new.
    """

    def __init__(self, playbook: BulletPlaybook, memory: CaseMemory, node: str) -> None:
        self._playbook = playbook
        self._memory = memory
        self._node = node
        self._cursor = 0
        self._rereads = 0
        self._catching_up = RLock()

    def catch_up(self) -> LabelledFacts:
        """The latest cases in the ledger, with their recorded facts."""
        with self._catching_up:
            rereads = self._playbook.learning(self._node).rereads
            if rereads != self._rereads:
                self._memory.clear()
                self._cursor, self._rereads = 0, rereads
            rows = self._playbook.ledger.remembered(self._memory.capacity, after=self._cursor)
            if rows:
                self._memory.add(self._labelled(rows))
                self._cursor = rows[-1].seq
            return self._memory.cases

    def since_change(self) -> LabelledFacts:
        """The latest cases, from the time on when fraud began to look different if it did."""
        cases, since = self.catch_up(), self._playbook.learning(self._node).since_change
        if since is None:
            return cases
        return replace(cases.take(slice(max(0, len(cases) - since), None)), after_change=True)

    def _labelled(self, rows: Sequence[RememberedCase]) -> LabelledFacts:
        unread = {row.id for row in rows if not row.reader}  # in files of an earlier schema
        read = self._read(unread) if unread else {}
        return LabelledFacts(
            np.array([row.id for row in rows], dtype=object),
            FactTable([read.get(row.id, row.facts) for row in rows]),
            np.array([row.is_fraud for row in rows], dtype=np.bool_),
            np.array([row.time for row in rows], dtype=np.int64),
            any(row.has_text for row in rows),
        )

    def reread(self, *, everything: bool) -> Reread:
        """Read texts again that another version of the reader has read, or all of them."""
        kept = self._playbook.ledger.remembered(self._memory.capacity)
        old = {row.id: dict(row.facts) for row in kept if row.has_text and (everything or row.reader != READER)}
        new = self._read(old)
        changed = sum(new[name] != facts for name, facts in old.items())
        done = Reread(node=self._node, reader=READER, cases=len(old), changed=changed)
        self._playbook.record([done])
        return done

    def _read(self, ids: Collection[str]) -> dict[str, dict[str, FactValue]]:
        """The facts of some cases, read from their texts again and stored."""
        known = self._playbook.ledger.known_cases(ids)
        read = {name: facts_of(each.case.transaction).facts for name, each in known.items()}
        self._playbook.ledger.replace_facts(read, READER)
        return read


LOOK_EVERY = 50
"""Outcomes after which it is tested whether fraud looks different..."""
LOOK_BACK = 1_500
"""...and those that are looked at."""
LEAST_LEARNT = 500
"""Cases that the playbook must have learnt from: one of fewer may have been wrong all along."""
CERTAIN = 10.0
"""The logarithm of how many times likelier a change must make the outcomes."""
USUAL = (1.0, 0.8)
"""Slopes of the playbook's log-odds while it holds. On new cases they are a little too far from zero..."""
CHANGED = (0.4, 0.0, -0.5)
"""...and slopes after a change: half as telling, telling nothing, telling the opposite."""
LEAST_FRAUDS, LEAST_CASES = 8, 20
"""What a stretch must have, and what comes before it, before a fact can be said to tell otherwise."""
COMMON = 0.05
"""The share of cases that must have a word, at least."""


def pattern_change(
    expected: FloatArray, labels: BoolArray, facts: FactTable, node: str = "fraud_detection"
) -> PatternsChanged | None:
    """The change since which the latest outcomes cannot be explained as those before; None if there was none.

    `expected` are the log-odds that the playbook gives the cases, apart from recent levels.

    >>> expected, labels = np.tile([-4.0, -4.0, -4.0, 1.0], 100), np.tile([False, False, False, True], 100)
    >>> pattern_change(expected, labels, FactTable([{}] * 400)) is None
    True
    >>> labels[-60:] = np.tile([True, False, False, False], 15)
    >>> pattern_change(expected, labels, FactTable([{}] * 400)).in_words
    'in the latest 60 outcomes, 15 of them fraud, the playbook no longer tells fraud as it did'
    """
    columns, margin = _columns(facts), expected + level_of_all(expected, labels)
    if max(_by_slope(expected, labels), _by_fact(margin, labels, columns))[0] < CERTAIN:
        return None
    level = level_at(margin, labels)  # costs more, so it comes last
    gain, cases, fact = max(_by_slope(expected, labels, level), _by_fact(margin + level, labels, columns))
    frauds = int(labels[len(labels) - cases :].sum())
    return None if gain < CERTAIN else PatternsChanged(node=node, cases=cases, frauds=frauds, fact=fact)


def _by_slope(expected: FloatArray, labels: BoolArray, level: FloatArray | float = 0.0) -> tuple[float, int, str]:
    """By how much a stretch is likelier if the log-odds have another slope there, at most, and how long it is."""
    likely = {}
    for slope in (*USUAL, *CHANGED):
        margin = slope * expected + level
        margin = margin + level_of_all(margin, labels)
        likely[slope] = np.cumsum(-softplus_of(np.where(labels, -margin, margin))[::-1])
    usual = np.max([likely[slope] for slope in USUAL], axis=0)
    gains = np.max([likely[slope] for slope in CHANGED], axis=0) - usual - log(len(CHANGED))
    return float(gains.max()), int(gains.argmax()) + 1, ""


def _by_fact(margin: FloatArray, labels: BoolArray, columns: dict[str, FloatArray]) -> tuple[float, int, str]:
    """How unlikely it is that a fact tells as much about the outcomes of a stretch, beyond the playbook, as before."""
    frauds = np.cumsum(labels[::-1])
    stretches = np.flatnonzero(np.minimum(frauds, frauds[-1] - frauds) >= LEAST_FRAUDS)
    stretches = stretches[(stretches >= LEAST_CASES) & (stretches < len(labels) - LEAST_CASES)]
    if not columns or not len(stretches):
        return 0.0, 0, ""
    x, p = np.column_stack(list(columns.values()))[::-1], sigmoid_of(margin)[::-1, None]
    error, variance, squared = labels[::-1, None] - p, p * (1 - p), np.square(x)
    weights = (error, variance, np.square(error))
    sums = [np.cumsum(each, axis=0) for w in weights for each in (w, w * x, w * squared)]
    some = slice(int(stretches[0]), int(stretches[-1]) + 1)  # they follow one another, for frauds only become more
    effect, spread = _effect([each[some] for each in sums])
    before, spread_before = _effect([each[-1] - each[some] for each in sums])
    gains = np.square(effect - before) / (spread + spread_before) / 2 - log(len(columns))
    row, column = np.unravel_index(gains.argmax(), gains.shape)
    return float(gains[row, column]), int(stretches[row]) + 1, list(columns)[column].partition("=")[0]


def _effect(sums: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """What facts add to the log-odds, by one Newton step that leaves the level free, and its squared standard error."""
    error, error_x, _, variance, variance_x, variance_xx, square, square_x, square_xx = sums
    centre = variance_x / np.maximum(variance, 1e-9)  # 0 where the playbook is certain of every case
    information = np.maximum(variance_xx - variance_x * centre, 1e-9)
    seen = square_xx - 2 * centre * square_x + np.square(centre) * square  # larger if the playbook is too sure
    return (error_x - error * centre) / information, np.maximum(seen, information) / np.square(information)


def _columns(facts: FactTable) -> dict[str, FloatArray]:
    """Facts as numbers around zero: ranks, flags, and whether a case has each common word."""
    columns = {name: flags.astype(np.float64) - 0.5 for name, flags in facts.columns.flags.items()}
    for name, x in facts.columns.numbers.items():
        columns[name] = np.searchsorted(np.sort(x), x) / len(x) - 0.5
    for name, (codes, words) in facts.columns.categories.items():
        shares = np.bincount(codes[codes >= 0], minlength=len(words)) / len(codes)
        columns |= {f"{name}={code}": (codes == code) - 0.5 for code in np.flatnonzero(shares >= COMMON).tolist()}
    return columns


class Depth(StrEnum):
    """How much is learnt at once."""

    PART = "part"
    """What is urgent: watching recent records, or a call about failures of one kind."""
    WHOLE = "whole"
    """Everything: a search through all remembered cases, or a call about every waiting failure."""


def review_due(state: LearningState, options: LearnerOptions, least_cases: int) -> bool:
    """Whether enough outcomes have arrived since the last review, and there are at least `least_cases` cases.

    Cases of the rarer kind, usually frauds, teach the most. A review needs `review_least` new ones, or `review_share`
    of those remembered. Its cost grows with the cases remembered, so it also waits until up to a quarter of all cases
    are new. After `review_at_last` outcomes it is due in any case.
    """
    new, cases = state.unreviewed, state.remembered.cases + state.unreviewed.cases
    frauds = state.remembered.frauds + new.frauds
    rarer, new_rarer = (frauds, new.frauds) if 2 * frauds <= cases else (cases - frauds, new.cases - new.frauds)
    if cases < least_cases:
        return False
    least = options.review_least if new.cases < _MANY_OUTCOMES else options.review_least / 2
    enough = new_rarer >= max(least, options.review_share * rarer)
    waited_long_enough = new.cases >= 0.25 * cases * min(1.0, cases / _SLOWEST_FROM)
    return (enough and waited_long_enough) or new.cases >= options.review_at_last


class Reviewer:
    """Reviews one playbook, with the rules that the embedded engine finds or with what a model says of failures."""

    def __init__(
        self,
        playbook: BulletPlaybook,
        reflector: Reflector,
        curator: Curator,
        options: LearnerOptions,
        policy: ReflectionPolicy | None,
    ) -> None:
        self.playbook = playbook
        self.options = options
        self.cases = RememberedCases(playbook, reflector.memory, options.node)
        self._latest = level.LatestLogOdds(options)
        self.odds = FittedOdds(playbook, options)
        self.lessons: ModelLessons | None = None
        """What is learnt by asking a model; None if the embedded engine reflects. A model does not search for rules."""
        if reflector.proposals is not None:
            self.lessons = ModelLessons(reflector.proposals, policy=policy, seed=reflector.engine.seed)
        self._engine = reflector.engine
        self._curator = curator
        self._announced: list[str] = []
        """What moved many verdicts, or was held, and was not told yet."""

    def announce(self, payload: EventPayload) -> None:
        """Keep what happened, in words, for whoever brought the outcomes."""
        self._announced.append(what_happened(payload))

    def take_announced(self) -> tuple[str, ...]:
        """What happened since this was asked last."""
        told, self._announced = tuple(self._announced), []
        return told

    # --- when to learn ---

    def _due(self, state: LearningState | None = None) -> Depth | None:
        """How much to learn now, or in another state: a review after enough outcomes, recent records in between.

        A model is asked about everything after so many outcomes, about failures of one kind once there are enough.
        """
        state = state or self.playbook.learning(self.options.node)
        if self.lessons is not None:
            if state.unwatched >= self.options.reflect_every:
                return Depth.WHOLE
            return Depth.PART if self.lessons.ready else None
        if review_due(state, self.options, self._engine.options.induction.least_cases):
            return Depth.WHOLE
        return Depth.PART if state.unwatched >= self.options.watch_every else None

    @property
    def is_due(self) -> bool:
        """Whether something is to be learnt before the next outcome is heard."""
        return self._due() is not None

    @property
    def ends_at_a_level(self) -> bool:
        """Whether the level is to be followed after the outcomes so far."""
        return self.playbook.outcomes > 0 and self.playbook.outcomes % level.LEVEL_EVERY == 0

    @property
    def room(self) -> int:
        """How many outcomes may be recorded, at most, before it is time to learn."""
        return 1 if self.lessons else level.LEVEL_EVERY - self.playbook.outcomes % level.LEVEL_EVERY

    def before_due(self, credited: Sequence[HeardOutcome]) -> int:
        """How many of some outcomes to record before it is time to learn, as if they were heard one by one."""
        state = self.playbook.learning(self.options.node)
        for count, heard in enumerate(credited, 1):
            if not heard.teaches:
                continue
            state = state.with_cases(1, int(heard.outcome.is_fraud))
            has_odds = heard.decision is not None and heard.decision.odds is not None
            if has_odds or self._due(state) is not None:
                return count
        return len(credited)

    async def learn_if_due(self, credited: Sequence[HeardOutcome]) -> Reviewed | None:
        """Learn from outcomes if it is time to. They are recorded by now, so errors are reported, not raised."""
        recorded = [heard for heard in credited if heard.event is not None]
        if not recorded:
            return None
        count = self.playbook.outcomes
        every = FEWER_REPORTS if self.playbook.feed(self.options.node).defers else level.LEVEL_EVERY
        follow_level = count // every > (count - len(recorded)) // every
        look = count // LOOK_EVERY > (count - len(recorded)) // LOOK_EVERY
        return await self.learn([heard for heard in recorded if heard.teaches], follow_level, look_for_change=look)

    async def resume(self) -> Reviewed | None:
        """Learn what is due already, as after a process that ended before it came to it.

        That the level was followed is no event if it stayed. Following it again changes nothing: it is estimated from
        the cases alone.
        """
        look = self.ends_at_a_level and self.playbook.outcomes % LOOK_EVERY == 0
        return await self.learn((), self.ends_at_a_level, look_for_change=look)

    async def learn(
        self, new: Sequence[HeardOutcome] = (), follow_level: bool = False, *, look_for_change: bool = False
    ) -> Reviewed | None:
        """Learn from new outcomes that teach something, and from those before, if it is time to."""
        node = self.options.node
        try:
            self.odds.hear([(heard.decision, heard.outcome.is_fraud) for heard in new])
            if self.lessons is not None:
                self.lessons.hear(new)
            if not self.is_due and not follow_level:
                return None
            with self.playbook.ledger.claim(f"learning {node}") as mine:
                if not mine:  # somebody else is learning from these outcomes; what is left will be due again
                    return None
                if look_for_change:
                    self._notice_change()
                depth = self._due()
                if depth is not None:
                    return await self.ask_and_review(depth)
                self._follow_level()
                return None
        except AcefraudError as problem:
            given_up = Reviewed(node=node, whole=True, cases=0, frauds=0, declined=str(problem))
            if not isinstance(problem, StoreUnavailable):  # nobody knows what was written then, and it is due again
                with suppress(StoreError):  # the caller is told even if it cannot be written
                    self.playbook.record([given_up])
            return given_up

    # --- the level, and what fraud looks like ---

    def _notice_change(self) -> None:
        """Let only the latest outcomes teach if they show that fraud looks different.

        Only a complete feed shows that: elsewhere it may be the way of hearing of frauds that changed.
        """
        self.playbook.refresh()
        node, seen, snapshot = self.options.node, self.playbook.seq, self.playbook.snapshot()
        calibration, since = snapshot.calibration(node), self.playbook.learning(node).since_change
        learnt = 0 if calibration is None else calibration.cases
        unlearnt = since is not None and learnt > since  # the latest change still waits for a review
        if unlearnt or learnt < LEAST_LEARNT or not self.playbook.feed(node).is_complete:
            return
        cases = self.cases.since_change()
        latest = cases.take(slice(max(0, len(cases) - LOOK_BACK), None))
        expected = self._latest.of(latest, snapshot)
        changed = None if expected is None else pattern_change(expected, latest.labels, latest.facts, node)
        if changed is not None and reaches_most(self.playbook, node):
            with suppress(StoreConflict):  # somebody changed the playbook: it is tested again later
                self.playbook.record([changed], preconditions=[Precondition.no_edits_since(seen)])
                self.announce(changed)

    def _follow_level(self) -> None:
        """Move the level of the calibration if the latest outcomes ask for it."""
        self.playbook.refresh()
        seen = self.playbook.seq
        step = self._level_step(self.cases.since_change())
        if step is not None:
            with suppress(StoreConflict):  # somebody changed the playbook: the level is followed from there
                self.playbook.record([step], preconditions=[Precondition.no_edits_since(seen)])
                self.announce(step)

    def _level_step(self, cases: LabelledFacts) -> LevelMoved | LevelHeld | None:
        """What to do about the level of fraud; nothing as long as it cannot be told how outcomes arrive."""
        node, found = self.options.node, self._level(cases)
        calibration = self.playbook.snapshot().calibration(node)
        if found is None or calibration is None:
            return None
        recent, expected = found
        fair = self.playbook.feed(node).is_complete and (recent is None or reaches_most(self.playbook, node))
        return level.level_change(recent, expected, calibration, fair=fair, node=node, outcomes=self.playbook.outcomes)

    def _level(self, cases: LabelledFacts) -> level.Told | None:
        """Where outcomes have the level, and the log-odds that it is added to; None if that cannot be told.

        Labelled cases tell it where every decision gets an outcome, also by silence. Reports on decisions that are too
        young for that come first, if they tell anything.
        """
        snapshot, feed = self.playbook.snapshot(), self.playbook.feed(self.options.node)
        if snapshot.calibration(self.options.node) is None or not feed.follow_level:
            return None
        told = level.reported_level(self.playbook, snapshot, self.options) if feed.defers else None
        if (told and told[0]) or not (feed.is_complete or feed.silence_days):
            return told
        latest = cases.take(slice(max(0, len(cases) - level.LATEST), None))
        expected = self._latest.of(latest, snapshot)
        if expected is None:
            return None
        likelihoods = self._latest.likelihoods(latest.labels)
        lag = level.lag_of(self.playbook, cases, self.options.node)
        return level.recent_level(expected, latest.labels, lag, likelihoods=likelihoods), expected

    # --- reviews ---

    async def ask_and_review(self, depth: Depth) -> Reviewed | None:
        """Ask a model, if one reflects, and review the playbook with what it says."""
        self.cases.since_change()
        if self.lessons is None:
            return self.review(depth)
        known = self.playbook.snapshot().for_node(self.options.node)
        admitted = await self.lessons.lessons(known, all_waiting=depth is Depth.WHOLE)
        return self.review(depth, admitted, forced=True)  # what a model was asked for is not dropped

    def review(self, depth: Depth, admitted: Admissions = (), *, forced: bool = False) -> Reviewed | None:
        """One review, in the ledger even if it had to be given up; None if it is no longer due."""
        try:
            return retry_on_conflict(partial(self._review, depth, admitted, forced=forced), ATTEMPTS)
        except StoreConflict as conflict:
            why = f"{len(admitted)} lessons {conflict}" if admitted else str(conflict)
            cases, node = self.cases.since_change(), self.options.node
            given_up = Reviewed(node=node, whole=False, cases=len(cases), frauds=cases.frauds, declined=why)
            self.playbook.record([given_up])
            return given_up

    def _review(self, depth: Depth, admitted: Admissions, *, forced: bool) -> Reviewed | None:
        self.playbook.refresh()
        state = self.playbook.learning(self.options.node)
        due = depth if forced else self._due(state)
        if due is None:  # another learner on this playbook was faster
            return None
        seen, snapshot, cases = self.playbook.seq, self.playbook.snapshot(), self.cases.since_change()
        feed = self.playbook.feed(self.options.node)
        sees = feed.declines_pass or not feed.defers
        if self.lessons is None and due is Depth.WHOLE:
            plan = review(cases, snapshot, self._engine, self.options, turn=state.reviews, sees_declines=sees)
        else:
            plan = watch(cases, snapshot, self.options, sees_declines=sees)
        if self.lessons is not None:
            plan = self._with_admitted(plan, snapshot, admitted, cases, Source.ONLINE)
        with self.playbook.unit_of_work(why=f"learnt from the latest {plan.cases:,} outcomes", since=seen):
            reviewed = apply(plan, self.playbook, self._curator, self._engine, self.options)
            if feed.is_complete:
                step = self._level_step(cases)
                steps = [] if step is None else [step]
            else:
                told = self._level(cases) if feed.silence_days else None
                steps = level.after_review(self.playbook, snapshot, cases, self.options, told)
            self.playbook.record([*steps, reviewed])
        for moved in steps:
            self.announce(moved)
        return reviewed

    def study(self, training: Training, admitted: Admissions, selector: HybridSelector) -> list[str]:
        """Learn from a whole labelled history, and from what a model said of it. Returns the ids of the new bullets."""
        return retry_on_conflict(partial(self._study, training, admitted, selector), ATTEMPTS)

    def _study(self, training: Training, admitted: Admissions, selector: HybridSelector) -> list[str]:
        self.playbook.refresh()
        seen, snapshot, cases = self.playbook.seq, self.playbook.snapshot(), training.facts
        if self.lessons is None:
            mapping, progress = training.trained.mapping, training.progress
            plan = review(cases, snapshot, self._engine, self.options, mapping=mapping, progress=progress)
        else:
            plan, known = ReviewPlan(len(cases), cases.frauds), self._engine.memory.cases
            plan = self._with_admitted(plan, snapshot, admitted, known, Source.OFFLINE)
        with self.playbook.unit_of_work(why=f"learnt from {training.trained.rows:,} labelled cases", since=seen):
            training.remember(self.playbook)
            added = apply(plan, self.playbook, self._curator, self._engine, self.options).added
            training.set_threshold(self.playbook, selector, self.options)
        return list(added)

    def _with_admitted(
        self, plan: ReviewPlan, snapshot: Snapshot, admitted: Admissions, cases: LabelledFacts, source: Source
    ) -> ReviewPlan:
        """Add what a model said, measure what could not be measured before, and have all weights fitted again."""
        assert self.lessons is not None
        moves, renewed = dict(plan.moves), dict[str, NewBullet]()
        for bullet in snapshot.for_node(self.options.node):
            ruling = self.lessons.recheck(bullet)
            if ruling is None:
                continue
            refused = ruling.evidence is None or ruling.status is AdmissionStatus.REFUSED
            moves[bullet.id] = StatusMove(Status.RETIRED if refused else Status.ACTIVE, ruling.reason)
            if not refused:
                measured = ruling.new_bullet(source)
                renewed[bullet.id] = replace(measured, problem_types=bullet.problem_types, why=ruling.reason)
        new = tuple(ruling.new_bullet(source) for ruling in admitted)
        return replace(plan, moves=moves, renewed=renewed, new=new, fit_on=cases)

    def refit(self) -> None:
        """Fit the weights of bullets with a condition, and the calibration, on the remembered cases."""
        fit = partial(refit, self.playbook, self._engine, self.cases.since_change(), self.options)
        self.playbook.run_unit_of_work(fit, why="weights fitted anew")
