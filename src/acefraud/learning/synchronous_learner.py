"""The methods of a learner for callers that do not await: scripts, notebooks and threads."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from acefraud.core.decision import Decision
from acefraud.core.outcome import Judgement, Outcome
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import Case, Verdict
from acefraud.learning.decision_frames import DecisionSequence
from acefraud.learning.decision_recorder import DecisionRequest
from acefraud.learning.history_inputs import HistoryInput
from acefraud.learning.outcome_backlog import TakenIn
from acefraud.learning.selected_context import Context
from acefraud.learning.training import TrainingOptions
from acefraud.learning.transaction_inputs import (
    OptionalTransactionsInput,
    OutcomeInput,
    OutcomesInput,
    TransactionInput,
    TransactionsInput,
)
from acefraud.llm.synchronous import run_sync

if TYPE_CHECKING:
    from acefraud.learning.learner import Heard, Learner, RecordedDecisions, Silent, Traced


class SynchronousLearner:
    """A twin of every method of `Learner` that has to be awaited, with the same parameters.

    A twin blocks until it is done, also inside a running event loop. Without a language model nothing is waited for,
    and deciding needs no event loop.
    """

    @property
    def _awaited(self) -> Learner:
        return cast("Learner", self)

    @property
    def waits(self) -> bool:
        """Whether deciding waits for a model."""
        raise NotImplementedError

    def decide_sync(self, transaction: TransactionInput) -> Decision:
        """`decide` for callers that do not await."""
        return run_sync(self._awaited.decide(transaction), waits=self.waits)

    def decide_all_sync(self, transactions: TransactionsInput) -> DecisionSequence:
        """`decide_all` for callers that do not await."""
        return run_sync(self._awaited.decide_all(transactions), waits=self.waits)

    def decide_for_sync(self, requests: Sequence[DecisionRequest], *, since: int) -> RecordedDecisions:
        """`decide_for` for callers that do not await."""
        return run_sync(self._awaited.decide_for(requests, since=since), waits=self.waits)

    @overload
    def score_sync(self, transactions: TransactionInput) -> Decision: ...  # type: ignore[overload-overlap]

    @overload
    def score_sync(self, transactions: TransactionsInput) -> DecisionSequence: ...

    def score_sync(self, transactions: TransactionInput | TransactionsInput) -> Decision | DecisionSequence:
        """`score` for callers that do not await."""
        scoring: Coroutine[Any, Any, Decision | DecisionSequence] = self._awaited.score(transactions)
        return run_sync(scoring, waits=self.waits)

    def context_sync(self, transaction: TransactionInput, n_bullets: int | None = None) -> Context:
        """`context` for callers that do not await."""
        return run_sync(self._awaited.context(transaction, n_bullets))

    def record_trace_sync(
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
        """`record_trace` for callers that do not await."""
        return run_sync(
            self._awaited.record_trace(
                transaction,
                verdict,
                probability=probability,
                cited=cited,
                agent=agent,
                reasons=reasons,
                truth=truth,
                who=who,
            )
        )

    def decide_on_sync(self, transaction: TransactionInput, snapshot: Snapshot) -> Decision:
        """`decide_on` for callers that do not await."""
        return run_sync(self._awaited.decide_on(transaction, snapshot), waits=self.waits)

    def replay_sync(self, decision: Decision) -> Decision:
        """`replay` for callers that do not await."""
        return run_sync(self._awaited.replay(decision), waits=self.waits)

    def explain_sync(self, decision: Decision) -> Decision:
        """`explain` for callers that do not await."""
        return run_sync(self._awaited.explain(decision), waits=self.waits)

    def hear_sync(
        self, outcome: OutcomeInput, transaction: TransactionInput | None = None, judgement: Judgement | None = None
    ) -> Heard:
        """`hear` for callers that do not await."""
        return run_sync(self._awaited.hear(outcome, transaction, judgement))

    def hear_all_sync(
        self, outcomes: OutcomesInput, transactions: OptionalTransactionsInput | None = None
    ) -> list[Heard]:
        """`hear_all` for callers that do not await."""
        return run_sync(self._awaited.hear_all(outcomes, transactions))

    def take_in_sync(self, limit: int = 1_000) -> TakenIn:
        """`take_in` for callers that do not await."""
        return run_sync(self._awaited.take_in(limit))

    def hear_silence_sync(self, now: datetime | None = None) -> Silent:
        """`hear_silence` for callers that do not await."""
        return run_sync(self._awaited.hear_silence(now))

    def judge_pending_sync(self, decision: Decision) -> Judgement:
        """`judge_pending` for callers that do not await."""
        return run_sync(self._awaited.judge_pending(decision))

    def finish_lessons_sync(self) -> list[str]:
        """`finish_lessons` for callers that do not await."""
        return run_sync(self._awaited.finish_lessons())

    def train_sync(self, cases: HistoryInput, **options: Unpack[TrainingOptions]) -> list[str]:
        """`train` for callers that do not await."""
        return run_sync(self._awaited.train(cases, **options))

    def scale_odds_sync(self, cases: Sequence[Case], base_rate: float | None = None) -> None:
        """`scale_odds` for callers that do not await."""
        run_sync(self._awaited.scale_odds(cases, base_rate))
