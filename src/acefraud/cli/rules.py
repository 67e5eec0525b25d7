"""`acefraud playbook read`, `add`, `edit` and `snooze`: how a rule is written down."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from acefraud.cli.checks import later, unseen_key
from acefraud.cli.console import print_result
from acefraud.cli.options import JsonOption, PlaybookOption, WhoOption, WhyOption
from acefraud.cli.workspace import any_playbook, author, embedded_learner, existing_playbook, playbook_path
from acefraud.core.bullet import DEFAULT_NODE, MAX_CONTENT, Bullet, NewBullet, Source, Status
from acefraud.core.evidence import record_in_words
from acefraud.core.policy import Policy, Snooze
from acefraud.core.transaction import Verdict
from acefraud.curation.curator import Curator
from acefraud.errors import InputError
from acefraud.learning.preview import SHOWN, Preview
from acefraud.rules.bullet_text import Reading, read_bullet_with
from acefraud.rules.english import say, spoken_number
from acefraud.storage import BulletPlaybook
from acefraud.storage.changes import Change, bullet_in, plan_addition, plan_edit, plan_status_change

RuleArgument = Annotated[
    str, typer.Argument(metavar="RULE", help="The rule, in plain English or in the formal syntax.")
]
BulletArgument = Annotated[str, typer.Argument(metavar="BULLET_ID", help="Id of the bullet, as `list` shows it.")]


class Always(StrEnum):
    """What a policy decides."""

    DECLINE = "decline"
    APPROVE = "approve"
    REVIEW = "review"


AlwaysOption = Annotated[
    Always | None, typer.Option("--always", help="Make it a policy: it decides by itself, before anything is scored.")
]
PriorityOption = Annotated[
    int | None,
    typer.Option(
        "--priority", min=0, help="Of a policy. The highest decides. Approve has 300, decline 200, review 100."
    ),
]
FinalOption = Annotated[bool, typer.Option("--final", help="Of a policy that declines: nothing overrides it.")]
PreviewOption = Annotated[
    bool, typer.Option("--preview", help="Show what it would do to past decisions and labelled cases; store nothing.")
]
AsNoteOption = Annotated[
    bool, typer.Option("--as-note", help="Keep words that are not understood as a note for people. It never scores.")
]


def read(rule: RuleArgument, playbook: PlaybookOption = None, json: JsonOption = False) -> None:
    """Show how a rule is understood. Nothing is stored.

    A rule may use the facts that the playbook has seen (`acefraud facts`). It is understood only if every word that
    carries meaning is. Exit code 1 if it is not.

        acefraud playbook read 'Decline gift cards over $300 unless the customer is a VIP' --playbook book.db
    """
    _check(rule)
    with _readable(playbook) as book:
        reading = read_bullet_with(rule, book.vocabulary())
    print_result(as_json(reading), _in_words(reading), json=json)
    if reading.condition is None:
        raise typer.Exit(1)


def _readable(playbook: Path | None) -> BulletPlaybook:
    """The playbook, or an empty one if there is none: a rule can be tried before the first case."""
    return existing_playbook(playbook, read_only=True) if playbook_path(playbook).exists() else BulletPlaybook()


def as_json(reading: Reading) -> dict[str, Any]:
    """A reading for scripts."""
    condition, always = reading.condition, reading.rule.always
    policy = f"always {always.lower()}" if always else "evidence"
    return {
        "condition": None if condition is None else str(condition),
        "english": None if condition is None else say(condition),
        "argues": reading.argues,
        "action": "note" if condition is None else policy,
        "not_understood": list(reading.rule.not_understood),
        "did_you_mean": list(reading.rule.did_you_mean),
        "readings": [str(one) for one in reading.rule.readings],
    }


def _in_words(reading: Reading) -> str:
    if reading.condition is None:
        return f"Not read as a rule: {reading.rule.problem}"
    action = (
        f"always {reading.rule.always.lower()}: a policy" if reading.rule.always else "evidence, weighed with others"
    )
    return "\n".join(
        [
            f"Read as: {say(reading.condition)}",
            f" formal: {reading.condition}",
            f" argues: {reading.argues or 'for nothing'}",
            f" action: {action}",
            *_review_hint(reading),
        ]
    )


def _review_hint(reading: Reading) -> list[str]:
    """What to do about a rule that asks for a review: as evidence it argues for nothing."""
    if not reading.rule.asks_for_review:
        return []
    return ["The words ask for a review: with --always review, such cases go to a person."]


def add(
    rule: RuleArgument,
    playbook: PlaybookOption = None,
    always: AlwaysOption = None,
    priority: PriorityOption = None,
    final: FinalOption = False,
    as_note: AsNoteOption = False,
    preview: PreviewOption = False,
    node: Annotated[str, typer.Option("--node", help="Which agent uses it.")] = DEFAULT_NODE,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Add a rule in plain English or in the formal syntax. Starts a playbook if there is none.

    It is shown back as it was understood and measured on the cases that the playbook remembers. A rule of which a part
    is not understood is refused, or kept as a note with --as-note. A figure that the words only state is a claim. A
    rule is evidence, which is weighed with others; with --always, or if it says "always", it is a policy.

        acefraud playbook add "Amount above 5,000 and an emulator: decline" --playbook book.db
        acefraud playbook add 'amount > 9000 and country not in ("FR", "DE")' --always decline --playbook book.db
    """
    _check(rule)
    with any_playbook(playbook) as book:
        reading = _understood(rule, book, as_note=as_note)
        policy = _policy(reading, always, priority, final)
        if preview:
            change = plan_addition(book, _new(book, rule, reading, policy, why), node, who=author(who))
            _show_preview(book, change, json=json)
            return
        new = _merged(book, rule, reading, policy, node, author(who), why)
        bullet = bullet_in(book, new)
        remarks = embedded_learner(book).remarks_on(bullet) + (_review_hint(reading) if policy is None else [])
    content = {**bullet.model_dump(mode="json"), "remarks": remarks}
    print_result(content, f"added {bullet.id}\n{described(bullet, remarks)}", json=json)


