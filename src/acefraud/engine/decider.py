"""From transactions to decisions on one revision of the playbook. Nothing is recorded here.

The embedded engine decides in columns: reasons and traces are built for the decisions that are looked at.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import eq
from typing import Any, overload

import numpy as np

from acefraud.core.bullet import Bullet
from acefraud.core.bullet_table import BulletTable
from acefraud.core.calibration import Calibration
from acefraud.core.context_facts import REVIEW_CUT, REVIEWS_TODAY, UNFAMILIAR
from acefraud.core.decision import FORMAT, Common, Decision, DecisionRecord, Reason, ReasonKind, compact_record
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import ReviewCosts, ReviewRule, number_in
from acefraud.core.table import FactTable
from acefraud.core.transaction import Transaction, Verdict
from acefraud.display.frames import make_frame
from acefraud.display.html_tables import MOST_ROWS, block, table
from acefraud.display.short_repr import shown_text
from acefraud.engine.familiarity import InputRemark, ReliedOn, unfamiliar_remarks
from acefraud.engine.options import LearnerOptions
from acefraud.engine.rule_context import ReviewsLeft, deciding_policies, policy_reason
from acefraud.facts.extraction import READER, KnownFacts
from acefraud.roles.embedded.agent import (
    addable,
    bullet_reasons,
    largest_first,
    log_odds_from,
    reasons_apart_from_bullets,
)
from acefraud.roles.protocols import Facts
from acefraud.rules.scorecard import GENERAL
from acefraud.selection.bullet_stats import Keys, stats_of
from acefraud.selection.hybrid import HybridSelector, Selections
from acefraud.support.arrays import FloatArray, IntArray
from acefraud.support.exact_math import sigmoid
from acefraud.support.validation import construct_unchecked


class DecisionSequence(Sequence[Decision]):
    """Decisions in order, which can become a data frame."""

    def _at(self, index: int) -> Decision:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Decision: ...

    @overload
    def __getitem__(self, index: slice) -> DecisionList: ...

    def __getitem__(self, index: int | slice) -> Decision | DecisionList:
        chosen = range(len(self))[index]
        return self._at(chosen) if isinstance(chosen, int) else DecisionList([self._at(index) for index in chosen])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self._told}>"

    @property
    def _told(self) -> str:
        return f"{len(self):,} decisions"

    def to_frame(self, backend: str = "polars", *, reasons: bool = False) -> Any:
        """The decisions as a data frame of polars, pandas or pyarrow.

        With `reasons` it has the strongest reason of each and the ids of the bullets that it cites. These are computed
        for every decision, which takes a while for many.

        >>> from acefraud import BulletPlaybook, Learner
        >>> orders = [{"id": "t1", "amount": 12}, {"id": "t2", "vpn": True}]
        >>> decisions = Learner(BulletPlaybook()).decide_all_sync(orders)
        >>> decisions.to_frame()["transaction_id"].to_list()
        ['t1', 't2']
        """
        columns: dict[str, Any] = self._columns()
        if reasons:
            built = list(self)
            columns["reason"] = [decision.reasons[0].text if decision.reasons else "" for decision in built]
            columns["cited"] = [list(decision.cited) for decision in built]
        return make_frame(columns, backend)

    def _repr_html_(self) -> str:
        """The first decisions, for a notebook."""
        rows = (
            (
                shown_text(decision.transaction.id),
                str(decision.verdict),
                f"{decision.probability:.3f}",
                shown_text(decision.reasons[0].text, 200, hidden=decision.transaction.hidden_values)
                if decision.reasons
                else "",
            )
            for decision in self[:MOST_ROWS]
        )
        headings = ["transaction", "verdict", "probability", "strongest reason"]
        return block(self._heading, table(headings, rows, total=len(self)))

    @property
    def _heading(self) -> str:
        return self._told

    def _columns(self) -> dict[str, Any]:
        built = list(self)
        return {
            "transaction_id": [decision.transaction.id for decision in built],
            "decision_id": [decision.id for decision in built],
            "verdict": [str(decision.verdict) for decision in built],
            "probability": [decision.probability for decision in built],
            "threshold": [decision.threshold for decision in built],
            "revision": [decision.revision for decision in built],
        }


class DecisionList(DecisionSequence):
    """Decisions that were built one by one, such as those of a language model."""

    def __init__(self, decisions: Sequence[Decision]) -> None:
        self._decisions = list(decisions)

    def __len__(self) -> int:
        return len(self._decisions)

    def _at(self, index: int) -> Decision:
        return self._decisions[index]


_DIGESTED = np.dtype([("bullet", "<u8"), ("text", "<u8"), ("contribution", "<f8"), ("parts", "<f8", 5)])
ENGINE = "3"
"""The version of the arithmetic from facts to a probability, selection included. Raise it when the same transaction on
the same revision could come out differently."""
COMPATIBLE = frozenset({"1", "2", ENGINE})
"""Versions whose decisions are computed again. The last bits of versions 1 and 2 depended on the processor, so theirs
may differ by as much. In version 1 notes counted too: where they did, other bullets come out."""


def decide_embedded(
    transactions: Sequence[Transaction],
    known: Sequence[KnownFacts],
    snapshot: Snapshot,
    selector: HybridSelector,
    options: LearnerOptions,
    *,
    drawn_at: Sequence[int] | None = None,
    reviews: ReviewsLeft | None = None,
) -> EmbeddedDecisions:
    """Decide transactions with known facts. Each decision is the same alone as among others.

    `drawn_at` are the revisions whose draws to use, if not those of the snapshot. `reviews` is what is
    left of the day's reviews, if there is a limit.
    """
    chosen = selector.select_many(
        transactions,
        [each.facts for each in known],
        snapshot,
        node=options.node,
        n_bullets=options.n_bullets,
        proven_only=True,
        drawn_at=drawn_at,
    )
    calibration = snapshot.calibration(options.node) or GENERAL.model_copy(update={"threshold": options.threshold})
    apart = [reasons_apart_from_bullets(each.facts, calibration) for each in known]
    contributions, texts = _bullet_columns(chosen, calibration)
    probabilities = [
        sigmoid(
            log_odds_from(map(addable, filter(None, (*amounts, *(one.contribution for one in others)))), calibration)
        )
        for amounts, others in zip(contributions.tolist(), apart, strict=True)
    ]
    policies = deciding_policies(snapshot, options.node, [each.facts for each in known])
    rule = snapshot.reviews.get(options.node)
    if rule is not None and rule.costs is not None and reviews is not None:
        known = _with_reviews_left(list(zip(probabilities, known, policies, strict=True)), rule.costs, reviews)
    verdicts = [
        _verdict(probability, calibration.threshold, each.facts, policy, rule)
        for probability, each, policy in zip(probabilities, known, policies, strict=True)
    ]
    return EmbeddedDecisions(
        transactions=transactions,
        known=known,
        chosen=chosen,
        calibration=calibration,
        apart=apart,
        contributions=contributions,
        texts=texts,
        probabilities=probabilities,
        policies=policies,
        verdicts=verdicts,
        rule=rule,
        node=options.node,
        relied_on=ReliedOn.of(snapshot, options.node),
    )


_BLOCK = 16_384
"""Rows whose facts are held as Python objects at once."""


def verdicts_in(
    facts: FactTable, probabilities: FloatArray, snapshot: Snapshot, options: LearnerOptions
) -> list[Verdict]:
    """The verdicts of `decide_embedded` on rows with these facts and probabilities, without a limit on reviews."""
    calibration, rule = snapshot.calibration(options.node), snapshot.reviews.get(options.node)
    threshold = calibration.threshold if calibration else options.threshold
    if rule is None and not snapshot.policies(options.node):
        return [Verdict.of(is_fraud) for is_fraud in (probabilities >= threshold).tolist()]
    relied_on, found = ReliedOn.of(snapshot, options.node), list[Verdict]()
    for start in range(0, len(facts), _BLOCK):
        block = slice(start, start + _BLOCK)
        marked = relied_on.marked([KnownFacts(each) for each in facts.take(block).rows()], options)
        known = [each.facts for each in marked]
        policies = deciding_policies(snapshot, options.node, known)
        cases = zip(probabilities[block].tolist(), known, policies, strict=True)
        found += [_verdict(probability, threshold, each, policy, rule) for probability, each, policy in cases]
    return found


def _with_reviews_left(
    cases: Sequence[tuple[float, KnownFacts, Bullet | None]], costs: ReviewCosts, reviews: ReviewsLeft
) -> Sequence[KnownFacts]:
    """The facts of cases, which have a probability and perhaps a policy, with what is left of the day's reviews."""
    deciding = (bullet.policy for _, _, bullet in cases if bullet is not None)
    by_policy = sum(policy is not None and policy.verdict is Verdict.REVIEW for policy in deciding)
    reviews = replace(reviews, used=reviews.used + by_policy)
    savings = [
        costs.saving(probability, number_in(known.facts, "amount")) if bullet is None else None
        for probability, known, bullet in cases
    ]
    return [
        replace(known, facts={REVIEWS_TODAY: float(reviews.used), REVIEW_CUT: cut, **known.facts})
        for (_, known, _), cut in zip(cases, reviews.cuts(savings), strict=True)
    ]


