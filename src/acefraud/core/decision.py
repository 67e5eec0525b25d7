"""A decision on a transaction, with everything needed to check it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import BaseModel, Field
from pydantic_core import to_json

from acefraud.core.bullet import DEFAULT_NODE
from acefraud.core.context_facts import UNFAMILIAR
from acefraud.core.transaction import Fact, FactValue, Transaction, Verdict
from acefraud.display.html_tables import block, line, table
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, quoted, shown_text
from acefraud.settings import EMBEDDED
from acefraud.support.timestamps import UNKNOWN, micros_of, time_of
from acefraud.support.validation import construct_unchecked, read_stored


class ReasonKind(StrEnum):
    """What a reason is based on."""

    BULLET = "bullet"
    POLICY = "policy"
    RULE = "rule"
    KNOWLEDGE = "general knowledge"
    RECENT = "recent outcomes"
    MODEL = "the model's words"
    FALLBACK = "fallback"


class ProbabilityFrom(StrEnum):
    """Where a probability comes from. Only FITTED and CALIBRATED were fitted on labelled cases, and COMBINED once there
    are enough of them."""

    FITTED = "fitted"
    STATED = "stated"
    ODDS = "odds"
    CALIBRATED = "calibrated"
    COMBINED = "combined"


class Reason(ShortRepr, BaseModel, frozen=True, extra="forbid"):
    """One reason for a decision and its contribution in log-odds of fraud, if that is known.

    >>> from acefraud import SimpleFraudAgent
    >>> agent = SimpleFraudAgent(bullets=["An emulator and a VPN = 97% fraud"])
    >>> for reason in agent.explain("$900 purchase through a VPN on an emulator").reasons:
    ...     print(reason.amount, reason.text, f"({reason.kind})")
    +1.30 an emulator (general knowledge)
    +0.80 a VPN or proxy (general knowledge)
    +0.50 An emulator and a VPN = 97% fraud [claim, not measured] (bullet)
    """

    kind: ReasonKind
    """What it is based on."""
    text: str
    """The bullet, the line of general knowledge, or the model's words."""
    contribution: float | None
    """What it adds to the log-odds of fraud: +0.7 doubles the odds, -0.7 halves them. None if it is unknown."""
    bullet_id: str | None = None
    """The bullet that it is, if it is one."""

    @property
    def amount(self) -> str:
        """The contribution as text; blank if it is unknown.

        >>> Reason(kind="general knowledge", text="a VPN", contribution=0.25).amount
        '+0.25'
        >>> Reason(kind="the model's words", text="a VPN", contribution=None).amount
        '     '
        """
        return "     " if self.contribution is None else f"{self.contribution:+.2f}"


class CallUsage(ShortRepr, BaseModel, frozen=True, extra="forbid"):
    """What a model call used and cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """US dollars; None if the price is unknown."""
    cached: bool = False
    """Whether the reply came from the cache."""


class BulletScore(ShortRepr, BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Every component of a selected bullet's score, including the random draw.

    >>> from acefraud import BulletPlaybook, HybridSelector
    >>> playbook = BulletPlaybook()
    >>> bullet_id = playbook.add_bullet("Amount above 2,000 and a VPN: decline")
    >>> _, (score,) = HybridSelector().select_bullets("$2,500 purchase through a VPN", "fraud_detection", playbook)
    >>> score.bullet_id == bullet_id, score.semantic, score.total == score.combined + score.diversity
    (True, 1.0, True)
    """

    bullet_id: str
    """The bullet."""
    quality: float
    """Its record so far."""
    semantic: float
    """How well it fits the transaction, from 0 to 1."""
    thompson: float
    """A random draw from what its record allows, so that bullets with a short record get a chance."""
    combined: float
    """The three, weighted."""
    diversity: float
    """The bonus for being unlike the bullets picked before it."""
    total: float
    """What the bullets are ranked by."""


class StageCount(ShortRepr, BaseModel, frozen=True, extra="forbid"):
    """How many bullets were left after a stage of the selection."""

    stage: str
    left: int


class SelectionTrace(ShortRepr, BaseModel, frozen=True, extra="forbid"):
    """The five stages of one selection."""

    stages: tuple[StageCount, ...] = ()
    scores: tuple[BulletScore, ...] = ()
    revision: int = 0
    seed: int = 0
    embedder: str = ""
    settings: str = ""
    """The thresholds, weights and number of bullets of the selector."""

    def __repr_args__(self) -> ReprArgs:
        for count in self.stages:
            yield count.stage, count.left
        yield "revision", self.revision
        yield "embedder", Plain(quoted(self.embedder))