def _merged(
    book: BulletPlaybook, rule: str, reading: Reading, policy: Policy | None, node: str, who: str, why: str
) -> str:
    wanted = _new(book, rule, reading, policy, why)
    (new,) = Curator().merge_bullets([wanted], node, book, who=who, why=why)
    if new is None:
        existing = Curator().said_already(wanted, node, book)
        where = f" in {existing.id} ({existing.status}): {existing.content}" if existing else ""
        raise InputError(f"the playbook already says this{where}")
    return new


def _new(book: BulletPlaybook, rule: str, reading: Reading, policy: Policy | None, why: str) -> NewBullet:
    """The bullet that a rule becomes, measured on the cases that the playbook remembers."""
    condition = reading.condition
    return NewBullet(
        rule,
        Source.MANUAL,
        condition=condition,
        argues=_argues(reading, policy),
        evidence=None if condition is None else embedded_learner(book).measure(condition),
        policy=policy,
        why=why,
    )


def preview(
    bullet_id: BulletArgument,
    playbook: PlaybookOption = None,
    edit: Annotated[str | None, typer.Option("--edit", metavar="RULE", help="Preview these words instead.")] = None,
    json: JsonOption = False,
) -> None:
    """Show what a change would do to past decisions and labelled cases. Nothing is stored.

    For a rule in use: what retiring it would do, or with --edit what other words would. For a candidate or a retired
    rule: what approving it would do. Each decision is made twice with the draws it was made with: on the playbook as it
    is, and as it would be.

        acefraud playbook preview b-1f2e3d4c --playbook book.db
        acefraud playbook preview b-1f2e3d4c --edit "Amount above 6,000 and an emulator: decline" --playbook book.db
    """
    with existing_playbook(playbook, read_only=True) as book:
        bullet = bullet_in(book, bullet_id)
        if edit is not None:
            _check(edit)
            reading = _understood(edit, book, as_note=False)
            policy = _policy(reading, None, None, False) or bullet.policy
            change = plan_edit(book, bullet_id, _new(book, edit, reading, policy, ""))
        elif bullet.status in (Status.CANDIDATE, Status.RETIRED):
            change = plan_status_change(book, bullet_id, Status.ACTIVE, "")
        else:
            change = plan_status_change(book, bullet_id, Status.RETIRED, "")
        _show_preview(book, change, json=json)


