"""The loop on one playbook. Deciding never changes the playbook; learning never decides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Unpack

import numpy as np

from acefraud.core.bullet import Bullet, BulletDetails, Evidence, NewBullet
from acefraud.core.condition import Condition
from acefraud.core.decision import Decision
from acefraud.core.events import THE_ENGINE, EventPayload, Reread, Reviewed, Trained
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import Case
from acefraud.curation.curator import Curator
from acefraud.datasets import SchemaMapping
from acefraud.display.short_repr import quoted
from acefraud.engine.options import LearnerOptions
from acefraud.engine.parts import PartedHistory
from acefraud.errors import ConfigurationError
from acefraud.learning.hearing import Hearing
from acefraud.learning.model_lessons import Proposed, ReflectionPolicy
from acefraud.learning.outcomes import OutcomeRecorder
from acefraud.learning.preview import Preview, cases_for, preview, rule_remarks
from acefraud.learning.review import apply, review
from acefraud.learning.reviewer import Depth, Reviewer
from acefraud.learning.training import HistoryInput, Training, TrainingOptions, as_history, in_parts, written_mapping
from acefraud.llm.synchronous import blocking_twin
from acefraud.roles.agent import SimpleFraudAgent
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.roles.judge import SimpleJudge
from acefraud.roles.proposals import Admission
from acefraud.roles.protocols import Agent, Judge, OwnRole, name_of
from acefraud.roles.reflector import Reflector
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.changes import plan_addition
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arguments import check_has, check_type
from acefraud.support.exact_math import sigmoid

_HELD_OUT: Final = 3
"""Parts of labelled cases, each decided by an engine that has not learnt from it."""


class Learner(Hearing):
    """Decides transactions with a playbook, and turns outcomes into a better one.

    A transaction is a `Transaction`, a dict such as {"amount": 250, "country": "FR"}, or a text. Every method that has
    to be awaited has a twin that blocks instead: `learner.decide_sync(...)` is `await learner.decide(...)`.

    It works on column tables; one transaction is a table of one row. What it remembers, and when it reviews, follows
    from the ledger alone. So several learners on one file learn from all outcomes.

    >>> from acefraud import BulletPlaybook, Outcome, Transaction
    >>> playbook = BulletPlaybook()
    >>> bullet_id = playbook.add_bullet("A new device and a VPN: decline")
    >>> learner = Learner(playbook)
    >>> order = Transaction(id="t1", facts={"amount": 900, "vpn": True, "new_device": True})
    >>> decision = learner.decide_sync(order)
    >>> str(decision.verdict), bullet_id in decision.cited
    ('DECLINE', True)
    >>> heard = learner.hear_sync(Outcome(transaction_id="t1", is_fraud=True))
    >>> heard.judgement.is_correct, playbook.get_bullet(bullet_id).helpful_count
    (True, 1)
    """

    def __init__(
        self,
        playbook: BulletPlaybook,
        *,
        agent: Agent | OwnRole | None = None,
        judge: Judge | OwnRole | None = None,
        reflector: Reflector | OwnRole | None = None,
        curator: Curator | None = None,
        selector: HybridSelector | None = None,
        policy: ReflectionPolicy | None = None,
        options: LearnerOptions | None = None,
    ) -> None:
        """`policy` says which outcomes are worth a call, if the reflector is on a model."""
        check_type("playbook", playbook, BulletPlaybook, "a BulletPlaybook, such as open_playbook(path)")
        for name, value, kind in (
            ("curator", curator, Curator),
            ("selector", selector, HybridSelector),
            ("policy", policy, ReflectionPolicy),
            ("options", options, LearnerOptions),
        ):
            if value is not None:
                check_type(name, value, kind, f"a {kind.__name__}", ConfigurationError)
        options = options or LearnerOptions()
        agent = SimpleFraudAgent() if agent is None else agent
        self.judge = SimpleJudge() if judge is None else judge
        own = Reflector(seed=options.seed) if reflector is None else reflector
        check_has("agent", agent, "an object that plays the agent", "assess", "analyze")
        check_has("judge", self.judge, "an object that plays the judge", "rule", "judge")
        check_has("reflector", own, "a Reflector", "reflect")
        self.reflector = own if hasattr(own, "proposals") else Reflector(model=own, seed=options.seed)
        self.curator = Curator() if curator is None else curator
        super().__init__(playbook, agent, selector or HybridSelector(seed=options.seed), options)
        self._reviewer = Reviewer(playbook, self.reflector, self.curator, options, policy)
        self._recorder = OutcomeRecorder(playbook, self.judge, self._reviewer, options.node)

    def __repr__(self) -> str:
        roles = f"agent={quoted(name_of(self.agent), 40)}, reflector={quoted(self.reflector.model, 40)}"
        return f"Learner({self.playbook!r}, {roles})"

    # --- whole histories ---

    def study(self, cases: HistoryInput, **options: Unpack[TrainingOptions]) -> list[str]:
        """Learn from a whole labelled history at once. Returns the ids of the new bullets.

        The history is a sequence of cases, a `Dataset` or a data frame (pandas, polars, pyarrow). If its mapping asks
        for a history of entities, the cases get facts from it and stay remembered, together with the transactions that
        are still `waiting` for their label. Without a `threshold` rule the threshold stays. The other options are the
        name of the `dataset`, its `mapping` and `progress`, which is called with the share done. Use `train` with a
        reflector on a model, which has to be awaited.

        A data frame of Dask is learnt from in parts, on the Dask client in use or, without one, one partition at a time
        in this process. The result is that of the same rows in one piece, if the mapping leaves nothing to guess:
        guesses come from the first partition.

        Raises InputError if the history is empty or has one label only, which teaches nothing; with
        ``both_labels=False`` it is remembered all the same. If it has both labels but too few cases to learn from, the
        result is empty.

        >>> from acefraud import BulletPlaybook, Case, Learner, Transaction
        >>> history = [
        ...     Case(transaction=Transaction(id=f"t{n}", facts={"vpn": n % 3 == 0, "amount": n}), is_fraud=n % 3 == 0)
        ...     for n in range(60)
        ... ]
        >>> playbook = BulletPlaybook()
        >>> learnt = Learner(playbook).study(history)
        >>> playbook.get_bullet(learnt[0]).content
        'A VPN or proxy: 16 of 16 past cases were fraud (100%, 51-100%), against 33% of all'
        """
        if self._reviewer.lessons is not None:
            raise ConfigurationError(
                f"the reflector is {self.reflector.model}, which has to be waited for: use `await learner.train(...)`"
            )
        with in_parts(cases, options) as history:
            return self._reviewer.study(self._training(history, options), (), self.selector)

    async def train(self, cases: HistoryInput, **options: Unpack[TrainingOptions]) -> list[str]:
        """Learn from a labelled history with any reflector. Options and result are those of `study`."""
        with in_parts(cases, options) as history:
            training, admitted, lessons = self._training(history, options), list[Admission](), self._reviewer.lessons
            if lessons is not None:
                self.remembered()  # what a model says is measured on all of it
                admitted = await lessons.study(training, self.playbook.snapshot(), self.selector, self.options)
            return self._reviewer.study(training, admitted, self.selector)

    def _training(self, cases: HistoryInput, options: TrainingOptions) -> Training:
        if isinstance(cases, PartedHistory):
            if self._reviewer.lessons is not None:
                raise ConfigurationError(
                    f"the reflector is {self.reflector.model}, which learns from a history in one piece"
                )
            return Training.of_parts(cases, self.playbook, self.reflector, self.options.node, **options)
        given, known = as_history(cases, options)
        return Training.of(given, self.playbook, self.reflector, self.options.node, **known)

    async def scale_odds(self, cases: Sequence[Case], base_rate: float | None = None) -> None:
        """Fit what the odds of the model mean, on labelled cases decided as they would be now.

        If its opinion is added to the embedded engine's, each third of the cases is decided by an engine that has not
        learnt from it. If the cases were drawn by their label, `base_rate` says how common fraud really is.
        """
        model = getattr(self.agent, "without_tier", self.agent)
        count = _HELD_OUT if hasattr(model, "with_weights") else 1
        parts = [cases[first::count] for first in range(count)]
        decided: list[tuple[Decision, bool]] = []
        for part in filter(len, parts):
            snapshot = self._learnt_without(part) if count > 1 else self.playbook.snapshot()
            decisions = await self._decider.decide([case.transaction for case in part], snapshot, model)
            decided += zip(decisions, (case.is_fraud for case in part), strict=True)
        self._reviewer.odds.fit(decided, base_rate)

    def _learnt_without(self, cases: Sequence[Case]) -> Snapshot:
        """What the remembered cases but these teach; the playbook as it is if it remembers none of these."""
        known, told = self.remembered(), {case.transaction.id for case in cases}
        others = np.array([name not in told for name in known.ids.tolist()], dtype=np.bool_)
        if others.all():
            return self.playbook.snapshot()
        book, engine = BulletPlaybook(), self.reflector.engine
        plan = review(known.take(others), book.snapshot(), engine, self.options)
        with book.unit_of_work():
            apply(plan, book, self.curator, engine, self.options)
        return book.snapshot()

    def use_mapping(self, mapping: SchemaMapping | Path | str) -> None:
        """Read records and data frames by this mapping, its history included, before the first outcome or training.

        A training brings its own. Raises ConfigurationError if there was one, or an outcome.

        >>> from acefraud import BulletPlaybook, Learner, SchemaMapping
        >>> learner = Learner(BulletPlaybook())
        >>> learner.use_mapping(SchemaMapping(amount="TX_AMOUNT", categories=("KIND",)))
        >>> learner.facts_of([{"TX_AMOUNT": 250, "KIND": 7}]).rows()
        [{'KIND': '7', 'amount': 250.0}]
        """
        self.playbook.refresh()
        if self.playbook.outcomes or self.playbook.snapshot().mapping:
            raise ConfigurationError("the mapping is set before the first outcome or training; this playbook has one")
        written = written_mapping(mapping)
        self.playbook.record([Trained(node=self.options.node, dataset="", rows=0, frauds=0, mapping=written)])

    # --- reviews ---

    def review(self) -> Reviewed:
        """Review the playbook now: watch, retire, revive, induce, fit, calibrate. Returns what was done.

        A model that reflects is not asked: `finish_lessons` does that.
        """
        done = self._reviewer.review(Depth.WHOLE, forced=True)
        assert done is not None, "a forced review is always due"
        return done

    def refit(self) -> None:
        """Fit the weights of bullets with a condition, and the calibration, on the remembered cases."""
        self._reviewer.refit()

    async def finish_lessons(self) -> list[str]:
        """Reflect on the failures that still wait for others of their kind. Returns the ids of the new bullets."""
        if self._reviewer.lessons is None:
            return []
        reviewed = await self._reviewer.ask_and_review(Depth.WHOLE)
        return list(reviewed.added) if reviewed else []

    @property
    def proposed(self) -> Proposed | None:
        """What a model that reflects was asked so far, and what became of it; None if none reflects."""
        return None if self._reviewer.lessons is None else self._reviewer.lessons.proposed

    # --- what is remembered ---

    def remembered(self) -> LabelledFacts:
        """The labelled cases that learning looks back on, including what other learners heard."""
        return self._reviewer.cases.catch_up()

    def reread(self, *, everything: bool = False) -> Reread:
        """Read the texts of remembered cases with the reader of this version, and review the playbook.

        Cases that this version has read already are skipped, unless you ask for `everything`.
        """
        done = self._reviewer.cases.reread(everything=everything)
        if done.changed:
            self.review()
        return done

    def too_little(self) -> str:
        """Why nothing can be learnt from the remembered cases yet; empty if something can."""
        return self.reflector.engine.too_little(self.remembered())

    def nothing_learnt(self) -> str:
        """Why a training found no bullet, and what decides in their place."""
        why, score = self.too_little() or "nothing was found that holds beyond chance", self.additive_score()
        if score.terms:
            return f"{why}; general knowledge decides"
        return f"{why}: every row gets the base rate, {100 * sigmoid(score.calibration.level):.3g} %"

    # --- rules ---

    def measure(self, condition: Condition) -> Evidence | None:
        """What the remembered cases say of a condition; None if there are none.

        >>> from acefraud import BulletPlaybook, Condition, Learner, Outcome, Transaction
        >>> learner = Learner(BulletPlaybook())
        >>> orders = [Transaction(id=f"t{number}", facts={"vpn": number % 3 == 0}) for number in range(30)]
        >>> outcomes = [Outcome(transaction_id=order.id, is_fraud=order.facts["vpn"]) for order in orders]
        >>> _ = learner.hear_all_sync(outcomes, orders)
        >>> learner.measure(Condition.parse("vpn is true")).in_words()
        '10 of 10 past cases were fraud (100%, 72-100%)'
        """
        check_type("condition", condition, Condition, "a Condition, such as Condition.parse(text)")
        return cases_for(self.remembered(), condition).measure(condition)

    def remarks_on(self, bullet: Bullet) -> list[str]:
        """What the author of a rule should know: that it never fires, is mostly unknown, or is shadowed."""
        check_type("bullet", bullet, Bullet, "a Bullet")
        if bullet.condition is None:
            return []
        others = [other for other in self.playbook.get_bullets_for_node(bullet.node) if other.id != bullet.id]
        return rule_remarks(bullet.condition, self.remembered(), others, bullet.policy)

    def preview(self, content: str, **details: Unpack[BulletDetails]) -> Preview:
        """What adding a bullet would do to the latest labelled cases and decisions. Nothing is recorded.

        The details are those of `BulletPlaybook.add_bullet`.

        >>> from acefraud import BulletPlaybook, Learner, Transaction
        >>> learner = Learner(BulletPlaybook())
        >>> orders = [Transaction(id=f"t{number}", facts={"amount": 400 * number}) for number in range(5)]
        >>> _ = learner.decide_all_sync(orders)
        >>> preview = learner.preview("amount > $1000: decline")
        >>> preview.decisions, preview.fires_on_decisions
        (5, 2)
        """
        self.playbook.refresh()
        new = NewBullet(content, **details)
        change = plan_addition(self.playbook, new, self.options.node, who=THE_ENGINE)
        return self.preview_change(change.payloads, self.playbook.snapshot_with(change.payloads).bullets[change.result])

    def preview_change(self, payloads: Sequence[EventPayload], rule: Bullet | None = None) -> Preview:
        """What any change would do. `rule` is the bullet that the events add, edit or retire."""
        self.playbook.refresh()
        return preview(self.playbook, payloads, rule, self.remembered(), self._decider)

    train_sync = blocking_twin(train)
    scale_odds_sync = blocking_twin(scale_odds)
    finish_lessons_sync = blocking_twin(finish_lessons)
