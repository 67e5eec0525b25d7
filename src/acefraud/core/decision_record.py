"""A decision as the ledger keeps it: what cannot be computed again, in a compact form.

Decisions of the embedded engine can be computed again from the transaction, the revision of the playbook and the setup
of the selector. So their record has the facts once, the picked bullets with their contributions, the verdict, the
probability and a digest of everything else. What many decisions have in common, the names of their facts and the setup,
is kept once for all of them (`Common`). Other decisions are kept whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import to_json

from acefraud.core.construct import construct_unchecked
from acefraud.core.decision import Decision, ProbabilityFrom, Reason, ReasonKind, SelectionTrace
from acefraud.core.timestamps import UNKNOWN, micros_of, time_of
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.display.short_repr import quoted
from acefraud.errors import StoreError
from acefraud.settings import EMBEDDED

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
        _parsed(body, f"decision {decision.id} on {decision.transaction.id} cannot be kept, nothing was written")
        return cls(
            decision.id, decision.transaction.id, str(decision.verdict), decision.probability, decision.revision, body
        )

    @property
    def node(self) -> str:
        """The node that decided."""
        node: str = self.decision.node if self.setup is None else _content(self.setup)["node"]
        return node

    @property
    def cited(self) -> tuple[str, ...]:
        """The ids of the bullets that it rests on (`Decision.cited`), read from the record alone."""
        if self.setup is None:
            return self.decision.cited
        kept = json.loads(self.body)
        return (kept["policy"],) if "policy" in kept else tuple(one for one, amount in kept["picks"] if amount)

    def cites(self, bullet_id: str) -> bool:
        """Whether it rests on a bullet. Most records are told by their text, without being parsed."""
        return to_json(bullet_id).decode() in self.body and bullet_id in self.cited

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
            return _parsed(self.body, f"decision {self.id} cannot be read")
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
                stages=(),
                scores=(),
                revision=self.revision,
                seed=setup["seed"],
                embedder=setup["embedder"],
                settings=setup["settings"],
            ),
            model=EMBEDDED,
            probability_from=ProbabilityFrom.FITTED,
            odds=None,
            prompt="",
            usage=None,
            fallback="",
            selection_fallback="",
            engine=setup["engine"],
            digest=kept["digest"],
            familiarity=None,
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


def _parsed(body: str, failure: str) -> Decision:
    try:
        return Decision.model_validate_json(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise StoreError(f"{failure}: {'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}") from error
