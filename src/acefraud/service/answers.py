"""Answers made from what the engine knows, with the words of rules as each caller may see them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from acefraud.core.bullet import Bullet, Evidence
from acefraud.core.decision import Decision, SelectionTrace
from acefraud.core.events import DecisionMade, Event, RolledBack
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import in_words
from acefraud.core.transaction import Verdict
from acefraud.engine.familiarity import CheckedInput, unfamiliar_remarks
from acefraud.learning.learner import Learner
from acefraud.learning.preview import CASES, DECISIONS, Preview
from acefraud.learning.rule_admission import Admitted
from acefraud.rules.english import say
from acefraud.rules.scorecard import GENERAL
from acefraud.service.masking import RuleWords, hidden_in, rule_text
from acefraud.storage.change_log import PlaybookChange
from acefraud.storage.playbook import BulletPlaybook
from acefraud.wire.decisions import DecisionAnswer, ListedDecision, ReasonAnswer, StageAnswer, UnfamiliarFactAnswer
from acefraud.wire.playbook import (
    AdmittedRule,
    BulletAnswer,
    ChangeAnswer,
    ClaimAnswer,
    CountersAnswer,
    EvidenceAnswer,
    OutcomeFeedAnswer,
    PreviewAnswer,
    RollbackAnswer,
    SnoozeAnswer,
    ThresholdAnswer,
)

BOUNDS: Final = f"It looks at the latest {CASES:,} labelled cases and the latest {DECISIONS:,} decisions at most."
"""For the descriptions of routes that preview something."""


def decision_answer(
    decision: Decision, at: datetime, words: RuleWords, checked: CheckedInput | None = None
) -> DecisionAnswer:
    """A decision that was made at a time, with what is unusual about the request."""
    remarks = checked.remarks if checked else ()
    return DecisionAnswer(
        decision_id=decision.id,
        transaction_id=decision.transaction.id,
        verdict=decision.verdict,
        probability=decision.probability,
        reasons=[
            ReasonAnswer(
                bullet_id=reason.bullet_id,
                content=words.shown(reason.text, reason.bullet_id),
                weight=reason.contribution,
            )
            for reason in decision.reasons
        ],
        playbook_revision=decision.revision,
        time=at,
        familiarity=None if decision.familiarity is None else round(decision.familiarity, 4),
        unfamiliar=decision.unfamiliar,
        unfamiliar_facts=[
            UnfamiliarFactAnswer(name=remark.name, nearest=remark.nearest) for remark in remarks if remark.name
        ],
        warnings=[str(remark) for remark in (*remarks, *unfamiliar_remarks([decision.facts], [decision.verdict]))],
    )


def listed_decision(event: Event) -> ListedDecision:
    """A recorded decision: what was decided, without the facts that it rests on."""
    assert isinstance(event.payload, DecisionMade)
    record = event.payload.record
    return ListedDecision(
        decision_id=record.id,
        transaction_id=record.transaction_id,
        verdict=Verdict(record.verdict),
        probability=record.probability,
        playbook_revision=record.revision,
        time=event.at,
    )


def stage_answers(trace: SelectionTrace) -> tuple[StageAnswer, ...]:
    """The stages of a selection."""
    return tuple(StageAnswer(stage=count.stage, left=count.left) for count in trace.stages)


def evidence_answer(evidence: Evidence) -> EvidenceAnswer:
    """The evidence of a bullet."""
    record, (low, high) = evidence.shown, evidence.interval
    return EvidenceAnswer(
        support=record.support,
        frauds=record.frauds,
        precision=record.precision,
        low=low,
        high=high,
        base_rate=evidence.base_rate,
        words=evidence.in_words(),
    )


def bullet_answer(bullet: Bullet, *, in_clear: bool) -> BulletAnswer:
    """A bullet, with personal data if it may be shown in clear."""
    hidden, condition, claim = hidden_in(bullet), bullet.condition, bullet.claim

    def shown(text: str) -> str:
        return rule_text(text, hidden, in_clear=in_clear)

    return BulletAnswer(
        id=bullet.id,
        content=shown(bullet.content),
        condition=None if condition is None else shown(str(condition)),
        english=None if condition is None else shown(say(condition)),
        status=bullet.status,
        source=bullet.source,
        node=bullet.node,
        argues=bullet.argues,
        weight=bullet.weight,
        policy=None if bullet.policy is None else bullet.policy.words,
        evidence=None if bullet.evidence is None else evidence_answer(bullet.evidence),
        claim=None if claim is None else ClaimAnswer(fraud_share=claim.fraud_share, words=shown(claim.words)),
        counters=CountersAnswer(
            helpful=bullet.helpful_count,
            harmful=bullet.harmful_count,
            selected=bullet.times_selected,
            fired=bullet.record.support,
            fired_frauds=bullet.record.frauds,
        ),
        snoozes=[
            SnoozeAnswer(key=snooze.key, value=shown(snooze.value), until=snooze.until) for snooze in bullet.snoozes
        ],
        contradicts=bullet.contradicts,
        added_at=bullet.added_at,
    )


def admitted_rule(admitted: Admitted) -> AdmittedRule:
    """A rule that was added or edited, for its author."""
    return AdmittedRule(
        bullet=bullet_answer(admitted.bullet, in_clear=True),
        remarks=admitted.remarks,
        preview=None if admitted.preview is None else preview_answer(admitted.preview),
    )


def preview_answer(preview: Preview) -> PreviewAnswer:
    """A preview."""
    return PreviewAnswer.model_validate(preview.as_json())


def change_answer(change: PlaybookChange, words: RuleWords) -> ChangeAnswer:
    """A change of the playbook."""
    return ChangeAnswer(
        revision=change.seq,
        at=change.at,
        who=change.who,
        reason=words.shown(change.why, change.subject),
        kind=change.kind,
        subject=change.subject,
        what=words.shown(change.what, change.subject),
        content=words.shown(change.content, change.subject),
    )


def rollback_answer(done: RolledBack, preview: Preview | None = None) -> RollbackAnswer:
    """A rollback that was done or planned."""
    return RollbackAnswer(
        **done.model_dump(include={"retired", "edited", "moved", "also"}),
        revision=done.to,
        weights=len(done.weights),
        changes_nothing=done.changes_nothing,
        preview=None if preview is None else preview_answer(preview),
    )


def threshold_answer(snapshot: Snapshot, node: str, learner: Learner) -> ThresholdAnswer:
    """The calibration of a node."""
    learnt, review = snapshot.calibration(node), snapshot.reviews.get(node)
    threshold = (learnt or GENERAL).threshold
    left = learner.reviews_left() if node == learner.options.node else None
    return ThresholdAnswer(
        threshold=threshold,
        base_rate=None if learnt is None else learnt.base_rate,
        cases=0 if learnt is None else learnt.cases,
        review=review,
        reviews_today=None if left is None else left.used,
        review_cut=None if left is None else left.cut,
        words=in_words(threshold, review) + (f"; {left.words}" if left else ""),
    )


def outcome_feed_answer(playbook: BulletPlaybook, node: str) -> OutcomeFeedAnswer:
    """The feed of a node as it is now."""
    playbook.refresh()
    feed, calibration = playbook.feed(node), playbook.snapshot().calibration(node)
    recent, held = (calibration.recent, calibration.held) if calibration else (None, None)
    return OutcomeFeedAnswer(
        **feed.model_dump(exclude={"silent_through"}),
        level=recent.shift if recent else 0.0,
        held=held.in_words if held else None,
        words=feed.words,
    )