def _verdict(
    probability: float, threshold: float, facts: Facts, policy: Bullet | None, rule: ReviewRule | None
) -> Verdict:
    """The verdict of a policy, of a rule, or of the threshold."""
    if policy is not None and policy.policy is not None:
        return policy.policy.verdict
    if rule is None:
        return Verdict.of(probability >= threshold)
    unfamiliar = rule.sends_to_people and facts.get(UNFAMILIAR) is True
    return Verdict.REVIEW if unfamiliar else rule.verdict(probability, threshold, facts)


def _bullet_columns(chosen: Selections, calibration: Calibration) -> tuple[FloatArray, Keys]:
    """What each pick contributes, 0 after the last, and a number for the text of its reason."""
    table, rows = chosen.table, chosen.picks.rows
    picked = rows >= 0
    some = rows[picked]
    contributions, texts = np.zeros(rows.shape), np.zeros(rows.shape, dtype=np.uint64)
    if len(some):
        contributions[picked] = stats_of(table, calibration.base_rate).weights[some]
        texts[picked] = _text_numbers(table, some)[some]
    return contributions, texts


def _text_numbers(table: BulletTable, rows: IntArray) -> Keys:
    """A number for the text of each bullet as a reason, known at least for these rows and 0 where it is not known."""
    numbers: Keys = table.cached("text numbers", lambda: np.zeros(len(table), dtype=np.uint64))
    for row in set(rows[numbers[rows] == 0].tolist()):
        numbers[row] = _number_for(table.bullets[row].shown)
    return numbers


