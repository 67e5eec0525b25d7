"""A labelled history on its way into a playbook, whoever learns from it."""

from __future__ import annotations

from dataclasses import dataclass

from acefraud.core.events import Recalibrated, Trained
from acefraud.core.ledger import KnownCase, RowsChange
from acefraud.core.transactions import Cases, Transactions
from acefraud.embedded.case_memory import LabelledFacts
from acefraud.embedded.facts import READER
from acefraud.embedded.scorecard import GENERAL
from acefraud.learning.batch_scoring import score
from acefraud.learning.options import LearnerOptions
from acefraud.learning.remembering import forgetting, memory_for
from acefraud.learning.thresholds import ThresholdRule, cases_for, choose
from acefraud.roles.reflector import Reflector
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook


@dataclass(frozen=True, slots=True)
class Training:
    """Cases in order of time with all that is known of them, and what the playbook will keep of them."""

    cases: Cases
    facts: LabelledFacts
    trained: Trained
    rows: RowsChange | None
    """What it changes in the memory of entities."""
    latest: int
    """How many of the cases are remembered."""
    threshold: ThresholdRule | None
    tried_on: LabelledFacts
    """The cases on which a threshold is chosen."""

    @classmethod
    def of(
        cls,
        given: Cases,
        waiting: Transactions,
        mapping: str,
        threshold: ThresholdRule | None,
        *,
        dataset: str,
        playbook: BulletPlaybook,
        reflector: Reflector,
        node: str,
    ) -> Training:
        """A history made ready to be learnt from, with the facts that its mapping's history gives. Nothing is kept."""
        memory = memory_for(mapping)
        studied = given if memory is None else memory.studied(given, waiting)
        cases = studied.in_order()
        facts = LabelledFacts.of(cases)
        latest = min(len(facts), reflector.memory.capacity)
        if memory is not None:
            rows: RowsChange | None = memory.filling(studied, waiting, playbook.ledger)
        else:  # a training without a history ends one that is kept
            rows = forgetting if memory_for(playbook.snapshot().mapping) else None
        return cls(
            cases=cases,
            facts=facts,
            trained=Trained(
                node=node,
                dataset=dataset,
                rows=len(given),
                frauds=int(given.labels.sum()),
                mapping=mapping,
                remembered=latest,
                remembered_frauds=int(facts.labels[len(facts) - latest :].sum()),
            ),
            rows=rows,
            latest=latest,
            threshold=threshold,
            tried_on=cases_for(threshold, facts, reflector.options.induction.later_share) if threshold else facts,
        )

    def remember(self, playbook: BulletPlaybook) -> None:
        """Keep the latest cases, with what is known of them."""
        last = slice(len(self.cases) - self.latest, None)
        facts = self.facts.facts.take(last).rows()
        known = [KnownCase(case, each, READER) for case, each in zip(self.cases.take(last), facts, strict=True)]
        playbook.record([self.trained], cases=known, rows=self.rows)

    def set_threshold(self, playbook: BulletPlaybook, selector: HybridSelector, options: LearnerOptions) -> None:
        """Choose the threshold on labelled cases, as the playbook decides them now; without a rule it stays."""
        if self.threshold is None:
            return
        snapshot, tried_on = playbook.snapshot(), self.tried_on
        rows = Transactions(tried_on.ids, tried_on.facts, times=tried_on.times)
        said = score(rows, snapshot, selector.without_draws(), options, known=tried_on.facts)
        chosen = choose(self.threshold, said.probabilities, tried_on.labels)
        frame = (snapshot.calibration(options.node) or GENERAL).model_copy(update={"threshold": chosen})
        playbook.record([Recalibrated(node=options.node, calibration=frame)])
