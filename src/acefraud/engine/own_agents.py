"""For teams that keep an agent of their own: the bullets for it, and its decisions, so that bullets are counted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from acefraud.core.bullet import Bullet
from acefraud.core.calibration import log_odds
from acefraud.core.decision import BulletScore, Decision, ProbabilityFrom, Reason, ReasonKind, SelectionTrace
from acefraud.core.outcome import Outcome
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import Transaction, Verdict
from acefraud.core.transactions import Transactions
from acefraud.display.redaction import Masker
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, given, quoted
from acefraud.engine.entity_memory import sensitive_facts_of
from acefraud.engine.models import Decider
from acefraud.engine.options import LearnerOptions
from acefraud.engine.rule_context import deciding_policies
from acefraud.engine.score import score
from acefraud.errors import InputError
from acefraud.facts.extraction import READER, facts_of
from acefraud.roles.model.agent import cited_as_reasons
from acefraud.roles.model.prompts import context_prompt, shown_bullets, shown_id
from acefraud.settings import EMBEDDED
from acefraud.support.arguments import check_type, nearest


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


async def select_context(decider: Decider, transaction: Transaction, snapshot: Snapshot, n_bullets: int) -> Context:
    """The bullets of a snapshot for a transaction that has all its facts."""
    known, node = facts_of(transaction), decider.options.node
    selector, failure = await decider.selector_for([transaction], [known], snapshot)
    (chosen,) = selector.select_many([transaction], [known.facts], snapshot, node=node, n_bullets=n_bullets)
    (policy,) = deciding_policies(snapshot, node, [known.facts])
    mask = Masker(sensitive_facts_of(snapshot.mapping))
    return Context(
        transaction_id=transaction.id,
        bullets=tuple(
            SelectedBullet(
                bullet_id=bullet.id,
                shown_id=shown_id(bullet),
                content=bullet.content,
                argues=bullet.argues,
                weight=bullet.weight,
                evidence=bullet.evidence.in_words() if bullet.evidence is not None and bullet.verified else "",
                claim=bullet.claim.words if bullet.claim is not None else "",
                applies=index < chosen.proven,
                score=score,
            )
            for index, (bullet, score) in enumerate(zip(chosen.bullets, chosen.scores, strict=True))
        ),
        policy=None if policy is None else policy.id,
        prompt=context_prompt(shown_bullets(chosen.bullets, mask), mask=mask),
        trace=chosen.trace,
        selection_fallback=failure,
    )


EXTERNAL = "external agent"
"""The name of an agent that has none."""
_SURE = 1e-6
"""A probability of 0 or 1 is moved this far inside the interval, so that it has log-odds."""


@dataclass(frozen=True, slots=True, repr=False)
class Trace(ShortRepr):
    """What an agent decided, and with which bullets. Raises InputError if something in it cannot be meant.

    >>> Trace(Verdict.DECLINE, agent="embedded")
    Traceback (most recent call last):
    acefraud.errors.InputError: agent: 'embedded' is the engine's own name; give the agent another
    """

    verdict: Verdict
    probability: float | None = None
    """Of fraud; None if the agent does not say."""
    cited: Sequence[str] = ()
    """The ids of the bullets that it used, as the playbook or as the prompt of a context names them."""
    agent: str = ""
    reasons: str = ""
    """Its reasons in its own words."""

    def __post_init__(self) -> None:
        if isinstance(self.cited, str) or not isinstance(self.cited, Sequence):
            raise InputError(f"cited: expected a list of ids of bullets, got {given(self.cited)}")
        if self.probability is not None:
            check_type("probability", self.probability, (int, float), "a number from 0 to 1")
            if not 0 <= self.probability <= 1:
                raise InputError(f"probability: expected a number from 0 to 1, got {self.probability:g}")
        check_type("agent", self.agent, str, "a text")
        check_type("reasons", self.reasons, str, "a text")
        if self.agent == EMBEDDED:
            raise InputError(f"agent: '{EMBEDDED}' is the engine's own name; give the agent another")

    @property
    def model(self) -> str:
        """The name that the decision goes by."""
        return self.agent or EXTERNAL


def trace_id(transaction: Transaction, trace: Trace, node: str) -> str:
    """The id of the decision: the same trace of the same transaction gets the same, whatever was learnt meanwhile."""
    said = (str(trace.verdict), str(trace.probability), "\x01".join(trace.cited), trace.model, trace.reasons)
    text = "\x00".join((transaction.model_dump_json(), node, *said))
    return "d-" + hashlib.sha256(text.encode()).hexdigest()[:16]


def decision_from(
    trace: Trace, transaction: Transaction, decision_id: str, snapshot: Snapshot, options: LearnerOptions
) -> Decision:
    """The decision that a trace is, on a transaction that has all its facts.

    Without a stated probability it has that of the embedded engine. Raises InputError if a cited bullet is not in the
    playbook.
    """
    known, node = facts_of(transaction), options.node
    calibration = snapshot.calibration(node)
    stated = trace.probability
    if stated is None:
        stated = float(score(Transactions.of([transaction]), snapshot, None, options).probabilities[0])
    return Decision(
        id=decision_id,
        transaction=transaction,
        node=node,
        verdict=trace.verdict,
        probability=stated,
        threshold=calibration.threshold if calibration else options.threshold,
        base=log_odds(min(max(stated, _SURE), 1 - _SURE)),
        reasons=_reasons(trace, snapshot),
        facts=known.facts,
        unread=known.unread,
        reader=READER,
        revision=snapshot.revision,
        selection=SelectionTrace(revision=snapshot.revision),
        model=trace.model,
        probability_from=ProbabilityFrom.FITTED if trace.probability is None else ProbabilityFrom.STATED,
    )


def truth_of(truth: bool | Outcome, transaction_id: str) -> Outcome:
    """What is known of a traced transaction, as an outcome."""
    if isinstance(truth, Outcome):
        if truth.transaction_id != transaction_id:
            raise InputError(f"the truth is of '{truth.transaction_id}', the transaction is '{transaction_id}'")
        return truth
    check_type("truth", truth, bool, "True for fraud, False, or an Outcome")
    return Outcome(transaction_id=transaction_id, is_fraud=truth)


def _reasons(trace: Trace, snapshot: Snapshot) -> tuple[Reason, ...]:
    said = [Reason(kind=ReasonKind.MODEL, text=trace.reasons, contribution=None)] if trace.reasons else []
    cited = {bullet.id: bullet for bullet in _cited(trace.cited, snapshot)}
    return *said, *cited_as_reasons(cited.values())


def _cited(ids: Sequence[str], snapshot: Snapshot) -> list[Bullet]:
    """The bullets with these ids. A prompt may call a bullet by another id than the playbook."""
    bullets = snapshot.bullets
    all_known = all(bullet_id in bullets for bullet_id in ids)
    others = {} if all_known else {shown_id(bullet): bullet for bullet in bullets.values()}
    found = []
    for bullet_id in ids:
        bullet = bullets.get(bullet_id) or others.get(bullet_id)
        if bullet is None:
            raise InputError(
                f"there is no bullet {quoted(bullet_id)} in this playbook{nearest(bullet_id, bullets)}", field="cited"
            )
        found.append(bullet)
    return found
