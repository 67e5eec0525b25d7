"""What an outcome adds to the counters of bullets, and what a revised one takes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import add

from acefraud.core.decision import Decision
from acefraud.core.events import Credit, OutcomeHeard
from acefraud.core.ledger import KnownCase
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource
from acefraud.core.page import Page
from acefraud.core.playbook import Snapshot
from acefraud.core.rules import places_in
from acefraud.core.transaction import Case, FactValue, Transaction
from acefraud.core.trusted import trusted


@dataclass(frozen=True, slots=True)
class Hearing:
    """An outcome, and what it is about."""

    outcome: Outcome
    decision: Decision | None
    subject: Transaction | None
    """The transaction, where it is known."""
    facts: Mapping[str, FactValue]
    """What is known of it: as it was when it was decided, else as it is now."""
    reader: str
    """The version of the reader that made the facts."""
    judgement: Judgement
    is_new: bool = False
    """Whether its transaction comes with the outcome, and was never seen before."""

    @property
    def is_opinion(self) -> bool:
        """Whether a judge says so who does not know the truth: nothing is measured by it or learnt from it."""
        return self.outcome.source is OutcomeSource.JUDGE

    @property
    def teaches(self) -> bool:
        """Whether there is a labelled case to learn from."""
        return self.subject is not None and not self.is_opinion

    def known_case(self) -> KnownCase:
        """The case to be remembered."""
        assert self.subject is not None
        case = trusted(
            Case,
            transaction=self.subject,
            is_fraud=self.outcome.is_fraud,
            known_at=self.outcome.at,
            difficulty="",
            metadata={},
        )
        return KnownCase(case, self.facts, self.reader)


@dataclass(frozen=True, slots=True)
class Taken:
    """What an outcome is recorded as; None where nothing is new about it."""

    hearing: Hearing
    heard: OutcomeHeard | None
    is_news: bool
    """Whether it says another truth than was known, or the first one."""

    @property
    def teaches(self) -> bool:
        """Whether its case is to be remembered and learnt from."""
        return self.heard is not None and self.heard.remembered


class _RulesInUse:
    """The conditions of a book, page by page, and which of them count; looked up once for many outcomes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.book = snapshot.book
        self._pages: dict[str | None, list[tuple[Page, int]]] = {}

    def fired(self, facts: Mapping[str, FactValue], node: str | None) -> list[str]:
        """The bullets whose condition held, selected or not; of one node, or each of its own; in their order."""
        return [
            page.ids[place]
            for page, in_use in self._of(node)
            for place in places_in(page.rules.standing(facts)[1] & in_use)
        ]

    def _of(self, node: str | None) -> list[tuple[Page, int]]:
        if node not in self._pages:
            number = None if node is None else self.book.node(node)
            self._pages[node] = [
                (page, (page.not_retired() if node is None else page.in_use(number)).bits)
                for page in self.book.pages
                if page.rules.any
            ]
        return self._pages[node]


def take_in(
    hearings: Sequence[Hearing], before: Mapping[str, Sequence[OutcomeHeard]], snapshot: Snapshot, node: str
) -> list[Taken]:
    """What outcomes are recorded as, in turn: one that comes later in a batch knows of those before it."""
    known = {transaction_id: [heard for heard in some if heard.node == node] for transaction_id, some in before.items()}
    rules, taken = _RulesInUse(snapshot), []
    for hearing in hearings:
        past = known.setdefault(hearing.outcome.transaction_id, [])
        one = _taken(hearing, past, rules, node)
        if one.heard is not None:
            past.append(one.heard)
        taken.append(one)
    return taken


def _taken(hearing: Hearing, before: Sequence[OutcomeHeard], rules: _RulesInUse, node: str) -> Taken:
    if heard_before(hearing, before):
        return Taken(hearing, None, is_news=False)
    outcome, known = hearing.outcome, before if hearing.is_opinion else labels_in(before)
    first_of_a_decision = hearing.decision is not None and bool(known) and known[-1].decision_id is None
    news = not known or known[-1].outcome.is_fraud != outcome.is_fraud or first_of_a_decision
    heard = trusted(
        OutcomeHeard,
        kind="outcome_revised" if before else "outcome_heard",
        node=node,
        outcome=outcome,
        decision_id=hearing.decision.id if hearing.decision else None,
        judgement=hearing.judgement,
        credits=all_credits(before, hearing, rules) if news else (),
        remembered=hearing.teaches and news,
    )
    return Taken(hearing, heard, news)


def heard_before(hearing: Hearing, before: Sequence[OutcomeHeard]) -> bool:
    """Whether an outcome says nothing new: delivered again, or the same truth from the same source.

    The first truth that reaches a decision is news even where the outcome was heard before the decision was made.
    """
    if not before:
        return False
    outcome, latest = hearing.outcome, before[-1]
    if outcome.id or outcome.at:
        return any(heard.outcome.key == outcome.key for heard in before)
    same = latest.outcome.is_fraud == outcome.is_fraud and latest.outcome.source is outcome.source
    return same and (latest.decision_id is not None or hearing.decision is None)


def all_credits(before: Sequence[OutcomeHeard], hearing: Hearing, rules: _RulesInUse) -> tuple[Credit, ...]:
    """What earlier truths counted is taken back. A bullet that was learnt since has no part in the revision."""
    fresh = credits_for(hearing, rules)
    labelled = labels_in(before)
    if labelled:
        then = {credit.bullet_id for credit in labelled[0].credits}
        fresh = tuple(credit for credit in fresh if credit.bullet_id in then or credit.selected)
    return (*taken_back(before), *fresh)


def labels_in(before: Sequence[OutcomeHeard]) -> list[OutcomeHeard]:
    """What was heard as the truth; the opinions of a judge left out."""
    return [heard for heard in before if heard.outcome.source is not OutcomeSource.JUDGE]


def credits_for(hearing: Hearing, rules: _RulesInUse) -> tuple[Credit, ...]:
    """Helpful or harmful where a bullet was used, and its own record where it fired."""
    if hearing.subject is None:
        return ()
    decision, right, fraud = hearing.decision, hearing.judgement.is_correct, int(hearing.outcome.is_fraud)
    used = set(decision.cited) if decision and right is not None else set()
    fired: list[str] = []
    if not hearing.is_opinion:  # which is no measurement
        fired = rules.fired(hearing.facts, decision.node if decision else None)
    helpful, harmful = int(right is True), int(right is False)
    credited = [
        Credit(bullet_id=one, helpful=helpful, harmful=harmful, selected=1, fired=1, fired_frauds=fraud)
        if one in used
        else Credit(bullet_id=one, fired=1, fired_frauds=fraud)
        for one in fired
    ]
    book = rules.book
    unproven = [one for one in used.difference(fired) if one in book]
    credited += [
        Credit(bullet_id=one, helpful=helpful, harmful=harmful, selected=1)
        for one in sorted(unproven, key=lambda one: book.row(one) or 0)
    ]
    return tuple(credited)


def taken_back(before: Sequence[OutcomeHeard]) -> list[Credit]:
    """What undoes all that the outcomes of one transaction have counted so far."""
    counted: dict[str, list[int]] = {}
    for credit in (credit for heard in before for credit in heard.credits):
        counts = counted.setdefault(credit.bullet_id, [0] * len(credit.counts))
        counts[:] = map(add, counts, credit.counts)
    names = ("helpful", "harmful", "selected", "fired", "fired_frauds")
    return [
        Credit(bullet_id=one, **dict(zip(names, counts, strict=True))).reversed()
        for one, counts in counted.items()
        if any(counts)
    ]
