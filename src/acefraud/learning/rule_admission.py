"""How a rule that a person writes gets into a playbook: read, previewed and measured, and only then admitted.

The command line and services share these functions. Each change has an author, and is written with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from acefraud.core.bullet import DEFAULT_NODE, MAX_CONTENT, Bullet, NewBullet, Policy, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict
from acefraud.display.short_repr import ShortRepr
from acefraud.errors import DuplicateRule, InputError, RuleNotUnderstood
from acefraud.learning.learner import Learner
from acefraud.learning.preview import Preview
from acefraud.rules.bullet_text import Reading, read_bullet_with
from acefraud.rules.english import say
from acefraud.rules.reader.advice import MOST_SUGGESTIONS, NO_ADVICE, Advice, advise, as_suggestions
from acefraud.storage.changes import Change, bullet_in, plan_addition, plan_edit, plan_status_change
from acefraud.storage.playbook import BulletPlaybook

TAKEN_AS_POLICY = "Taken as a policy, because its words are an order; as evidence, it would be weighed with others."
"""What to say of a rule that is a policy though nobody said "always"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """Whether a rule becomes a policy, if its words do not order it, and which."""

    always: Verdict | None = None
    """What it decides by itself."""
    priority: int | None = None
    """The highest decides; None means the usual one of its verdict."""
    final: bool = False
    """Whether nothing overrides it. Only a policy that declines can be final."""
    as_evidence: bool = False
    """Whether a rule that begins with an order, as "block ..." does, is weighed with others all the same."""


EVIDENCE = PolicyOptions()
"""A rule is evidence, unless its words order what to do."""


@dataclass(frozen=True, slots=True, repr=False)
class Previewed(ShortRepr):
    """What a change of one rule would do. Nothing was written."""

    bullet: Bullet
    """As it would be."""
    preview: Preview


@dataclass(frozen=True, slots=True, repr=False)
class Admitted(ShortRepr):
    """A rule that was added or edited."""

    bullet: Bullet
    """As it is now, with what was measured of it."""
    remarks: tuple[str, ...]
    """What its author should know."""
    preview: Preview | None
    """What it does to past decisions and labelled cases; None if that was not asked for."""


def read_rule(playbook: BulletPlaybook, text: str) -> Reading:
    """How a rule is understood in terms of the facts that a playbook has seen. Nothing is stored.

    Raises InputError if the text is empty, too long or not valid Unicode.

    >>> reading = read_rule(BulletPlaybook(), "Amount above 5,000 and an emulator: decline")
    >>> str(reading.condition), str(reading.argues)
    ('amount > 5000 and emulator is true', 'DECLINE')
    """
    check_rule_text(text)
    return read_bullet_with(text, playbook.vocabulary())


def advise_on(learner: Learner, text: str, reworded: Sequence[str] = ()) -> Advice:
    """What to tell the author of a rule that is refused: what was read, what was not, and what can be said instead.

    Each suggestion tells what it would fire on among the cases that the playbook remembers. Wordings of a model come
    first; what counts is how they are read here.

    >>> advise_on(Learner(BulletPlaybook()), "decline purple orders over 900").unread
    ('purple',)
    """
    vocabulary = learner.playbook.vocabulary()
    advice = advise(text, vocabulary)
    found = {each.condition: each for each in (*as_suggestions(reworded, vocabulary), *advice.suggestions)}
    measured = (replace(each, fires_on=_fires_on(learner, each.condition)) for each in found.values())
    return replace(advice, suggestions=tuple(islice(measured, MOST_SUGGESTIONS)))


def _fires_on(learner: Learner, condition: Condition) -> str:
    measured = learner.measure(condition)
    return "" if measured is None else f"fires on {measured.shown.support:,} cases: {measured.in_words()}"


def reading_as_json(reading: Reading, advice: Advice = NO_ADVICE) -> dict[str, Any]:
    """A reading for scripts and services.

    >>> reading_as_json(read_rule(BulletPlaybook(), "decline amnts over 900"))["not_understood"]
    ['amnts']
    """
    condition, orders = reading.condition, reading.rule.orders
    policy = f"always {orders.lower()}" if orders else "evidence"
    return {
        "condition": None if condition is None else str(condition),
        "english": None if condition is None else say(condition),
        "argues": reading.argues,
        "action": "note" if condition is None else policy,
        "assumed": list(reading.rule.assumed),
        "not_understood": list(reading.rule.not_understood),
        "did_you_mean": list(reading.rule.did_you_mean),
        "readings": [str(condition) for condition in reading.rule.readings],
        "read": list(advice.read),
        "not_read": list(advice.unread),
        "missing": list(advice.missing),
        "suggestions": [
            {"text": each.text, "without": list(each.without), "fires_on": each.fires_on} for each in advice.suggestions
        ],
    }