class Decision(ShortRepr, BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """A verdict with its fraud probability and reasons, and the revision of the playbook it was made with.

    >>> import asyncio
    >>> from acefraud import BulletPlaybook, Learner
    >>> learner = Learner(BulletPlaybook())
    >>> order = Transaction(id="t1", facts={"amount": 900, "vpn": True, "emulator": True, "account_age_days": 1})
    >>> decision = asyncio.run(learner.decide(order))
    >>> str(decision.verdict), round(decision.probability, 2), decision.cited
    ('DECLINE', 0.91, ())
    >>> decision.reasons[0].text, decision.reasons[0].contribution
    ('an emulator', 1.3)
    """

    id: str
    """Made from the transaction, the revision and the settings."""
    transaction: Transaction
    """What was decided."""
    node: str = DEFAULT_NODE
    """The part of the playbook that was used."""
    verdict: Verdict
    """The decision."""
    probability: float = Field(ge=0, le=1)
    """The probability of fraud."""
    threshold: float = Field(ge=0, le=1)
    """The probability from which on transactions are declined."""
    base: float
    """Log-odds before any reason is added."""
    reasons: tuple[Reason, ...] = ()
    """What it rests on."""
    facts: dict[str, Fact] = Field(default_factory=dict)
    """All facts used: those given and those read from the text."""
    unread: tuple[str, ...] = ()
    """Parts of the text in which no fact was found."""
    reader: str = ""
    """The version of the fact reader; empty in old decisions."""
    revision: int
    """The revision of the playbook it was made with."""
    selection: SelectionTrace = SelectionTrace()
    """How the bullets were selected."""
    model: str = "embedded"
    """What decided: a language model by name, or the embedded engine."""
    probability_from: ProbabilityFrom = ProbabilityFrom.FITTED
    """Where the probability comes from."""
    odds: float | None = None
    """Log-odds of the two verdict tokens, if the model gave them; or its opinion that was added to the engine's."""
    engine_odds: float | None = None
    """Log-odds of the embedded engine, if a model's opinion was added to them."""
    prompt: str = ""
    """Name and version of the prompt, if a model decided."""
    usage: CallUsage | None = None
    """What the model call used and cost."""
    fallback: str = ""
    """Why the configured model did not decide."""
    selection_fallback: str = ""
    """Why the configured embedder was not used. The trace names the one that was."""
    engine: str = ""
    """The version of the embedded engine, if it decided and the decision can be computed again."""
    digest: str = ""
    """Of the trace and the reasons. The ledger keeps it in their place."""
    familiarity: float | None = None
    """The share of what the playbook relies on that was known of the transaction; None if nothing was learnt. Like the
    trace, it is not recorded with decisions of the embedded engine: `Learner.explain` computes it again."""

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(self.verdict)
        yield "probability", Plain(f"{self.probability:.3f}")
        yield "threshold", Plain(f"{self.threshold:.3f}")
        yield "transaction", Plain(quoted(self.transaction.id))
        yield None, Plain(f"{len(self.reasons)} reason{'' if len(self.reasons) == 1 else 's'}")
        yield "revision", self.revision
        if self.model != EMBEDDED:
            yield "model", Plain(quoted(self.model))
        if self.fallback:
            yield "fallback", Plain(quoted(self.fallback, hidden=self.transaction.hidden_values))

    def _repr_html_(self) -> str:
        """The verdict and its reasons, for a notebook."""
        hidden = self.transaction.hidden_values
        about = f"{self.verdict}, fraud probability {self.probability:.3f} (declined from {self.threshold:.3f} on)"
        rows = (
            [
                reason.amount.strip(),
                str(reason.kind),
                shown_text(reason.text, 300, hidden=hidden),
                shown_text(reason.bullet_id or ""),
            ]
            for reason in self.reasons
        )
        made = f"Revision {self.revision}, decided by {shown_text(self.model)}."
        return block(
            f"Decision on {shown_text(self.transaction.id)}: {about}",
            table(["log-odds", "kind", "reason", "bullet"], rows),
            line(f"Before any reason: {self.base:+.2f}. {made}"),
            line(f"Fallback: {shown_text(self.fallback, 300, hidden=hidden)}" if self.fallback else ""),
        )

    @property
    def transaction_id(self) -> str:
        """The id of the transaction."""
        return self.transaction.id

    @property
    def cited(self) -> tuple[str, ...]:
        """The ids of the bullets that it rests on: the policy that decided, or else the bullets among its reasons."""
        if self.policy is not None:
            return (self.policy,)
        return tuple(reason.bullet_id for reason in self.reasons if reason.bullet_id is not None)

    @property
    def policy(self) -> str | None:
        """The id of the policy that decided; None if the probability did."""
        return next((reason.bullet_id for reason in self.reasons if reason.kind is ReasonKind.POLICY), None)

    @property
    def amount(self) -> str:
        """The amount as text; blank if it is unknown."""
        amount = self.facts.get("amount")
        return f"{amount:,.2f}".removesuffix(".00") if isinstance(amount, float) else ""

    @property
    def main_reason(self) -> str:
        """The largest reason for the verdict. If none speaks for it, the one that it was given despite."""
        if not self.facts.keys() - {UNFAMILIAR}:
            return "nothing could be read from this: the verdict is the one for an unknown case"
        if self.unfamiliar:
            return "unfamiliar: none of the facts that the playbook relies on is known"
        side = {Verdict.DECLINE: 1, Verdict.APPROVE: -1, Verdict.REVIEW: 0}[self.verdict]
        speaking = [reason.text for reason in self.reasons if side * (reason.contribution or 0.0) >= 0]
        despite = (f"despite: {reason.text}" for reason in self.reasons)
        return [*speaking, *despite, "no bullet applies: the probability is that of an ordinary case"][0]

    @property
    def unfamiliar(self) -> bool:
        """Whether none of the facts that the playbook relies on was known of the transaction."""
        return UNFAMILIAR in self.facts

    @property
    def has_trace(self) -> bool:
        """Whether the stages of its selection are at hand. In a recorded decision they may have to be computed."""
        return bool(self.selection.stages)

    def same_as(self, other: Decision) -> bool:
        """Whether the other is the same decision, apart from usage, fallback of the embedder and familiarity.

        Of two decisions that can be computed again, the digests are compared in place of trace and reasons. Those of
        different versions of the engine are the same if they are but for the last digits of what was recorded.
        """
        if self.digest and other.digest and self.engine != other.engine:
            return self._agrees_with(other)
        if self.digest or other.digest:
            mine = self.verdict, self.probability, self.digest
            return mine == (other.verdict, other.probability, other.digest)
        ignored: dict[str, Any] = {"usage": None, "selection_fallback": "", "familiarity": None}
        return self.model_copy(update=ignored) == other.model_copy(update=ignored)

    def _agrees_with(self, other: Decision) -> bool:
        """Whether both come to the same with the same bullets, apart from the last digits of their figures."""
        mine, others = (
            {None: made.probability} | {one.bullet_id: one.contribution or 0.0 for one in made.reasons if one.bullet_id}
            for made in (self, other)
        )
        return (
            self.verdict is other.verdict
            and mine.keys() == others.keys()
            and all(math.isclose(mine[name], others[name], rel_tol=1e-6, abs_tol=1e-9) for name in mine)
        )


def decision_id(transaction: Transaction, node: str, model: str, selection: SelectionTrace) -> str:
    """An id made from the transaction, the revision and the settings, so that deciding twice records one decision."""
    how = (str(selection.revision), str(selection.seed), selection.embedder, selection.settings)
    text = "\x00".join((transaction.model_dump_json(), node, model, *how))
    return "d-" + hashlib.sha256(text.encode()).hexdigest()[:16]


FORMAT = 1
"""The version of compact records. It is part of the setup, so that one file may have several."""


@dataclass(frozen=True, slots=True)
class Common:
    """A piece of JSON that many records refer to by its key."""

    key: int
    body: str

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Common:
        """The piece with this content. Its key follows from the content."""
        body = to_json(content)
        digest = hashlib.blake2b(body, digest_size=8).digest()
        return cls(int.from_bytes(digest, "big", signed=True), body.decode())


class DecisionRecord(NamedTuple):
    """A recorded decision. `decision` reads it."""

    id: str
    transaction_id: str
    verdict: str
    probability: float
    revision: int
    body: str
    """JSON: what is peculiar to a compact record, or the whole decision."""
    setup: Common | None = None
    """Who decided and how; None if the decision is kept whole."""
    names: Common | None = None
    """The names of its facts and entities; None if the decision is kept whole."""

    def __repr__(self) -> str:
        about = f"{quoted(self.id)}, transaction={quoted(self.transaction_id)}, {self.verdict}"
        return f"DecisionRecord({about}, probability={self.probability:.3f}, revision={self.revision})"

    @classmethod
    def whole(cls, decision: Decision) -> DecisionRecord:
        """The record of a decision that cannot be computed again. Raises StoreError if it would not read back."""
        body = decision.model_dump_json()
        failure = f"decision {decision.id} on {decision.transaction.id} cannot be kept, nothing was written"
        read_stored(Decision.model_validate_json, body, failure)
        return cls(
            decision.id, decision.transaction.id, str(decision.verdict), decision.probability, decision.revision, body
        )

    @property
    def node(self) -> str:
        """The node that decided."""
        return self.decision.node if self.setup is None else _content(self.setup)["node"]

    def cites(self, bullet_id: str) -> bool:
        """Whether it rests on a bullet. Most records are told by their text, without being parsed."""
        return to_json(bullet_id).decode() in self.body and bullet_id in self.decision.cited

    @property
    def basis(self) -> tuple[dict[str, FactValue], tuple[str, ...]]:
        """The facts that it was decided on, and what was not understood of its text: all that deciding again needs."""
        if self.setup is None or self.names is None:
            whole = self.decision
            return dict(whole.facts), whole.unread
        names, kept = _content(self.names), json.loads(self.body)
        facts = dict(zip([*names["given"], *names["more"]], kept["values"], strict=True))
        return facts, tuple(kept.get("unread", ()))

    @property
    def decision(self) -> Decision:
        """The decision, as far as it is recorded.

        A compact record has no trace and no texts of reasons: `Learner.explain` computes them again.
        """
        if self.setup is None or self.names is None:
            return read_stored(Decision.model_validate_json, self.body, f"decision {self.id} cannot be read")
        setup, names, kept = _content(self.setup), _content(self.names), json.loads(self.body)
        values: list[FactValue] = kept["values"]
        given = names["given"]
        transaction = construct_unchecked(
            Transaction,
            id=self.transaction_id,
            time=time_of(kept.get("time", UNKNOWN)),
            facts=dict(zip(given, values, strict=False)),
            text=kept.get("text", ""),
            entities=dict(zip(names["entities"], kept.get("entities", ()), strict=True)),
        )
        return construct_unchecked(
            Decision,
            id=self.id,
            transaction=transaction,
            node=setup["node"],
            verdict=Verdict(self.verdict),
            probability=self.probability,
            threshold=kept["threshold"],
            base=kept["base"],
            reasons=_reasons(kept),
            facts=dict(zip([*given, *names["more"]], values, strict=True)),
            unread=tuple(kept.get("unread", ())),
            reader=setup["reader"],
            revision=self.revision,
            selection=construct_unchecked(
                SelectionTrace,
                revision=self.revision,
                seed=setup["seed"],
                embedder=setup["embedder"],
                settings=setup["settings"],
            ),
            engine=setup["engine"],
            digest=kept["digest"],
        )


def _reasons(kept: Mapping[str, Any]) -> tuple[Reason, ...]:
    """The reasons of a compact record, without their texts."""
    deciding = [(ReasonKind.POLICY, kept["policy"], None)] if "policy" in kept else []
    weighed = [(ReasonKind.BULLET, bullet_id, amount) for bullet_id, amount in kept["picks"] if amount]
    return tuple(
        construct_unchecked(Reason, kind=kind, text="", contribution=amount, bullet_id=bullet_id)
        for kind, bullet_id, amount in (*deciding, *weighed)
    )


def compact_record(
    transaction: Transaction,
    facts: Mapping[str, FactValue],
    unread: Sequence[str],
    *,
    setup: Common,
    revision: int,
    verdict: Verdict,
    probability: float,
    result: Mapping[str, Any],
) -> DecisionRecord:
    """The record of a decision that can be computed again. Its id follows from its content.

    So deciding a transaction twice with the same playbook gives the same id.
    """
    given = transaction.facts
    more = [name for name in facts if name not in given] if len(facts) > len(given) else []
    names = _names(tuple(given), tuple(more), tuple(transaction.entities))
    content: dict[str, Any] = {"values": [*given.values(), *(facts[name] for name in more)]}
    if transaction.time is not None:
        content["time"] = micros_of(transaction.time)
    if transaction.text:
        content["text"] = transaction.text
    if transaction.entities:
        content["entities"] = list(transaction.entities.values())
    if unread:
        content["unread"] = unread
    content.update(result)
    body = to_json(content)
    about = f"{transaction.id}\x00{revision}\x00{setup.key}\x00{names.key}\x00".encode()
    made_id = "d-" + hashlib.blake2b(about + body, digest_size=8).hexdigest()
    return DecisionRecord(made_id, transaction.id, str(verdict), probability, revision, body.decode(), setup, names)


@lru_cache(maxsize=4096)
def _names(given: tuple[str, ...], more: tuple[str, ...], entities: tuple[str, ...]) -> Common:
    return Common.of({"given": given, "more": more, "entities": entities})


@lru_cache(maxsize=4096)
def _content(common: Common) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(common.body)
    return content