def _show_preview(book: BulletPlaybook, change: Change[Any], *, json: bool) -> None:
    """Print what a change would do."""
    (payload,) = change.payloads
    after = book.snapshot_with(change.payloads)
    rule = after.bullets[payload.subject]
    found = embedded_learner(book).preview_change(change.payloads, rule)
    print_result(found.as_json(), preview_in_words(rule, found), json=json)


def preview_in_words(rule: Bullet, found: Preview) -> str:
    """A preview for people."""
    lines = [rule.shown if rule.condition is None else f"{say(rule.condition)}  [{rule.condition}]"]
    measured = f": {record_in_words(found.fires_on)}" if found.fires_on.support else ""
    lines.append(f"On {found.cases:,} labelled cases it fires on {found.fires_on.support:,}{measured}")
    if found.unknown_on:
        lines.append(f"It is left open by unknown facts on {found.unknown_on:,} of them")
    lines.append(f"On {found.decisions:,} past decisions it fires on {found.fires_on_decisions:,}")
    lines += flips_in_words(found)
    for other, share in list(found.overlaps.items())[:3]:
        lines.append(f"{other} fires on {100 * share:.0f}% of what it fires on")
    if found.contradicts:
        lines.append(f"It contradicts {', '.join(found.contradicts)}")
    return "\n".join(lines)


def flips_in_words(found: Preview) -> list[str]:
    """Which decisions a change would flip, and the money that depends on it."""
    looked_at = f"{found.cases:,} labelled cases and {found.decisions:,} past decisions"
    if not found.flips:
        return [f"None of {looked_at} would be decided differently"]
    lines = [f"{len(found.flips):,} of {looked_at} would be decided differently"]
    for flip in found.flips[:SHOWN]:
        truth = {True: "fraud", False: "legitimate", None: "truth unknown"}[flip.is_fraud]
        amount = "" if flip.amount is None else f"  amount {spoken_number(round(flip.amount, 2))}"
        odds = f"{100 * flip.probability_before:.1f}% -> {100 * flip.probability_after:.1f}%"
        lines.append(f"    {flip.transaction_id}  {flip.before} -> {flip.after}  {odds}  {truth}{amount}")
    if len(found.flips) > SHOWN:
        lines.append(f"    and {len(found.flips) - SHOWN:,} more")
    return [*lines, *_money_in_words(found)]


def _money_in_words(found: Preview) -> list[str]:
    """The amounts of labelled cases whose verdict would change."""
    money = found.money
    kinds = (
        ("newly declined", money.declined_rightly, money.declined_wrongly),
        ("no longer declined", money.released_wrongly, money.released_rightly),
    )
    return [
        f"Money of labelled cases {what}: {spoken_number(round(fraud, 2))} of fraud, "
        f"{spoken_number(round(honest, 2))} of honest customers"
        for what, fraud, honest in kinds
        if fraud or honest
    ]