def preview_rule(
    learner: Learner,
    text: str,
    *,
    node: str = DEFAULT_NODE,
    policy: PolicyOptions = EVIDENCE,
    as_note: bool = False,
    who: str,
) -> Previewed:
    """What adding a rule would do to past decisions and labelled cases.

    >>> previewed = preview_rule(Learner(BulletPlaybook()), "An emulator: decline", who="ana")
    >>> str(previewed.bullet.condition), previewed.preview.decisions
    ('emulator is true', 0)
    """
    new, _ = _bullet_of(learner, text, policy, as_note=as_note)
    return _previewed(learner, plan_addition(learner.playbook, new, node, who=who))


def admit_rule(
    learner: Learner,
    text: str,
    *,
    node: str = DEFAULT_NODE,
    policy: PolicyOptions = EVIDENCE,
    as_note: bool = False,
    with_preview: bool = True,
    who: str,
    why: str = "",
) -> Admitted:
    """Add a rule, once it was read, previewed and measured on the cases that the playbook remembers.

    A preview decides thousands of past cases again, which takes a second or so: leave it out if nobody looks at it.
    Raises RuleNotUnderstood if a part of the rule is not understood, unless it may be kept as a note, and DuplicateRule
    if the playbook already says it.

    >>> learner = Learner(BulletPlaybook())
    >>> admitted = admit_rule(learner, "An emulator: decline", who="ana", why="seen twice this week")
    >>> admitted.bullet.id in learner.playbook
    True
    >>> admit_rule(learner, "a purple card: decline", who="ana")
    Traceback (most recent call last):
    acefraud.errors.RuleNotUnderstood: not understood: 'purple'.
    """
    playbook = learner.playbook
    new, reading = _bullet_of(learner, text, policy, as_note=as_note, why=why)
    planned = plan_addition(playbook, new, node, who=who)
    preview = _previewed(learner, planned).preview if with_preview else None
    (bullet_id,) = learner.curator.merge_bullets([new], node, playbook, who=who, why=why)
    if bullet_id is None:
        existing = learner.curator.said_already(new, node, playbook)
        where = f" in {existing.id} ({existing.status}): {existing.content}" if existing else ""
        raise DuplicateRule(f"the playbook already says this{where}", bullet_id=existing.id if existing else "")
    bullet = bullet_in(playbook, bullet_id)
    is_ordered = bullet.policy is not None and policy.always is None and reading.rule.always is None
    hint = [*reading.rule.assumed, *([TAKEN_AS_POLICY] if is_ordered else [])]
    if node != learner.options.node:
        hint.append(f"Nothing here decides at the node '{node}': transactions are decided at '{learner.options.node}'.")
    return Admitted(bullet, (*learner.remarks_on(bullet), *hint), preview)


def preview_edit(
    learner: Learner, bullet_id: str, text: str, *, policy: PolicyOptions = EVIDENCE, as_note: bool = False
) -> Previewed:
    """What other words for a rule would do to past decisions and labelled cases."""
    new, _ = _bullet_of(learner, text, policy, as_note=as_note, edits=bullet_id)
    return _previewed(learner, plan_edit(learner.playbook, bullet_id, new))


def edit_rule(
    learner: Learner,
    bullet_id: str,
    text: str,
    *,
    policy: PolicyOptions = EVIDENCE,
    as_note: bool = False,
    with_preview: bool = True,
    who: str,
    why: str = "",
) -> Admitted:
    """Change what a rule says, once the words were read, previewed and measured. Its counters stay.

    A policy stays a policy. Raises RuleNotUnderstood as `admit_rule` does.

    >>> learner = Learner(BulletPlaybook())
    >>> bullet = admit_rule(learner, "Amount above 5,000: decline", who="ana").bullet
    >>> edited = edit_rule(learner, bullet.id, "Amount above 6,000: decline", who="ana", why="5,000 was too low")
    >>> edited.bullet.id == bullet.id, str(edited.bullet.condition)
    (True, 'amount > 6000')
    """
    playbook = learner.playbook
    new, reading = _bullet_of(learner, text, policy, as_note=as_note, why=why, edits=bullet_id)
    preview = _previewed(learner, plan_edit(playbook, bullet_id, new)).preview if with_preview else None
    playbook.change(lambda: plan_edit(playbook, bullet_id, new), who=who, why=why)
    bullet = bullet_in(playbook, bullet_id)
    return Admitted(bullet, (*learner.remarks_on(bullet), *reading.rule.assumed), preview)


