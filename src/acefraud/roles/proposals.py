"""Heuristics that a model puts into words, each measured on the cases that the embedded engine remembers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from acefraud.core.bullet import DEFAULT_NODE, Bullet, Source
from acefraud.core.condition import Condition
from acefraud.core.measured_text import MeasuredText
from acefraud.core.reading import read_bullet
from acefraud.core.roles import Proposal, Proposes
from acefraud.core.transaction import Transaction
from acefraud.embedded.reflector import EmbeddedReflector, about
from acefraud.roles.admission import AdmissionOptions, Ruling, Standing, rule_on
from acefraud.roles.shown_cases import summaries

KNOWN_SHOWN = 12
"""Bullets that a model is told of, so that it does not say the same again."""


class Proposals:
    """Reflects with a model: it proposes, and the embedded engine remembers and measures."""

    def __init__(
        self, proposer: Proposes, engine: EmbeddedReflector, admission: AdmissionOptions | None = None
    ) -> None:
        self.proposer = proposer
        self.engine = engine
        self._admission = admission or AdmissionOptions()
        self._said: dict[Condition | str, Bullet] = {}
        """What was proposed before, by its condition, or by its words where it has none."""

    @property
    def model(self) -> str:
        """Who puts heuristics into words."""
        return self.proposer.model

    async def reflect(
        self,
        query: str | Transaction,
        predicted: str,
        correct: str,
        node: str = DEFAULT_NODE,
        agent_reasoning: str = "",
    ) -> dict[str, Any] | None:
        """What the model says of one case, unless the remembered cases refute it or it said so before.

        Raises ModelError where the call fails.
        """
        example = self.engine.hear(query, predicted, correct, agent_reasoning)
        known = list(self._said.values())[-KNOWN_SHOWN:]
        proposal = await self.proposer.propose([example], summaries(self.engine.memory.cases.facts), known)
        ruling = None if proposal is None else self.measured(proposal)
        if ruling is None or ruling.standing is Standing.REFUSED:
            return None
        bullet = draft(ruling, len(self._said))
        if self._said.setdefault(bullet.condition or bullet.content, bullet) is not bullet:
            return None
        reply = ruling.as_reply()
        reply["new_bullet"] = MeasuredText(
            reply["new_bullet"],
            condition=bullet.condition,
            argues=bullet.argues,
            evidence=bullet.evidence,
            problem_types=reply["problem_types"],
        )
        return {**reply, **about(example, node)}

    def measured(self, proposal: Proposal) -> Ruling:
        """What the remembered cases say of a proposal."""
        cases = self.engine.memory.cases
        if proposal.condition is None:  # what its words state can be measured too
            read = read_bullet(proposal.content).condition
            if read is not None and read.facts <= set(cases.facts.names):
                proposal = replace(proposal, condition=read)
        evidence = cases.measure(proposal.condition, apart=True) if proposal.condition else None
        return rule_on(proposal, evidence, len(cases), self._admission)


def weightiest(known: Sequence[Bullet]) -> list[Bullet]:
    """The bullets that a model is told of."""
    return sorted(known, key=lambda bullet: -abs(bullet.weight or 0.0))[:KNOWN_SHOWN]


def draft(ruling: Ruling, place: int) -> Bullet:
    """A bullet as it would stand in the playbook."""
    new = ruling.new_bullet(Source.OFFLINE)
    return Bullet(
        id=f"draft-{place}",
        content=new.content,
        status=new.status,
        argues=new.argues,
        condition=new.condition,
        evidence=new.evidence,
    )