def edit(
    bullet_id: BulletArgument,
    rule: RuleArgument,
    playbook: PlaybookOption = None,
    always: AlwaysOption = None,
    priority: PriorityOption = None,
    final: FinalOption = False,
    as_note: AsNoteOption = False,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Change what a rule says. It is read and measured again; its counters stay. A policy stays a policy.

    acefraud playbook edit b-1f2e3d4c "Amount above 6,000 and an emulator: decline" --why "5,000 was too low"
    """
    _check(rule)
    with existing_playbook(playbook) as book:
        before = bullet_in(book, bullet_id)
        reading = _understood(rule, book, as_note=as_note)
        policy = _policy(reading, always, priority, final)
        if policy is None and before.policy is not None and reading.condition is not None:
            policy = before.policy
            if reading.argues is not None and policy.verdict not in (reading.argues, Verdict.REVIEW):
                raise InputError(f"the words argue for {reading.argues}; {bullet_id} is a policy: {policy.words}")
        condition = reading.condition
        book.edit_bullet(
            bullet_id,
            rule,
            condition=condition,
            argues=_argues(reading, policy),
            evidence=None if condition is None else embedded_learner(book).measure(condition),
            policy=policy,
            who=author(who),
            why=why,
        )
        bullet, remarks = bullet_in(book, bullet_id), embedded_learner(book).remarks_on(bullet_in(book, bullet_id))
    content = {**bullet.model_dump(mode="json"), "remarks": remarks}
    print_result(content, f"edited {bullet_id}\n{described(bullet, remarks)}", json=json)


def snooze(
    bullet_id: BulletArgument,
    who_or_what: Annotated[
        str, typer.Argument(metavar="KEY=VALUE", help="The entity or the fact, such as card=4111 or merchant=ACME.")
    ],
    until: Annotated[datetime, typer.Option("--until", help="Until when, in UTC: 2026-01-31 or 2026-01-31T12:00:00.")],
    playbook: PlaybookOption = None,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Let a policy not apply to one customer, card or other entity until a date.

    acefraud playbook snooze b-1f2e3d4c card=4111 --until 2026-01-31 --why "travels until then"
    """
    key, found, value = who_or_what.partition("=")
    if not (found and key.strip() and value.strip()):
        raise InputError(f"expected KEY=VALUE such as card=4111, got '{who_or_what}'")
    made = Snooze(key=key.strip(), value=value.strip(), until=later(until))
    with existing_playbook(playbook) as book:
        remark = unseen_key(book, made.key)
        book.snooze(bullet_id, made, who=author(who), why=why)
        bullet = bullet_in(book, bullet_id)
    text = f"{bullet_id} does not apply to {made.key} {made.value} until {made.until:%Y-%m-%d %H:%M} UTC\n{remark}"
    print_result({**bullet.model_dump(mode="json"), "remarks": [remark] if remark else []}, text.strip(), json=json)


def _understood(rule: str, book: BulletPlaybook, *, as_note: bool) -> Reading:
    """The reading of a rule. Raises InputError if it is not understood, unless it may be a note."""
    reading = read_bullet_with(rule, book.vocabulary())
    if reading.condition is None and not as_note:
        raise InputError(
            f"{reading.rule.problem} `acefraud facts` lists what a rule can be about; --as-note keeps it as a note"
        )
    return reading


def _policy(reading: Reading, always: Always | None, priority: int | None, final: bool) -> Policy | None:
    verdict = Verdict(always.upper()) if always else reading.rule.always
    if reading.condition is None:
        if always:
            raise InputError("a policy needs a condition; a note cannot decide")
        return None
    if verdict is None:
        if priority is not None or final:
            raise InputError("--priority and --final are for policies; add --always decline, approve or review")
        return None
    if reading.argues is not None and verdict is not Verdict.REVIEW and reading.argues is not verdict:
        raise InputError(f"the words argue for {reading.argues}, and the policy would always {verdict.lower()}")
    if final and verdict is not Verdict.DECLINE:
        raise InputError("--final is for policies that decline")
    return Policy(verdict=verdict, priority=priority, final=final)


def _argues(reading: Reading, policy: Policy | None) -> Verdict | None:
    if policy is None or policy.verdict is Verdict.REVIEW:
        return reading.argues
    return policy.verdict


def _check(content: str) -> None:
    if not content.strip():
        raise InputError("expected what the bullet says, got an empty text", field="content")
    if len(content) > MAX_CONTENT:
        raise InputError(f"expected at most {MAX_CONTENT:,} characters, got {len(content):,}", field="content")
    try:
        content.encode()
    except UnicodeEncodeError as problem:
        place = problem.start + 1
        raise InputError(f"expected valid UTF-8, got something else at character {place}", field="content") from None


def described(bullet: Bullet, remarks: list[str]) -> str:
    """How a rule was understood, what was measured, what it only claims, and what its author should know."""
    if bullet.condition is None:
        lines = ["Kept as a note: people see it, and a language model does; it never moves a decision of the engine."]
    else:
        lines = [f"Read as: {say(bullet.condition)}", f" formal: {bullet.condition}"]
    if bullet.policy is not None:
        lines.append(f"A policy: {bullet.policy.words}, before anything is scored")
    if bullet.evidence is not None:
        lines.append(f"Measured on the cases remembered here: {bullet.evidence.in_words()}")
        if bullet.claim is not None:
            lines.append(f"What it states ({bullet.claim.words}) is kept as a claim beside that.")
    elif bullet.claim is not None:
        lines.append(f"Its figure ({bullet.claim.words}) is a claim until it is measured.")
    return "\n".join([*lines, *remarks])
