"""Digests of what a playbook holds and of what it decides, which tell whether two machines agree."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from itertools import groupby
from typing import Final, Literal

import numpy as np
from pydantic import BaseModel, Field, model_validator

from acefraud.core.context_facts import ListItem
from acefraud.core.events import THE_ENGINE
from acefraud.core.playbook import CheckpointHeader, Snapshot
from acefraud.engine.decider import ENGINE, decide_embedded
from acefraud.engine.options import LearnerOptions
from acefraud.errors import InputError
from acefraud.facts.extraction import KnownFacts
from acefraud.learning.deciding import not_repeatable
from acefraud.learning.training import Progress
from acefraud.roles.embedded.embedder import DEFAULT_EMBEDDER, key_of
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.sql_ledger import SqlLedger

USUAL_SAMPLE: Final = 1_000
"""Decisions that are made again unless more are wanted."""
_AT_ONCE: Final = 256
_MARK: Final = 4
"""Bytes kept of the digest of each event, to tell which one differs. The digest of the ledger covers all bytes."""
_selector = cache(lambda embedder, seed: HybridSelector(embedding_model=embedder, seed=seed))


class DecisionsDigest(BaseModel, frozen=True, extra="forbid"):
    """Decisions of the embedded engine, made again from the ledger."""

    wanted: int | None = Field(ge=0)
    """None for all."""
    recorded: int
    made_again: int
    same: int
    """How many of these gave what is recorded."""
    first_different: str | None
    """The id of the first one that did not."""
    not_repeatable: dict[str, int]
    """How many of the wanted ones cannot be made again, by reason."""
    digest: str
    """Of the transaction, verdict, probability, cited bullets and trace of each."""


class Attestation(BaseModel, frozen=True, extra="forbid"):
    """What a playbook holds and decides, as digests to compare with those of another machine."""

    format: Literal["acefraud attestation 1"]
    acefraud: str
    engine: str
    last_event: int = Field(ge=0)
    ledger: str
    """The digest of all events up to the last, as they are stored."""
    playbook: str
    """The digest of what was learnt and set, without times of writing and names of people."""
    bullets: int
    decisions: DecisionsDigest
    events: str = Field(pattern="^[0-9a-f]*$")
    """8 digits of the digest of each event, in the order of their numbers; zeros where a decision was archived."""

    @model_validator(mode="after")
    def _check_events(self) -> Attestation:
        if len(self.events) != 2 * _MARK * self.last_event:
            raise ValueError(f"events: expected {2 * _MARK} digits for each of {self.last_event:,}")
        return self


def attest(
    playbook: BulletPlaybook,
    decisions: int | None = USUAL_SAMPLE,
    *,
    until: int | None = None,
    progress: Progress = lambda _: None,
) -> Attestation:
    """Attest a playbook in a file or a database as it is, or as it was after the event `until`. Nothing is written.

    So many `decisions` are made again, evenly over the ledger; None for all. `progress` is called with the share done.

    >>> from tempfile import TemporaryDirectory
    >>> from acefraud import open_playbook
    >>> with TemporaryDirectory() as folder, open_playbook(f"{folder}/book.db") as playbook:
    ...     _ = playbook.add_bullet("VPN: decline")
    ...     made = attest(playbook)
    >>> made.last_event, made.bullets, made.playbook[:8]
    (1, 1, '94ea3787')
    """
    if not isinstance(playbook.ledger, SqlLedger):
        raise InputError("expected a playbook in a file or a database")
    last = playbook.seq if until is None else until
    snapshot = playbook.snapshot() if last == playbook.seq else playbook.snapshot_at(last)
    whole, marks, compact = blake2b(digest_size=32), bytearray(_MARK * last), array("q")
    for seq, content, is_compact in playbook.ledger.stored(last):
        digest = blake2b(content, digest_size=32).digest()
        whole.update(digest)
        marks[_MARK * (seq - 1) : _MARK * seq] = digest[:_MARK]
        if is_compact:
            compact.append(seq)
        if seq % 1_000 == 0:
            progress(seq / last / 2)
    return Attestation(
        format="acefraud attestation 1",
        acefraud=version("acefraud"),
        engine=ENGINE,
        last_event=last,
        ledger=whole.hexdigest(),
        playbook=_digest(_learnt(snapshot)).hex(),
        bullets=len(snapshot.bullets),
        decisions=_made_again(playbook, playbook.ledger, compact, decisions, lambda share: progress((1 + share) / 2)),
        events=marks.hex(),
    )


def _learnt(snapshot: Snapshot) -> list[object]:
    """What two playbooks share that learnt the same from the same data, whenever that was and whoever did it."""
    lists = {
        name: listed.changed(dict(map(_listed, listed.items.values())), {}) for name, listed in snapshot.lists.items()
    }
    frame = CheckpointHeader(
        calibrations=dict(snapshot.calibrations),
        mapping=snapshot.mapping,
        scales=dict(snapshot.scales),
        lists=lists,
        reviews=dict(snapshot.reviews),
    )
    bullets = [
        bullet.model_copy(update={"added_at": None, "status_by": THE_ENGINE * (bullet.status_by == THE_ENGINE)})
        for bullet in snapshot.table.bullets
    ]
    return [each.model_dump(mode="json", exclude_defaults=True) for each in (frame, *bullets)]


def _listed(item: ListItem) -> tuple[str, ListItem]:
    """A value on a list. One that an outcome put there may expire so many days after the time of writing."""
    return item.value, item.model_copy(update={"who": "", "until": None if item.transaction_id else item.until})


def _made_again(
    playbook: BulletPlaybook, ledger: SqlLedger, compact: Sequence[int], wanted: int | None, progress: Progress
) -> DecisionsDigest:
    count = len(compact) if wanted is None else min(wanted, len(compact))
    chosen = [compact[place * len(compact) // count] for place in range(count)]
    whole, different, failed = blake2b(digest_size=32), list[str](), Counter[str]()
    for start in range(0, count, _AT_ONCE):
        records = ledger.decisions_numbered(chosen[start : start + _AT_ONCE])
        for (revision, _), together in groupby(records, key=lambda record: (record.revision, record.setup)):
            decisions = [record.decision for record in together]
            trace, options = decisions[0].selection, LearnerOptions(node=decisions[0].node)
            selector = _selector(key_of(trace.embedder) or DEFAULT_EMBEDDER, trace.seed)
            if reason := not_repeatable(decisions[0], selector, options):
                failed[reason] += len(decisions)
                continue
            known = [KnownFacts(decision.facts, decision.unread) for decision in decisions]
            given = [decision.transaction for decision in decisions]
            again = decide_embedded(given, known, playbook.snapshot_at(revision), selector, options)
            for before, after in zip(decisions, again, strict=True):
                said = (before.transaction_id, after.verdict, after.probability, after.cited, after.digest)
                whole.update(_digest(said))
                if not before.same_as(after):
                    different.append(before.id)
        progress((start + len(records)) / count)
    made_again = count - failed.total()
    return DecisionsDigest(
        wanted=wanted,
        recorded=len(compact),
        made_again=made_again,
        same=made_again - len(different),
        first_different=next(iter(different), None),
        not_repeatable=failed,
        digest=whole.hexdigest(),
    )


def _digest(content: object) -> bytes:
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=32).digest()


Agreement = Literal["same", "different", "continued here", "continued there", "not compared"]


class AttestationCheck(BaseModel, frozen=True):
    """How a playbook compares with an attestation of another machine."""

    ledger: Agreement
    playbook: Agreement
    decisions: Agreement
    differing_events: int
    first_differing_event: int | None
    here: Attestation

    @property
    def agrees(self) -> bool:
        """Whether nothing differs, and the decisions made again here are as recorded. A longer ledger may agree."""
        compared = self.ledger, self.playbook, self.decisions
        return "different" not in compared and self.here.decisions.first_different is None


def check_attestation(
    playbook: BulletPlaybook, there: Attestation, progress: Progress = lambda _: None
) -> AttestationCheck:
    """Compare a playbook with an attestation. A ledger that goes on where the other ends is compared up to there."""
    shared, wanted = min(playbook.seq, there.last_event), there.decisions.wanted
    here = attest(playbook, wanted, until=shared, progress=progress)
    mine, others = (np.frombuffer(bytes.fromhex(each.events)[: _MARK * shared], "u4") for each in (here, there))
    differing = (np.flatnonzero(mine != others) + 1).tolist()
    ledger: Agreement = "same" if shared == playbook.seq else "continued here"
    if shared < there.last_event and not differing:
        ledger = "continued there"
    elif shared < there.last_event or here.ledger != there.ledger:
        ledger = "different"
        here = here if shared == playbook.seq else attest(playbook, wanted, progress=progress)

    def compared(mine: str, other: str) -> Agreement:
        return "not compared" if ledger == "continued there" else "same" if mine == other else "different"

    return AttestationCheck(
        ledger=ledger,
        playbook=compared(here.playbook, there.playbook),
        decisions=compared(here.decisions.digest, there.decisions.digest),
        differing_events=len(differing),
        first_differing_event=next(iter(differing), None),
        here=here,
    )