def preview_status(learner: Learner, bullet_id: str, status: Status | None = None) -> Previewed:
    """What another status of a rule would do to past decisions and labelled cases.

    Without a `status`: what retiring a rule in use would do, or approving a candidate or a retired rule.
    """
    bullet = bullet_in(learner.playbook, bullet_id)
    if status is None:
        status = Status.ACTIVE if bullet.status in (Status.CANDIDATE, Status.RETIRED) else Status.RETIRED
    change = plan_status_change(learner.playbook, bullet_id, status, "")
    if not change.payloads:
        return Previewed(bullet, learner.preview_change((), bullet))
    return _previewed(learner, change)


def _previewed(learner: Learner, change: Change[Any]) -> Previewed:
    """What a change of one bullet would do."""
    (payload,) = change.payloads
    bullet = learner.playbook.snapshot_with(change.payloads).bullets[payload.subject]
    return Previewed(bullet, learner.preview_change(change.payloads, bullet))


def _bullet_of(
    learner: Learner, text: str, options: PolicyOptions, *, as_note: bool, why: str = "", edits: str = ""
) -> tuple[NewBullet, Reading]:
    """The bullet that words become, measured on the cases that the playbook remembers; and how they were read.

    If they edit a policy, it stays a policy, unless the words are a note. Raises RuleNotUnderstood if a rule is not
    understood, unless it may be a note.
    """
    before = bullet_in(learner.playbook, edits).policy if edits else None
    reading = read_rule(learner.playbook, text)
    condition, argues, rule = reading.condition, reading.argues, reading.rule
    if condition is None and not as_note:
        raise RuleNotUnderstood(
            rule.problem,
            not_understood=rule.not_understood,
            did_you_mean=rule.did_you_mean,
            advice=advise_on(learner, text).lines,
        )
    policy = _policy(reading, options, ordered=rule.always if edits or options.as_evidence else rule.orders)
    if policy is None and before is not None and condition is not None and not options.as_evidence:
        if argues is not None and before.verdict not in (argues, Verdict.REVIEW):
            raise InputError(f"the words argue for {argues}; {edits} is a policy: {before.words}")
        policy = before
    new = NewBullet(
        text,
        Source.MANUAL,
        condition=condition,
        argues=argues if policy is None or policy.verdict is Verdict.REVIEW else policy.verdict,
        evidence=None if condition is None else learner.measure(condition),
        policy=policy,
        why=why,
    )
    return new, reading


def _policy(reading: Reading, options: PolicyOptions, *, ordered: Verdict | None) -> Policy | None:
    """The policy that a rule becomes; None if it is evidence or a note. `ordered`: what its words tell to do."""
    verdict = options.always or ordered
    if reading.condition is None:
        if options.always:
            raise InputError("a policy needs a condition; a note cannot decide")
        return None
    if options.as_evidence and verdict is not None:
        raise InputError(f"as evidence it cannot always {verdict.lower()}", field="as_evidence")
    if verdict is None:
        if options.priority is not None or options.final:
            raise InputError("a priority, and that it is final, are for policies: always decline, approve or review")
        return None
    if reading.argues is not None and verdict is not Verdict.REVIEW and reading.argues is not verdict:
        raise InputError(f"the words argue for {reading.argues}, and the policy would always {verdict.lower()}")
    if options.final and verdict is not Verdict.DECLINE:
        raise InputError("that nothing overrides it is for policies that decline", field="final")
    return Policy(verdict=verdict, priority=options.priority, final=options.final)


def check_rule_text(text: str) -> None:
    """Raise InputError if this cannot be the words of a rule: an empty text, one too long, or not valid Unicode."""
    if not text.strip():
        raise InputError("expected what the bullet says, got an empty text", field="content")
    if len(text) > MAX_CONTENT:
        raise InputError(f"expected at most {MAX_CONTENT:,} characters, got {len(text):,}", field="content")
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        place = problem.start + 1
        raise InputError(f"expected valid UTF-8, got something else at character {place}", field="content") from None