@lru_cache(maxsize=64)
def _setup_of(node: str, seed: int, embedder: str, settings: str) -> Common:
    return Common.of(
        {
            "format": FORMAT,
            "engine": ENGINE,
            "reader": READER,
            "node": node,
            "seed": seed,
            "embedder": embedder,
            "settings": settings,
        }
    )


@lru_cache(maxsize=8192)
def _number_for(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddedDecisions(DecisionSequence):
    """The decisions on many transactions with one revision of the playbook."""

    transactions: Sequence[Transaction]
    known: Sequence[KnownFacts]
    chosen: Selections
    calibration: Calibration
    apart: Sequence[Sequence[Reason]]
    """The reasons of each that are not bullets."""
    contributions: FloatArray
    """What each pick adds to the log-odds, in a row for each decision."""
    texts: Keys
    """Numbers that stand for the texts of these reasons."""
    probabilities: Sequence[float]
    policies: Sequence[Bullet | None]
    """The policy that decides each, if any."""
    verdicts: Sequence[Verdict]
    rule: ReviewRule | None
    """What decides beside the threshold, if anything does."""
    node: str
    relied_on: ReliedOn

    def __len__(self) -> int:
        return len(self.transactions)

    @property
    def _told(self) -> str:
        return f"{len(self):,} decisions on revision {self.chosen.setup.revision}"

    @property
    def _heading(self) -> str:
        return f"{self._told}, declined from {self.calibration.threshold:.3f} on"

    def _columns(self) -> dict[str, Any]:
        count = len(self)
        return {
            "transaction_id": [transaction.id for transaction in self.transactions],
            "decision_id": [record.id for record in self.records],
            "verdict": [str(verdict) for verdict in self.verdicts],
            "probability": list(self.probabilities),
            "threshold": [self.calibration.threshold] * count,
            "revision": [self.chosen.setup.revision] * count,
        }

    @cached_property
    def records(self) -> list[DecisionRecord]:
        """What the ledger keeps of them."""
        chosen, table = self.chosen.setup, self.chosen.table
        setup = _setup_of(self.node, chosen.seed, chosen.embedder, chosen.settings)
        ids = table.cached("ids", lambda: tuple(table))
        frame = {"threshold": self.calibration.threshold, "base": self.calibration.intercept}
        rows, contributions = self.chosen.picks.rows.tolist(), self.contributions.tolist()
        return [
            compact_record(
                transaction,
                known.facts,
                known.unread,
                setup=setup,
                revision=chosen.revision,
                verdict=self.verdicts[index],
                probability=self.probabilities[index],
                result={
                    "picks": [(ids[row], what) for row, what in zip(picks, amounts, strict=True) if row >= 0],
                    **frame,
                    "digest": digest,
                    **({} if policy is None else {"policy": policy.id}),
                },
            )
            for index, (transaction, known, picks, amounts, digest, policy) in enumerate(
                zip(self.transactions, self.known, rows, contributions, self._digests, self.policies, strict=True)
            )
        ]

    @cached_property
    def _digests(self) -> list[str]:
        """A digest of all that a record leaves out: the counts of the stages, every score and draw, and all reasons."""
        picks, counts = self.chosen.picks, self.chosen.picks.counts.tolist()
        columns = np.zeros(picks.rows.shape, dtype=_DIGESTED)
        columns["bullet"] = self.chosen.table.columns["key"][picks.rows] if len(self.chosen.table) else 0
        columns["text"], columns["contribution"], columns["parts"] = self.texts, self.contributions, picks.parts
        frame = struct.pack("<2d", self.calibration.threshold, self.calibration.intercept)
        digests = []
        for index, others in enumerate(self.apart):
            told = [struct.pack("<Qd", _number_for(reason.text), reason.contribution or 0.0) for reason in others]
            left = struct.pack("<5q", *self.chosen.left[index])
            parts = (left, columns[index, : counts[index]].tobytes(), *told, frame)
            digests.append(hashlib.blake2b(b"".join(parts), digest_size=8).hexdigest())
        return digests

    def _deciding(self, place: int) -> list[Reason]:
        """The policy or the rule that decided, if it was not the threshold alone."""
        policy = self.policies[place]
        if policy is not None:
            return [policy_reason(policy)]
        if self.rule is None:
            return []
        by = self.rule.ruling(self.probabilities[place], self.calibration.threshold, self.known[place].facts)
        return [Reason(kind=ReasonKind.RULE, text=by.words, contribution=None)]

    def _at(self, place: int) -> Decision:
        record, picked, known = self.records[place], self.chosen[place], self.known[place]
        weights = self.contributions[place, : len(picked.bullets)].tolist()
        return construct_unchecked(
            Decision,
            id=record.id,
            transaction=self.transactions[place],
            node=self.node,
            verdict=self.verdicts[place],
            probability=self.probabilities[place],
            threshold=self.calibration.threshold,
            base=self.calibration.intercept,
            reasons=(
                *self._deciding(place),
                *largest_first([*self.apart[place], *bullet_reasons(picked.bullets, weights)]),
            ),
            facts=known.facts,
            unread=known.unread,
            reader=READER,
            revision=picked.trace.revision,
            selection=picked.trace,
            engine=ENGINE,
            digest=self._digests[place],
            familiarity=self.relied_on.share(known.facts),
        )


def remarks_on(decisions: DecisionSequence) -> list[InputRemark]:
    """What is unusual about decisions. Those of the embedded engine stay in columns."""
    if isinstance(decisions, EmbeddedDecisions):
        return unfamiliar_remarks([known.facts for known in decisions.known], decisions.verdicts)
    return unfamiliar_remarks([each.facts for each in decisions], [each.verdict for each in decisions])
