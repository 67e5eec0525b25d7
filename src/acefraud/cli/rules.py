"""`acefraud playbook read`, `add`, `edit` and `snooze`: how a rule is written down."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from acefraud.cli.console import Said
from acefraud.cli.options import PlaybookOption
from acefraud.cli.rule_conversation import Conversation
from acefraud.cli.workspace import (
    Changing,
    Reading,
    any_playbook,
    embedded_learner,
    existing_playbook,
    is_there,
    place_of,
)
from acefraud.core.bullet import DEFAULT_NODE, Bullet, Snooze, record_in_words
from acefraud.core.scope import Author
from acefraud.core.transaction import Verdict
from acefraud.engine.rule_context import entity_columns
from acefraud.errors import ConfigurationError, InputError, RuleNotUnderstood
from acefraud.learning.preview import SHOWN, Preview
from acefraud.learning.rule_admission import (
    TAKEN_AS_POLICY,
    Admitted,
    PolicyOptions,
    Previewed,
    admit_rule,
    advise_on,
    check_rule_text,
    edit_rule,
    preview_edit,
    preview_rule,
    preview_status,
    read_rule,
    reading_as_json,
)
from acefraud.rules.bullet_text import Reading as RuleReading
from acefraud.rules.english import say, spoken_number
from acefraud.rules.reader.wording import nearest_facts
from acefraud.settings import ModelSettings
from acefraud.storage import BulletPlaybook
from acefraud.storage.changes import bullet_in

RuleArgument = Annotated[str, Argument(metavar="RULE", help="The rule, in plain English or in the formal syntax.")]
BulletArgument = Annotated[str, Argument(metavar="BULLET_ID", help="Id of the bullet, as `list` shows it.")]
_WITH_OPTION = {TAKEN_AS_POLICY: TAKEN_AS_POLICY.replace("as evidence,", "as evidence (--as-evidence),")}
"""Remarks on a rule, each with the option of the command line that helps."""


class Always(StrEnum):
    """What a policy decides."""

    DECLINE = "decline"
    APPROVE = "approve"
    REVIEW = "review"


AlwaysOption = Annotated[
    Always | None, Option(help="Make it a policy: it decides by itself, before anything is scored.")
]
PriorityOption = Annotated[
    int | None, Option(min=0, help="Of a policy. The highest decides. Approve has 300, decline 200, review 100.")
]
FinalOption = Annotated[bool, Option(help="Of a policy that declines: nothing overrides it.")]
PreviewOption = Annotated[
    bool, Option(help="Show what it would do to past decisions and labelled cases; store nothing.")
]
AsEvidenceOption = Annotated[
    bool, Option(help="Weigh it with others, even if it begins with an order such as 'block'. That makes it a policy.")
]
YesOption = Annotated[
    bool, Option(help="Ask nothing: an order is a policy, and a rule that cannot be read is refused.")
]
ReaderModelOption = Annotated[
    bool, Option(help="If the rule cannot be read, ask the model of --reflector-model how else it could be said.")
]
AsNoteOption = Annotated[bool, Option(help="Keep words that are not understood as a note for people. It never scores.")]


def read(rule: RuleArgument, playbook: PlaybookOption = None) -> Said:
    """Show how a rule is understood. Nothing is stored.

    A rule may use the facts that the playbook has seen (`acefraud facts`). It is understood only if every word that
    carries meaning is. Exit code 1 if it is not.

        acefraud playbook read 'Decline gift cards over $300 unless the customer is a VIP' --playbook book.db
    """
    with _readable(playbook) as book:
        reading = read_rule(book, rule)
        if reading.condition is not None:
            return reading_as_json(reading), _in_words(reading)
        advice = advise_on(embedded_learner(book), rule)
    return reading_as_json(reading, advice), [f"Not read as a rule: {reading.rule.problem}", *advice.lines], 1


def _readable(playbook: Path | None) -> BulletPlaybook:
    """The playbook, or an empty one if there is none: a rule can be tried before the first case."""
    return existing_playbook(playbook, read_only=True) if is_there(place_of(playbook)) else BulletPlaybook()


def _in_words(reading: RuleReading) -> str:
    """How a rule was read."""
    assert reading.condition is not None
    orders = reading.rule.orders
    action = f"always {orders.lower()}: a policy" if orders else "evidence, weighed with others"
    return "\n".join(
        [
            f"Read as: {say(reading.condition)}",
            f" formal: {reading.condition}",
            f" argues: {reading.argues or orders or Bullet.WITHOUT_VERDICT}",
            f" action: {action}",
            *reading.rule.assumed,
            *([_WITH_OPTION[TAKEN_AS_POLICY]] if orders is not reading.rule.always else []),
        ]
    )


def add(
    by: Author,
    rule: Annotated[str | None, Argument(metavar="[RULE]", help="The rule; without one you are asked for it.")] = None,
    playbook: PlaybookOption = None,
    always: AlwaysOption = None,
    priority: PriorityOption = None,
    final: FinalOption = False,
    as_evidence: AsEvidenceOption = False,
    as_note: AsNoteOption = False,
    preview: PreviewOption = False,
    yes: YesOption = False,
    reader_model: ReaderModelOption = False,
    node: Annotated[str, Option(help="Which agent uses it.")] = DEFAULT_NODE,
    *,
    settings: Annotated[
        ModelSettings, "agent", "judge", "embedding", "style", "opinion", "tier", "fallback", "concurrency"
    ],
) -> Said:
    """Add a rule in plain English or in the formal syntax. Starts a playbook if there is none.

    It is shown back as it was understood and measured on the cases that the playbook remembers. A rule of which a part
    is not understood is refused, or kept as a note with --as-note. A figure that the words only state is a claim. A
    rule is evidence, which is weighed with others; with --always, or if it says "always", begins with an order such as
    "block" or asks for a review, it is a policy.

    In a terminal you are asked where something is open: what can be said instead of a rule that cannot be read, and
    whether an order is meant as a policy. --yes asks nothing.

        acefraud playbook add "Amount above 5,000 and an emulator: decline" --playbook book.db
        acefraud playbook add 'amount > 9000 and country not in ("FR", "DE")' --always decline --playbook book.db
    """
    asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    if rule is None and not asks:
        raise InputError("expected a rule; in a terminal, you are asked for one", field="RULE")
    if rule is not None:
        check_rule_text(rule)  # before a playbook is started
    if reader_model and "reflector" not in settings.on_models:
        raise ConfigurationError("--reader-model asks the model of --reflector-model, and none is chosen")
    with any_playbook(playbook) as book, _command_line_hints():
        learner = embedded_learner(book)
        talk = Conversation(learner, settings if reader_model else None)
        text = talk.settle(rule, as_note=as_note, asks=asks)
        if asks and always is None and not as_evidence:
            as_evidence = talk.is_evidence(text)
        policy = _policy(always, priority, final, as_evidence=as_evidence)
        if preview:
            return _preview(preview_rule(learner, text, node=node, policy=policy, as_note=as_note, who=by["who"]))
        added = admit_rule(learner, text, node=node, policy=policy, as_note=as_note, with_preview=False, **by)
    return _admitted("added", added)


def preview(
    book: Reading,
    bullet_id: BulletArgument,
    edit: Annotated[str | None, Option(metavar="RULE", help="Preview these words instead.")] = None,
) -> Said:
    """Show what a change would do to past decisions and labelled cases. Nothing is stored.

    For a rule in use: what retiring it would do, or with --edit what other words would. For a candidate or a retired
    rule: what approving it would do. Each decision is made twice with the draws it was made with: on the playbook as it
    is, and as it would be.

        acefraud playbook preview b-1f2e3d4c --playbook book.db
        acefraud playbook preview b-1f2e3d4c --edit "Amount above 6,000 and an emulator: decline" --playbook book.db
    """
    learner = embedded_learner(book)
    if edit is None:
        return _preview(preview_status(learner, bullet_id))
    with _command_line_hints():
        return _preview(preview_edit(learner, bullet_id, edit))


def _preview(previewed: Previewed) -> Said:
    """What a change would do."""
    return previewed.preview.as_json(), preview_in_words(previewed.bullet, previewed.preview)


def _admitted(done: str, admitted: Admitted) -> Said:
    """How a rule was understood and what was measured of it."""
    bullet, remarks = admitted.bullet, [_WITH_OPTION.get(remark, remark) for remark in admitted.remarks]
    return bullet_json(bullet, remarks), f"{done} {bullet.id}\n{described(bullet, remarks)}"


def bullet_json(bullet: Bullet, remarks: Sequence[str]) -> dict[str, Any]:
    """A bullet for scripts, with what its author should know."""
    return {**bullet.model_dump(mode="json"), "remarks": list(remarks)}


@contextmanager
def _command_line_hints() -> Iterator[None]:
    """Say which commands and options help with a rule that is not understood."""
    try:
        yield
    except RuleNotUnderstood as problem:
        hint = "`acefraud facts` lists what a rule can be about; --as-note keeps it as a note"
        raise InputError("\n".join([f"{problem.message} {hint}", *problem.advice])) from None


def _policy(always: Always | None, priority: int | None, final: bool, *, as_evidence: bool) -> PolicyOptions:
    verdict = Verdict(always.upper()) if always else None
    return PolicyOptions(always=verdict, priority=priority, final=final, as_evidence=as_evidence)


def preview_in_words(rule: Bullet, found: Preview) -> list[str]:
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
    return lines


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
    book: Changing,
    by: Author,
    bullet_id: BulletArgument,
    rule: RuleArgument,
    always: AlwaysOption = None,
    priority: PriorityOption = None,
    final: FinalOption = False,
    as_evidence: AsEvidenceOption = False,
    as_note: AsNoteOption = False,
) -> Said:
    """Change what a rule says. It is read and measured again; its counters stay. A policy stays a policy.

    acefraud playbook edit b-1f2e3d4c "Amount above 6,000 and an emulator: decline" --why "5,000 was too low"
    """
    policy = _policy(always, priority, final, as_evidence=as_evidence)
    with _command_line_hints():
        learner = embedded_learner(book)
        edited = edit_rule(learner, bullet_id, rule, policy=policy, as_note=as_note, with_preview=False, **by)
    return _admitted("edited", edited)


def snooze(
    by: Author,
    bullet_id: BulletArgument,
    who_or_what: Annotated[
        str, Argument(metavar="KEY=VALUE", help="The entity or the fact, such as card=4111 or merchant=ACME.")
    ],
    until: Annotated[datetime, Option(help="Until when, in UTC: 2026-01-31 or 2026-01-31T12:00:00.")],
    book: Changing,
) -> Said:
    """Let a policy not apply to one customer, card or other entity until a date.

    acefraud playbook snooze b-1f2e3d4c card=4111 --until 2026-01-31 --why "travels until then"
    """
    key, found, value = who_or_what.partition("=")
    if not (found and key.strip() and value.strip()):
        raise InputError(f"expected KEY=VALUE such as card=4111, got '{who_or_what}'")
    made = Snooze(key=key.strip(), value=value.strip(), until=later(until))
    remark = unseen_key(book, made.key)
    book.snooze(bullet_id, made, **by)
    text = f"{bullet_id} does not apply to {made.key} {made.value} until {made.until:%Y-%m-%d %H:%M} UTC\n{remark}"
    return bullet_json(bullet_in(book, bullet_id), [remark] if remark else []), text.strip()


def described(bullet: Bullet, remarks: Sequence[str]) -> str:
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


def later(until: datetime) -> datetime:
    """A date in UTC up to which something counts. One that is past is an error."""
    end = until.replace(tzinfo=UTC)
    if end <= datetime.now(UTC):
        raise InputError(f"expected a date that is still to come, got {end:%Y-%m-%d %H:%M} UTC", field="until")
    return end


def unseen_key(playbook: BulletPlaybook, key: str) -> str:
    """What to say of an entity or a fact that no remembered case has; empty if one has it, or if there are none."""
    vocabulary, columns = playbook.vocabulary(), entity_columns(playbook.mapping)
    if vocabulary.is_open or key in {*vocabulary.facts, *vocabulary.entities.values(), *columns.values(), *columns}:
        return ""
    known = dict.fromkeys([*vocabulary.entities.values(), *nearest_facts([key], vocabulary)])
    nearest = f"; there is {', '.join(known)}" if known else ""
    return f"no case so far has a '{key}'{nearest}"
