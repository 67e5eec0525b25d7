"""Keeping a playbook in order: weights, the frame around them, the threshold, and bullets that no longer hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.events import Recalibrated
from acefraud.core.scoring import Calibration
from acefraud.core.transaction import Case
from acefraud.embedded.reflector import Reflector
from acefraud.embedded.scorecard import GENERAL
from acefraud.learning.admitting import Standing
from acefraud.learning.demotion import demotion_of
from acefraud.learning.options import LearnerOptions
from acefraud.learning.proposing import ModelLessons
from acefraud.learning.thresholds import ThresholdRule, choose, said_of
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook


class Upkeep:
    """Changes bullets that are there, on what the reflector remembers. It adds none."""

    def __init__(
        self,
        playbook: BulletPlaybook,
        reflector: Reflector,
        selector: HybridSelector,
        lessons: ModelLessons | None,
        options: LearnerOptions,
    ) -> None:
        self.playbook = playbook
        self.reflector = reflector
        self.selector = selector
        self.lessons = lessons
        self.options = options

    def recheck(self) -> None:
        """Look again at what a model proposed and could not be measured then, now that more cases are known."""
        if self.lessons is None:
            return
        for bullet in self.playbook.get_bullets_for_node(self.options.node):
            ruling = self.lessons.recheck(bullet)
            if ruling is None:
                continue
            if ruling.evidence is None or ruling.standing is Standing.REFUSED:
                self.playbook.set_status(bullet.id, Status.RETIRED, why=ruling.reason)
                continue
            reply = ruling.as_reply()
            self.playbook.edit_bullet(
                bullet.id,
                reply["new_bullet"],
                condition=bullet.condition,
                argues=ruling.proposal.argues,
                evidence=ruling.evidence,
                problem_types=bullet.problem_types,
                why=ruling.reason,
            )
            self.playbook.set_status(bullet.id, Status.ACTIVE, why=ruling.reason)

    def refit(self) -> None:
        """Fit the weights of bullets with a condition, and the frame around them, on what is remembered."""
        bullets = [b for b in self.playbook.get_bullets_for_node(self.options.node) if _can_be_fitted(b)]
        fitted = self.reflector.refit(bullets)
        if fitted is None:
            return
        self.frame(fitted.calibration, fitted.weights)
        for bullet in bullets:  # it would only take a place among the few that are selected
            learnt = bullet.source is not Source.MANUAL and bullet.status is not Status.PINNED
            if learnt and fitted.weights.get(bullet.id) == 0:
                self.playbook.set_status(bullet.id, Status.RETIRED, why="fitted to nothing: others say it already")

    def frame(self, calibration: Calibration, weights: dict[str, float]) -> None:
        before = self.playbook.snapshot().calibration(self.options.node)
        frame = calibration.model_copy(update={"threshold": before.threshold if before else self.options.threshold})
        self.playbook.record([Recalibrated(node=self.options.node, calibration=frame, weights=weights)])

    def set_threshold(self, rule: ThresholdRule, cases: Sequence[Case]) -> None:
        """Choose the threshold on labelled cases, as the playbook decides them now."""
        frame = self.playbook.snapshot().calibration(self.options.node) or GENERAL
        bullets = self.playbook.get_bullets_for_node(self.options.node)
        said = said_of(cases, bullets, frame, self.selector, self.options.n_bullets)
        chosen = choose(rule, said, np.array([case.is_fraud for case in cases], dtype=np.bool_))
        frame = frame.model_copy(update={"threshold": chosen})
        self.playbook.record([Recalibrated(node=self.options.node, calibration=frame)])

    def demote(self) -> None:
        """Retire or question bullets whose record on the latest outcomes no longer bears them out."""
        for bullet in self.playbook.get_bullets_for_node(self.options.node):
            if bullet.condition is None or bullet.status is Status.PINNED:
                continue
            seen = self.reflector.recent(bullet.condition, self.options.recent)
            verdict = demotion_of(bullet, seen.base_rate, seen.learnt, seen.cases)
            if verdict is not None:
                self.playbook.set_status(bullet.id, verdict.status, why=verdict.reason)


def _can_be_fitted(bullet: Bullet) -> bool:
    """What a model proposed and nobody could measure yet gets no weight from a fit."""
    waits = bullet.status is Status.CANDIDATE and not bullet.verified and bullet.source is not Source.MANUAL
    return bullet.condition is not None and not waits
