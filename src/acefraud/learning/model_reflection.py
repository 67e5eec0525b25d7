"""Learning where a model reflects: what it says of failures is measured, and every bullet is looked at anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acefraud.core.bullet import Source, Status
from acefraud.core.condition import Condition
from acefraud.core.decision import ReasonKind
from acefraud.core.events import Reviewed
from acefraud.core.transaction import Case, Verdict
from acefraud.curation.curator import Curator, NewBullet
from acefraud.embedded.case_memory import LabelledFacts
from acefraud.embedded.reflector import Reflector
from acefraud.learning.admitting import Standing
from acefraud.learning.credits import Hearing
from acefraud.learning.options import LearnerOptions
from acefraud.learning.proposing import ModelLessons
from acefraud.learning.reflecting import example_of
from acefraud.learning.review import apply, crowded_out, refit, watch
from acefraud.storage.playbook import BulletPlaybook


class ModelReflection:
    """Collects failures for a model, and writes what of its answers holds up."""

    def __init__(
        self,
        asked: ModelLessons,
        playbook: BulletPlaybook,
        reflector: Reflector,
        curator: Curator,
        options: LearnerOptions,
    ) -> None:
        self.asked = asked
        self._playbook = playbook
        self._reflector = reflector
        self._curator = curator
        self._options = options

    @property
    def ready(self) -> bool:
        """Whether enough failures of one kind have come together for a call."""
        return self.asked.ready

    def note(self, hearings: Sequence[Hearing]) -> None:
        """Keep outcomes of decisions for the next call, where they are worth it."""
        for hearing in hearings:
            decision, subject = hearing.decision, hearing.subject
            if decision is not None and subject is not None and decision.verdict is not Verdict.REVIEW:
                said = next((reason.text for reason in decision.reasons if reason.kind is ReasonKind.MODEL), "")
                case = Case(transaction=subject, is_fraud=hearing.outcome.is_fraud)
                example = example_of(case, decision.verdict, said)
                self.asked.note(example, subject.id, decision.probability, decision.threshold)

    async def lessons(self, *, all_waiting: bool) -> list[dict[str, Any]]:
        """What the model says of the outcomes that wait for it, as far as it could be measured and holds up."""
        known = self._playbook.get_bullets_for_node(self._options.node)
        return [ruling.as_reply() for ruling in await self.asked.lessons(known, all_waiting=all_waiting)]

    def keep_in_order(self, replies: Sequence[dict[str, Any]], cases: LabelledFacts) -> Reviewed:
        """Add what a model proposed, measure what could not be measured before, watch, and fit all weights anew."""
        added = self.add(replies, Source.ONLINE)
        self.recheck()
        plan = watch(cases, self._playbook.snapshot(), self._options)
        watched = apply(plan, self._playbook, self._curator, self._options, source=Source.ONLINE)
        retired = (*watched.retired, *self.fit(cases))
        reviewed = watched.model_copy(update={"added": tuple(added), "retired": retired})
        self._playbook.record([reviewed])
        return reviewed

    def add(self, replies: Sequence[dict[str, Any]], source: Source) -> list[str]:
        """Let the playbook say what was learnt; returns the ids of the bullets that are new or came back."""
        new = [_new_bullet(reply, source) for reply in replies]
        merged = self._curator.merge_bullets(new, self._options.node, self._playbook)
        return [one for one in merged if one is not None]

    def recheck(self) -> None:
        """Look again at what a model proposed and could not be measured then, now that more cases are known."""
        for bullet in self._playbook.get_bullets_for_node(self._options.node):
            ruling = self.asked.recheck(bullet)
            if ruling is None:
                continue
            if ruling.evidence is None or ruling.standing is Standing.REFUSED:
                self._playbook.set_status(bullet.id, Status.RETIRED, why=ruling.reason)
                continue
            reply = ruling.as_reply()
            self._playbook.edit_bullet(
                bullet.id,
                reply["new_bullet"],
                condition=bullet.condition,
                argues=ruling.proposal.argues,
                evidence=ruling.evidence,
                problem_types=bullet.problem_types,
                why=ruling.reason,
            )
            self._playbook.set_status(bullet.id, Status.ACTIVE, why=ruling.reason)

    def fit(self, cases: LabelledFacts) -> list[str]:
        """Fit all weights, then retire the weakest where there are too many; returns the ids of those."""
        refit(self._playbook, self._reflector, cases, self._options)
        moves = crowded_out(cases, self._playbook.snapshot(), self._options)
        for bullet_id, move in moves.items():
            self._playbook.set_status(bullet_id, move.status, why=move.reason)
        return list(moves)


def _new_bullet(reply: dict[str, Any], source: Source) -> NewBullet:
    """What a reply of a reflector asks for."""
    condition, argues = reply["condition"], reply["argues"]
    return NewBullet(
        content=str(reply["new_bullet"]),
        source=source,
        condition=None if condition is None else Condition.parse(str(condition)),
        argues=None if argues is None else Verdict(str(argues)),
        evidence=reply["evidence"],
        weight=reply["weight"],
        problem_types=reply["problem_types"],
        status=reply.get("status", Status.ACTIVE),
        why=reply.get("why", ""),
    )
