"""Hearing outcomes: the truth of a transaction, reports to be judged later, silence, and what other agents decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from acefraud.core.decision import Decision, DecisionRecord
from acefraud.core.events import Reviewed
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource
from acefraud.core.transaction import Transaction, Verdict
from acefraud.display.short_repr import ShortRepr
from acefraud.engine.entity_memory import Drafted
from acefraud.engine.inputs import (
    OptionalTransactionsInput,
    OutcomeInput,
    OutcomesInput,
    TransactionInput,
    as_optional_transactions,
    as_outcome,
    as_outcomes,
    as_transaction,
    outcome_remarks,
    warn_of,
)
from acefraud.engine.own_agents import Trace, decision_from, trace_id, truth_of
from acefraud.errors import InputError
from acefraud.learning.credits import mature
from acefraud.learning.deciding import Deciding
from acefraud.learning.decision_recorder import record_decisions
from acefraud.learning.outcomes import NOT_DECIDED, OutcomeRecorder, Received, TakenIn, receive
from acefraud.learning.reviewer import Reviewer
from acefraud.llm.synchronous import blocking_twin
from acefraud.roles.judge import SimpleJudge, ruled
from acefraud.roles.protocols import Judge
from acefraud.storage.change_log import what_happened
from acefraud.support.arguments import check_choice, check_text, check_whole


@dataclass(frozen=True, slots=True, repr=False)
class Heard(ShortRepr):
    """What hearing one outcome did."""

    judgement: Judgement
    new_bullet: str | None = None
    """The first of the bullets that were learnt."""
    already_known: bool = False
    review: Reviewed | None = None
    """What the review that followed did, or why it declined. In a batch, the last outcome has it."""
    is_waiting: bool = False
    """Whether nothing is known of its transaction. It is kept, and counts once that is decided."""
    remark: str = ""
    """What is odd about it, such as a time before its transaction; it was taken all the same."""
    announced: tuple[str, ...] = ()
    """What moved many verdicts, or was held for a person, in words. In a batch, the last outcome has it."""


@dataclass(frozen=True, slots=True, repr=False)
class Silent(ShortRepr):
    """What the passing of time did."""

    decisions: int
    """How many count as legitimate from now on, because nobody reported them."""
    reviews: tuple[Reviewed, ...] = ()
    announced: tuple[str, ...] = ()
    """What moved many verdicts, or was held for a person, in words."""


@dataclass(frozen=True, slots=True, repr=False)
class Traced(ShortRepr):
    """What recording the decision of another agent did."""

    decision: Decision
    already_known: bool = False
    """Whether it was recorded before."""
    heard: Heard | None = None
    """What its truth did, if that was given."""


class Hearing(Deciding):
    """The methods of a `Learner` that hear outcomes and learn from them."""

    judge: Judge
    _recorder: OutcomeRecorder
    _reviewer: Reviewer

    async def hear(
        self, outcome: OutcomeInput, transaction: TransactionInput | None = None, judgement: Judgement | None = None
    ) -> Heard:
        """Take in the truth of a transaction and learn from it. Returns the judgement and what was learnt.

        The same outcome again changes nothing; a different truth takes back what the first one counted. Pass the
        `transaction` to learn from one that was never decided. An outcome that comes before its decision is kept
        (`Heard.is_waiting`), and judged by the next `hear` or `take_in` after that. A `judgement` by somebody who does
        not know the truth counts as a use of bullets, but nothing is measured by it or learnt from it.

        >>> from acefraud import BulletPlaybook, Learner, Outcome, Transaction
        >>> learner = Learner(BulletPlaybook())
        >>> _ = learner.decide_sync(Transaction(id="t1", facts={"amount": 12}))
        >>> chargeback = Outcome(transaction_id="t1", is_fraud=True, source="chargeback")
        >>> learner.hear_sync(chargeback).judgement.is_correct
        False
        >>> learner.hear_sync(chargeback).already_known
        True
        """
        mapping = self._mapping_of(self._newest(counted=False))
        heard, about = as_outcome(outcome, mapping, for_many="hear_all")
        if transaction is not None:
            about = as_transaction(transaction, mapping, for_many="hear_all")
        _check_same(heard, about)
        return (await self._hear([heard], self._with_sound_times([about]), judgement))[0]

    async def hear_all(
        self, outcomes: OutcomesInput, transactions: OptionalTransactionsInput | None = None
    ) -> list[Heard]:
        """Take in many outcomes in order, recorded all or none, and then learn from them.

        `transactions` are those that the outcomes are about, in the same order; None for one that was decided.

        >>> from acefraud import BulletPlaybook, Learner, Outcome, Transaction
        >>> orders = [Transaction(id=f"t{number}", facts={"amount": 10 * number}) for number in range(3)]
        >>> outcomes = [Outcome(transaction_id=order.id, is_fraud=False) for order in orders]
        >>> learner = Learner(BulletPlaybook())
        >>> len(learner.hear_all_sync(outcomes, orders)), len(learner.remembered().facts)
        (3, 3)
        """
        return await self._hear(*self._read_outcomes(outcomes, transactions))

    def _read_outcomes(
        self, outcomes: OutcomesInput, transactions: OptionalTransactionsInput | None
    ) -> tuple[list[Outcome], list[Transaction | None]]:
        """Outcomes, and the transactions that came with them."""
        mapping = self._mapping_of(self._newest(counted=False))
        given = as_outcomes(outcomes, mapping, for_one="hear")
        about = [described for _, described in given]
        if transactions is not None:
            named = as_optional_transactions(transactions, mapping, for_one="hear")
            if len(named) != len(given):
                wrong = f"{len(given):,} outcomes and {len(named):,} transactions"
                raise InputError(f"{wrong}: expected one for each, or none")
            about = [mine or described for mine, described in zip(named, about, strict=True)]
        for (outcome, _), transaction in zip(given, about, strict=True):
            _check_same(outcome, transaction)
            if outcome.source is OutcomeSource.SILENCE:
                raise InputError("source: silence is no report; `set_feed` says when it counts")
        return [outcome for outcome, _ in given], self._with_sound_times(about)

    def _with_sound_times(self, about: Sequence[Transaction | None]) -> list[Transaction | None]:
        """Transactions that come with their outcome, their times and entities as if they had been decided."""
        if not any(about):
            return list(about)
        given = [transaction for transaction in about if transaction is not None]
        checked = iter(self._familiar.checked(given, self.playbook.snapshot()).transactions)
        return [None if transaction is None else next(checked) for transaction in about]

    async def _hear(
        self, outcomes: Sequence[Outcome], about: Sequence[Transaction | None], judgement: Judgement | None = None
    ) -> list[Heard]:
        if self._may_wait:  # outcomes that came before their decisions are judged first
            self._may_wait = (await self.take_in()).left
        credited = await self._recorder.record(outcomes, about, judgement)
        reviewed = await self._reviewer.learn_if_due(credited)
        judged = [outcome.transaction for outcome in credited]
        remarks = outcome_remarks(outcomes, judged, self.playbook.ledger, self.playbook.clock())
        warn_of(remarks)
        heard = [
            Heard(
                outcome.judgement,
                already_known=outcome.already_known,
                is_waiting=outcome.transaction is None and outcome.judgement == NOT_DECIDED,
                remark=remark,
            )
            for outcome, remark in zip(credited, remarks, strict=True)
        ]
        if reviewed is not None:
            last = max(index for index, outcome in enumerate(credited) if outcome.event is not None)
            first_added = reviewed.added[0] if reviewed.added else None
            heard[last] = replace(heard[last], new_bullet=first_added, review=reviewed)
        announced = self._reviewer.take_announced()
        if self.playbook.feed(self.options.node).silence_days is not None:
            silent = await self.hear_silence()
            announced += (*silent.announced, *map(what_happened, silent.reviews))
        if announced:
            heard[-1] = replace(heard[-1], announced=announced)
        return heard

    def receive(
        self, outcomes: OutcomesInput, transactions: OptionalTransactionsInput | None = None, *, who: str
    ) -> list[Received]:
        """Accept outcomes to be judged and learnt from later, by `take_in`. They are recorded, all or none.

        An outcome that was received or heard before is reported as known. `transactions` are as in `hear_all`, `who`
        reports the outcomes. Raises OutcomeConflict if an outcome has the id of another one.

        >>> from acefraud import BulletPlaybook, Learner, Outcome, Transaction
        >>> learner = Learner(BulletPlaybook())
        >>> _ = learner.decide_sync(Transaction(id="t1", facts={"amount": 12}))
        >>> chargeback = Outcome(id="o1", transaction_id="t1", is_fraud=True, source="chargeback")
        >>> [learner.receive([chargeback], who="the bank")[0].already_known for _ in range(2)]
        [False, True]
        >>> learner.take_in_sync().count, learner.playbook.outcomes
        (1, 1)
        """
        check_text("who", who, "who reports the outcomes")
        given = self._read_outcomes(outcomes, transactions)
        received = receive(self.playbook, *given, node=self.options.node, who=who)
        warn_of([each.remark for each in received])
        return received

    async def take_in(self, limit: int = 1_000) -> TakenIn:
        """Judge received outcomes in the order in which they were received, up to `limit`, and learn from them.

        What is learnt does not depend on `limit`: it is the same as if each outcome were heard by itself. One process
        at a time takes in the outcomes of a playbook; the others return at once.

        >>> from acefraud import BulletPlaybook, Learner, Outcome, Transaction
        >>> learner = Learner(BulletPlaybook())
        >>> orders = [Transaction(id=f"t{number}", facts={"amount": 10 * number}) for number in range(3)]
        >>> outcomes = [Outcome(transaction_id=order.id, is_fraud=False) for order in orders]
        >>> _ = learner.receive(outcomes, orders, who="the bank")
        >>> [learner.take_in_sync(limit=2).count for _ in range(3)]
        [2, 1, 0]
        """
        check_whole("limit", limit, least=1)
        taken = await self._recorder.take_in(limit)
        return replace(taken, announced=self._reviewer.take_announced())

    async def hear_silence(self, now: datetime | None = None) -> Silent:
        """Let decisions count as legitimate that nobody has reported for as long as the feed says, and learn from them.

        `now` is the time of the playbook's clock if it is not given. Does nothing unless `BulletPlaybook.set_feed` or a
        mapping has said how many days of silence mean that a transaction was legitimate.

        >>> from datetime import UTC, datetime, timedelta
        >>> from acefraud import BulletPlaybook, Learner, Transaction
        >>> january = datetime(2026, 1, 1, tzinfo=UTC)
        >>> learner = Learner(BulletPlaybook(clock=lambda: january))
        >>> _ = learner.playbook.set_feed("fraud_only", silence_days=60)
        >>> _ = learner.decide_sync(Transaction(id="t1", facts={"amount": 12}))
        >>> learner.hear_silence_sync(january + timedelta(days=59)).decisions
        0
        >>> learner.hear_silence_sync(january + timedelta(days=61)).decisions, len(learner.remembered())
        (1, 1)
        """
        at, count, reviews = now or self.playbook.clock(), 0, list[Reviewed]()
        while matured := mature(self.playbook, self.options.node, at):
            count += matured.silent
            self._reviewer.announce(matured)
            reviewed = await self._reviewer.learn()
            reviews += [reviewed] if reviewed else []
        return Silent(count, tuple(reviews), self._reviewer.take_announced())

    async def judge_pending(self, decision: Decision) -> Judgement:
        """Ask the judge about a decision whose truth is unknown, and take in its opinion if it has one."""
        shown = getattr(self.judge, "presentable", SimpleJudge().presentable)
        text = shown(decision.transaction.text, decision.facts)
        judgement = await ruled(self.judge, text, str(decision.verdict), None)
        if judgement.is_correct is None or decision.verdict is Verdict.REVIEW:
            return judgement
        fraud = (decision.verdict is Verdict.DECLINE) == judgement.is_correct
        outcome = Outcome(transaction_id=decision.transaction.id, is_fraud=fraud, source=OutcomeSource.JUDGE)
        await self.hear(outcome, judgement=judgement)
        return judgement

    async def record_trace(
        self,
        transaction: TransactionInput,
        verdict: Verdict | str,
        *,
        probability: float | None = None,
        cited: Sequence[str] = (),
        agent: str = "",
        reasons: str = "",
        truth: bool | Outcome | None = None,
        who: str,
    ) -> Traced:
        """Record what an agent of your own decided, so that the bullets it `cited` are counted when the truth comes.

        The `truth` may come along: True for fraud, or an `Outcome`. If nobody knows it, `judge_pending` asks the judge.
        Without a `probability`, that of the embedded engine is recorded. The same trace again records nothing. Raises
        InputError if a cited bullet is not in the playbook.

        >>> from acefraud import BulletPlaybook, Learner
        >>> playbook = BulletPlaybook()
        >>> vpn, night = playbook.add_bullet("VPN: decline"), playbook.add_bullet("At night: decline")
        >>> order = {"id": "t1", "facts": {"vpn": True, "night": True}}
        >>> learner = Learner(playbook)
        >>> traced = learner.record_trace_sync(order, "DECLINE", cited=[vpn], agent="our-agent", truth=True, who="ana")
        >>> traced.decision.model, traced.heard.judgement.is_correct
        ('our-agent', True)
        >>> playbook.get_bullet(vpn).helpful_count, playbook.get_bullet(night).helpful_count
        (1, 0)
        """
        check_text("who", who, "the name of an author")
        check_choice("verdict", verdict, Verdict)
        trace = Trace(Verdict(verdict), probability, cited, agent, reasons)
        given = as_transaction(transaction, self._mapping_of(self._newest()))
        outcome = None if truth is None else truth_of(truth, given.id)
        decision, known = self._recorded(trace, given, who)
        return Traced(decision, known, None if outcome is None else await self.hear(outcome))

    def _recorded(self, trace: Trace, given: Transaction, who: str) -> tuple[Decision, bool]:
        """The decision of a trace, and whether it was recorded before."""
        snapshot, decision_id = self._newest(), trace_id(given, trace, self.options.node)
        if before := self.playbook.ledger.decisions([decision_id]):
            return before[decision_id], True
        all_facts = Drafted.of(self._in_context([given], snapshot), snapshot.mapping, self.playbook.ledger)
        decision = decision_from(trace, all_facts.transactions[0], decision_id, snapshot, self.options)
        records = [DecisionRecord.whole(decision)]
        known, _, repeated = record_decisions(self.playbook, self.options.node, records, all_facts, who=who)
        self._may_wait |= repeated
        return decision, bool(known)

    hear_sync = blocking_twin(hear)
    hear_all_sync = blocking_twin(hear_all)
    take_in_sync = blocking_twin(take_in)
    hear_silence_sync = blocking_twin(hear_silence)
    judge_pending_sync = blocking_twin(judge_pending)
    record_trace_sync = blocking_twin(record_trace)


def _check_same(outcome: Outcome, transaction: Transaction | None) -> None:
    if transaction is not None and transaction.id != outcome.transaction_id:
        raise InputError(f"the outcome is of '{outcome.transaction_id}', the transaction is '{transaction.id}'")
