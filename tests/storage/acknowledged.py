"""What several writers were told was written, and whether the ledger holds it in some serial order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from acefraud.core.bullet import DEFAULT_NODE, Bullet, Status
from acefraud.core.events import THE_ENGINE, Credit, Event, OutcomeHeard
from acefraud.core.ledger import Entry, Ledger
from acefraud.core.outcome import Judgement, Outcome, Ruling
from acefraud.core.playbook import PlaybookState
from acefraud.curation.curator import Curator
from acefraud.storage.playbook import BulletPlaybook


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that somebody asked for, and the bullet that it was about in the end."""

    kind: str
    bullet_id: str | None = None
    content: str = ""
    status: Status = Status.ACTIVE
    who: str = THE_ENGINE


@dataclass(frozen=True, slots=True)
class Done:
    """What was acknowledged as one: a single act, or all those of a step. Its events bear its token as their reason."""

    token: str
    acts: tuple[Act, ...]


def perform(act: Act, playbook: BulletPlaybook, curator: Curator, token: str) -> Act:
    """Do it; what came of it."""
    if act.kind == "add":
        return replace(act, bullet_id=playbook.add_bullet(act.content, who=act.who, why=token))
    if act.kind == "merge":
        merged = curator.merge_bullet(act.content, DEFAULT_NODE, playbook, who=act.who, why=token)
        return replace(act, bullet_id=merged)
    assert act.bullet_id is not None
    if act.kind == "edit":
        playbook.edit_bullet(act.bullet_id, act.content, who=act.who, why=token)
    elif act.kind == "move":
        playbook.set_status(act.bullet_id, act.status, who=act.who, why=token)
    else:
        playbook.record([outcome_of(act.bullet_id, token)], why=token)
    return act


def outcome_of(bullet_id: str, transaction: str) -> OutcomeHeard:
    return OutcomeHeard(
        outcome=Outcome(transaction_id=transaction, is_fraud=True),
        judgement=Judgement(ruling=Ruling.CORRECT),
        credits=(Credit(bullet_id=bullet_id, helpful=1, selected=1, fired=1, fired_frauds=1),),
    )


@dataclass(slots=True)
class Plain:
    """A bullet without any machinery."""

    content: str
    status: Status
    status_by: str
    helpful: int = 0


def in_some_order(done: Iterable[Done], events: Sequence[Event]) -> dict[str, Plain]:
    """The bullets that acknowledged acts make, done one after the other in the order of the ledger.

    AssertionError where the ledger has something that nobody was told of, or lacks what somebody was told of.
    """
    known = {each.token: each for each in done}
    order = [event.why for index, event in enumerate(events) if not index or events[index - 1].why != event.why]
    assert len(set(order)) == len(order), "what belongs together stands together, once"
    assert set(order) <= set(known), f"nobody was told of {sorted(set(order) - set(known))[:5]}"
    bullets: dict[str, Plain] = {}
    for token in order:
        for act in known[token].acts:
            MAKES[act.kind](act, bullets)
    for token in known.keys() - set(order):
        assert all(_may_do_nothing(act) for act in known[token].acts), f"nothing is left of {known[token]}"
    return bullets


def _may_do_nothing(act: Act) -> bool:
    return act.kind == "move" or (act.kind == "merge" and act.bullet_id is None)


def _add(act: Act, bullets: dict[str, Plain]) -> None:
    assert act.bullet_id is not None
    assert act.bullet_id not in bullets, f"{act} would replace another bullet"
    bullets[act.bullet_id] = Plain(act.content, Status.ACTIVE, act.who)


def _merge(act: Act, bullets: dict[str, Plain]) -> None:
    if act.bullet_id is None:
        return
    same = [bullet for bullet in bullets.values() if bullet.content == act.content]
    assert not any(each.status is not Status.RETIRED for each in same), f"{act} was said already"
    if act.bullet_id not in bullets:
        assert not same, f"{act} was said, and retired"
        _add(act, bullets)
        return
    back = bullets[act.bullet_id]
    assert (back.status, back.status_by) == (Status.RETIRED, THE_ENGINE)
    bullets[act.bullet_id] = replace(back, content=act.content, status=Status.ACTIVE, status_by=act.who)


def _edit(act: Act, bullets: dict[str, Plain]) -> None:
    bullets[str(act.bullet_id)].content = act.content


def _move(act: Act, bullets: dict[str, Plain]) -> None:
    bullet = bullets[str(act.bullet_id)]
    if bullet.status is not act.status:
        bullet.status, bullet.status_by = act.status, act.who


def _use(act: Act, bullets: dict[str, Plain]) -> None:
    bullets[str(act.bullet_id)].helpful += 1


MAKES: dict[str, Callable[[Act, dict[str, Plain]], None]] = {
    "add": _add,
    "merge": _merge,
    "edit": _edit,
    "move": _move,
    "use": _use,
}


def plain(bullets: Iterable[Bullet]) -> dict[str, Plain]:
    return {
        bullet.id: Plain(bullet.content, bullet.status, bullet.status_by, bullet.helpful_count) for bullet in bullets
    }


def folded(ledger: Ledger) -> dict[str, Plain]:
    """The bullets as all events make them, from the first on."""
    state = PlaybookState()
    for event in ledger.read():
        state.apply(event)
    return plain(state.table.bullets)


class Meanwhile:
    """A ledger in which something happens right before the next writing; another handle may share what is below."""

    def __init__(self, below: Ledger) -> None:
        self.below = below
        self.acts: list[Callable[[], object]] = []

    def append(self, entry: Entry) -> list[Event]:
        if self.acts:
            self.acts.pop(0)()
        return self.below.append(entry)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.below, name)
