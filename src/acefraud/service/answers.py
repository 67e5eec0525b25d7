"""Answers made from what the engine knows, with the words of rules as each caller may see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeVar

from acefraud.core.bullet import Bullet, Evidence
from acefraud.core.decision import Decision, SelectionTrace
from acefraud.core.events import DecisionMade, Event, RolledBack
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import in_words
from acefraud.engine.familiarity import CheckedInput, unfamiliar_remarks
from acefraud.learning.learner import Learner
from acefraud.learning.preview import CASES, DECISIONS, Preview
from acefraud.learning.rule_admission import Admitted
from acefraud.rules.english import say
from acefraud.rules.scorecard import GENERAL
from acefraud.service.masking import RuleWords, hidden_in, rule_text
from acefraud.storage.change_log import PlaybookChange
from acefraud.storage.playbook import BulletPlaybook
from acefraud.wire import answers as wire

A = TypeVar("A", bound=wire.Answer)
BOUNDS: Final = f"It looks at the latest {CASES:,} labelled cases and the latest {DECISIONS:,} decisions at most."
"""For the descriptions of routes that preview something."""


def told(kind: type[A], source: object, **more: Any) -> A:
    """An answer with the fields that a source has too, under the same names, and with more."""
    names = [name for name in kind.model_fields if name not in more and hasattr(source, name)]
    return kind(**{name: getattr(source, name) for name in names}, **more)


def decision_answer(
    decision: Decision, at: datetime, words: RuleWords, checked: CheckedInput | None = None
) -> wire.DecisionAnswer:
    """A decision that was made at a time, with what is unusual about the request."""
    remarks = checked.remarks if checked else ()
    return wire.DecisionAnswer(
        decision_id=decision.id,
        transaction_id=decision.transaction.id,
        verdict=decision.verdict,
        probability=decision.probability,
        reasons=[
            wire.ReasonAnswer(
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
            wire.UnfamiliarFactAnswer(name=remark.name, nearest=remark.nearest) for remark in remarks if remark.name
        ],
        warnings=[str(remark) for remark in (*remarks, *unfamiliar_remarks([decision.facts], [decision.verdict]))],
    )


def listed_decision(event: Event) -> wire.ListedDecision:
    """A recorded decision: what was decided, without the facts that it rests on."""
    assert isinstance(event.payload, DecisionMade)
    record = event.payload.record
    return told(wire.ListedDecision, record, decision_id=record.id, playbook_revision=record.revision, time=event.at)


def stage_answers(trace: SelectionTrace) -> tuple[wire.StageAnswer, ...]:
    """The stages of a selection."""
    return tuple(told(wire.StageAnswer, count) for count in trace.stages)


def evidence_answer(evidence: Evidence) -> wire.EvidenceAnswer:
    """The evidence of a bullet."""
    (low, high), words = evidence.interval, evidence.in_words()
    return told(wire.EvidenceAnswer, evidence.shown, low=low, high=high, base_rate=evidence.base_rate, words=words)


def bullet_answer(bullet: Bullet, *, in_clear: bool) -> wire.BulletAnswer:
    """A bullet, with personal data if it may be shown in clear."""
    hidden, condition, claim = hidden_in(bullet), bullet.condition, bullet.claim

    def shown(text: str) -> str:
        return rule_text(text, hidden, in_clear=in_clear)

    return told(
        wire.BulletAnswer,
        bullet,
        content=shown(bullet.content),
        condition=None if condition is None else shown(str(condition)),
        english=None if condition is None else shown(say(condition)),
        policy=None if bullet.policy is None else bullet.policy.words,
        evidence=None if bullet.evidence is None else evidence_answer(bullet.evidence),
        claim=None if claim is None else wire.ClaimAnswer(fraud_share=claim.fraud_share, words=shown(claim.words)),
        counters=wire.CountersAnswer(
            helpful=bullet.helpful_count,
            harmful=bullet.harmful_count,
            selected=bullet.times_selected,
            fired=bullet.record.support,
            fired_frauds=bullet.record.frauds,
        ),
        snoozes=[told(wire.SnoozeAnswer, snooze, value=shown(snooze.value)) for snooze in bullet.snoozes],
    )


def admitted_rule(admitted: Admitted) -> wire.AdmittedRule:
    """A rule that was added or edited, for its author."""
    return wire.AdmittedRule(
        bullet=bullet_answer(admitted.bullet, in_clear=True),
        remarks=admitted.remarks,
        preview=None if admitted.preview is None else preview_answer(admitted.preview),
    )


def preview_answer(preview: Preview) -> wire.PreviewAnswer:
    """A preview."""
    return wire.PreviewAnswer.model_validate(preview.as_json())


def change_answer(change: PlaybookChange, words: RuleWords) -> wire.ChangeAnswer:
    """A change of the playbook."""
    return told(
        wire.ChangeAnswer,
        change,
        revision=change.seq,
        reason=words.shown(change.why, change.subject),
        what=words.shown(change.what, change.subject),
        content=words.shown(change.content, change.subject),
    )


def rollback_answer(done: RolledBack, preview: Preview | None = None) -> wire.RollbackAnswer:
    """A rollback that was done or planned."""
    previewed = None if preview is None else preview_answer(preview)
    return told(wire.RollbackAnswer, done, revision=done.to, weights=len(done.weights), preview=previewed)


def threshold_answer(snapshot: Snapshot, node: str, learner: Learner) -> wire.ThresholdAnswer:
    """The calibration of a node."""
    learnt, review = snapshot.calibration(node), snapshot.reviews.get(node)
    threshold = (learnt or GENERAL).threshold
    left = learner.reviews_left() if node == learner.options.node else None
    return wire.ThresholdAnswer(
        threshold=threshold,
        base_rate=None if learnt is None else learnt.base_rate,
        cases=0 if learnt is None else learnt.cases,
        review=review,
        reviews_today=None if left is None else left.used,
        review_cut=None if left is None else left.cut,
        words=in_words(threshold, review) + (f"; {left.words}" if left else ""),
    )


def outcome_feed_answer(playbook: BulletPlaybook, node: str) -> wire.OutcomeFeedAnswer:
    """The feed of a node as it is now."""
    playbook.refresh()
    feed, calibration = playbook.feed(node), playbook.snapshot().calibration(node)
    recent, held = (calibration.recent, calibration.held) if calibration else (None, None)
    return wire.OutcomeFeedAnswer(
        **feed.model_dump(exclude={"silent_through"}),
        level=recent.shift if recent else 0.0,
        held=held.in_words if held else None,
        words=feed.words,
    )
