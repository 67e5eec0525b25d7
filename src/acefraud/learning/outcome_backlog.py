"""The outcomes that were received and wait to be judged.

They are judged in the order of their events. An event (`OutcomesTakenIn`) in the same entry as their judgements says
how far that has come, so nothing is lost and nothing is judged twice, whenever a process ends. A batch ends where it is
time to learn, so that the playbook is the same as if each outcome were heard by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acefraud.core.events import OUTCOME_RECEIVED, OutcomeReceived, OutcomesTakenIn, Reviewed
from acefraud.core.ledger import Precondition
from acefraud.display.short_repr import ShortRepr
from acefraud.errors import StoreConflict
from acefraud.learning.credits import CreditedOutcome
from acefraud.learning.outcome_intake import OUTCOME_ATTEMPTS, Draft, OutcomeRecorder
from acefraud.learning.reviewer import Reviewer
from acefraud.storage.playbook import BulletPlaybook

_PAGE = 100
"""Received outcomes that are read at once, at least: some may be of other nodes."""
_Waiting = tuple[int, OutcomeReceived]
"""A received outcome and the number of its event."""


@dataclass(frozen=True, slots=True, repr=False)
class TakenIn(ShortRepr):
    """What taking in received outcomes did."""

    count: int = 0
    """Received outcomes that were judged, or passed over because they were known by then."""
    already_known: int = 0
    """How many of them were passed over, or only confirm a truth."""
    reviews: tuple[Reviewed, ...] = ()
    """The reviews that were due, each with what it did or why it declined."""
    left: bool = False
    """Whether outcomes may still wait: there were more, or another process is at them."""
    announced: tuple[str, ...] = ()
    """What moved many verdicts, or was held for a person, in words."""


class OutcomeBacklog:
    """Takes in the outcomes that were received at one node."""

    def __init__(self, playbook: BulletPlaybook, recorder: OutcomeRecorder, reviewer: Reviewer, node: str) -> None:
        self._playbook = playbook
        self._recorder = recorder
        self._reviewer = reviewer
        self._node = node
        self._learnt_from = -1
        """How many outcomes there were when this process last learnt what was due."""

    async def take_in(self, limit: int) -> TakenIn:
        """Judge up to `limit` outcomes and learn from them; nothing if another process is at it."""
        if not self._waiting(1) and not self._is_due:
            return TakenIn()
        with self._playbook.ledger.claim(f"received outcomes {self._node}") as mine:
            return await self._take_in(limit) if mine else TakenIn(left=True)

    @property
    def _is_due(self) -> bool:
        """Whether something is to be learnt first. The level may be if another process heard the latest outcomes."""
        others = self._learnt_from != self._playbook.outcomes
        return self._reviewer.is_due or (others and self._reviewer.ends_at_a_level)

    async def _take_in(self, limit: int) -> TakenIn:
        waiting, taken, conflicts = self._waiting(limit), list[CreditedOutcome](), 0
        reviews = [await self._reviewer.resume()] if self._is_due else []
        self._learnt_from = self._playbook.outcomes
        # While something is to be learnt, it comes first: another process may be at it.
        while waiting and not self._reviewer.is_due:
            try:
                credited = await self._record(waiting[: self._reviewer.room])
            except StoreConflict:  # an outcome was heard directly, or the claim was lost and another process came first
                conflicts += 1
                if conflicts == OUTCOME_ATTEMPTS:
                    raise
                waiting = self._waiting(len(waiting))
                continue
            taken += credited
            waiting = waiting[len(credited) :]
            reviews.append(await self._reviewer.learn_if_due(credited))
            self._learnt_from = self._playbook.outcomes
        return TakenIn(
            count=len(taken),
            already_known=sum(one.already_known for one in taken),
            reviews=tuple(one for one in reviews if one is not None),
            left=bool(waiting) or len(taken) >= limit,
        )

    async def _record(self, waiting: Sequence[_Waiting]) -> list[CreditedOutcome]:
        """Judge outcomes and record those that may be recorded together: at least one.

        Raises StoreConflict, with nothing written, if somebody else has taken in outcomes.
        """
        self._playbook.refresh()
        fence = Precondition.nothing_taken_in_since(self._playbook.seq, self._node)
        if self._playbook.taken_in(self._node) >= waiting[0][0]:
            raise StoreConflict("another process has taken in these outcomes")
        received = [report for _, report in waiting]
        draft = await self._recorder.draft(
            [report.outcome for report in received],
            [report.transaction for report in received],
            received=[seq for seq, _ in waiting],
        )
        count = self._together(draft)
        done = OutcomesTakenIn(node=self._node, until=waiting[count - 1][0], count=count)
        self._recorder.write(draft.first(count), more=[done], preconditions=[fence])
        return draft.credited[:count]

    def _together(self, draft: Draft) -> int:
        """How many outcomes of a draft to record together, so that nothing differs from one by one."""
        count = self._reviewer.before_due(draft.credited)
        if not any(one.feed for one in draft.snapshot.lists.values()):
            return count
        changing = (place for place in range(count) if self._recorder.changes_lists(draft, place))
        return next(changing, count - 1) + 1

    def _waiting(self, limit: int) -> list[_Waiting]:
        """The first received outcomes of the node that wait."""
        self._playbook.refresh()
        found: list[_Waiting] = []
        after, page, more = self._playbook.taken_in(self._node), limit, True
        while more and len(found) < limit:
            events = self._playbook.ledger.find_events({OUTCOME_RECEIVED}, after=after, limit=page)
            found += [
                (event.seq, event.payload)
                for event in events
                if isinstance(event.payload, OutcomeReceived) and event.payload.node == self._node
            ]
            more = len(events) >= page
            after = events[-1].seq if events else after
            page = max(limit, _PAGE)  # those of other nodes are passed over in larger steps
        return found[:limit]
