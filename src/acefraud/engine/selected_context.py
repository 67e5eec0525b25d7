"""The bullets for a transaction, for teams that keep an agent of their own: selected as for a decision."""

from __future__ import annotations

from dataclasses import dataclass

from acefraud.core.bullet import Bullet
from acefraud.core.decision import BulletScore, SelectionTrace
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import Transaction, Verdict
from acefraud.display.redaction import Masker
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, quoted
from acefraud.engine.decider import Decider
from acefraud.engine.entity_memory import sensitive_facts_of
from acefraud.engine.rule_context import deciding_policies
from acefraud.facts.extraction import facts_of
from acefraud.roles.model.prompts import context_prompt, shown_bullets, shown_id


@dataclass(frozen=True, slots=True, repr=False)
class SelectedBullet(ShortRepr):
    """A selected bullet, with what was measured of it apart from what it only claims."""

    bullet_id: str
    shown_id: str
    """What the prompt calls it. `Learner.record_trace` takes either."""
    content: str
    argues: Verdict | None
    weight: float | None
    """Log-odds that the embedded engine adds where it applies; None before the first fit."""
    evidence: str
    """What was measured, in words; empty if nothing was."""
    claim: str
    """A figure in its words that nobody measured; empty if there is none."""
    applies: bool
    """Whether its condition holds. If not, it is here because its words are like those of the transaction."""
    score: BulletScore


@dataclass(frozen=True, slots=True, repr=False)
class Context(ShortRepr):
    """The bullets that would be selected for a transaction now, best first."""

    transaction_id: str
    bullets: tuple[SelectedBullet, ...]
    policy: str | None
    """The id of the policy that would decide the transaction, whatever the bullets say; None if there is none."""
    prompt: str
    """A text for the prompt of an agent. The words of bullets stand in it as data, masked and without figures that
    nobody measured. Bullets that nobody measured or approved are left out, and it is empty if none is left."""
    trace: SelectionTrace
    """How they were selected."""
    selection_fallback: str = ""
    """Why the configured embedder was not used."""

    @property
    def revision(self) -> int:
        """The revision of the playbook that they are from."""
        return self.trace.revision

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(quoted(self.transaction_id))
        yield None, Plain(f"{len(self.bullets)} bullet{'' if len(self.bullets) == 1 else 's'}")
        yield "revision", self.revision


async def select_context(
    decider: Decider, transaction: Transaction, snapshot: Snapshot, *, node: str, n_bullets: int
) -> Context:
    """The bullets of a snapshot for a transaction that has all its facts."""
    known = facts_of(transaction)
    selector, failure = await decider.selector_for([transaction], [known], snapshot)
    (chosen,) = selector.select_many([transaction], [known.facts], snapshot, node=node, n_bullets=n_bullets)
    (policy,) = deciding_policies(snapshot, node, [known.facts])
    mask = Masker(sensitive_facts_of(snapshot.mapping))
    return Context(
        transaction_id=transaction.id,
        bullets=tuple(
            _described(bullet, score, applies=place < chosen.proven)
            for place, (bullet, score) in enumerate(zip(chosen.bullets, chosen.scores, strict=True))
        ),
        policy=None if policy is None else policy.id,
        prompt=context_prompt(shown_bullets(chosen.bullets, mask), mask=mask),
        trace=chosen.trace,
        selection_fallback=failure,
    )


def _described(bullet: Bullet, score: BulletScore, *, applies: bool) -> SelectedBullet:
    return SelectedBullet(
        bullet_id=bullet.id,
        shown_id=shown_id(bullet),
        content=bullet.content,
        argues=bullet.argues,
        weight=bullet.weight,
        evidence=bullet.evidence.in_words() if bullet.evidence is not None and bullet.verified else "",
        claim=bullet.claim.words if bullet.claim is not None else "",
        applies=applies,
        score=score,
    )
