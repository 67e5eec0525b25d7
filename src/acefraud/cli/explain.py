"""`acefraud explain` and `attest`: how a decision came about, and whether two machines hold and decide the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import ValidationError
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from acefraud.cli.console import Part, Said, progress, read_text, write_text
from acefraud.cli.decide import DONE
from acefraud.cli.workspace import Reading, not_recorded, roles_for, trained_mapping
from acefraud.core.bullet import percent
from acefraud.core.decision import Decision, ProbabilityFrom, ReasonKind
from acefraud.core.events import OutcomeHeard
from acefraud.core.review_rule import DecidingRule
from acefraud.core.transaction import Verdict
from acefraud.display.redaction import visible
from acefraud.engine.models import failing_as
from acefraud.engine.options import Fallback
from acefraud.engine.rule_context import ruling_of
from acefraud.errors import BudgetExceeded, CannotExplain, InputError, ModelError
from acefraud.learning.attestation import USUAL_SAMPLE, Attestation, DecisionsDigest, check_attestation
from acefraud.learning.attestation import attest as attest_playbook
from acefraud.learning.credits import with_silence
from acefraud.learning.learner import Learner
from acefraud.roles.embedded.embedder import key_of
from acefraud.roles.model.prompts import Style
from acefraud.rules.english import say_clause, say_value
from acefraud.settings import COMBINED, EMBEDDED, ModelSettings
from acefraud.storage import BulletPlaybook
from acefraud.support.validation import first_fault


def explain(
    book: Reading,
    decision_id: Annotated[str, Argument(help="Id of a decision, or of a transaction (its latest decision).")],
    replay: Annotated[bool, Option(help="Decide again from the ledger alone and compare.")] = False,
    *,
    settings: ModelSettings,
) -> Said:
    """Show the stages, scores and reasons of a decision.

    It begins with who and what it was about, the verdict, why in one sentence, and what became known later.

    The reasons add up: log-odds = base + every contribution. Decisions of the embedded engine are recorded without
    their trace: it is computed again, and must have the digest that was recorded. With --replay, the playbook is
    rebuilt as it was at that revision and the decision is made again; it must be the same (exit code 1 if it is not). A
    model's answer comes from the cached replies (use the same --cache and --base-url as then): nothing is sent.

        acefraud explain d-4f0c2a917be31d55 --playbook book.db --replay
    """
    found = _find(book, decision_id)
    decision, unknown = asyncio.run(_explained(book, found, settings))
    same = asyncio.run(_replayed_the_same(book, found, settings)) if replay else None
    ruling = ruling_of(decision, book.snapshot_at(decision.revision))
    transaction_id = decision.transaction.id
    heard_of = book.ledger.transaction_events([transaction_id])[transaction_id].outcomes
    outcomes = with_silence(book, {transaction_id: heard_of}, decision.node)[transaction_id]
    content = decision.model_dump(mode="json")
    content["outcomes"] = [heard.model_dump(mode="json") for heard in outcomes]
    content |= {"read": _clauses(decision, book), "unfamiliar": decision.unfamiliar}
    content |= {"decided_by": ruling.model_dump(mode="json"), "not_explained": unknown, "replayed_the_same": same}
    shown = [*_in_short(decision, ruling), *_heard(outcomes), *_decided(decision, book, ruling)]
    shown += _known(decision, unknown)
    if same is not None:
        shown.append("Replayed from the ledger: the same decision." if same else "Replayed: NOT the same decision.")
    return content, shown, int(same is False)


def _in_short(decision: Decision, ruling: DecidingRule) -> Iterator[Part]:
    """Who, what, the verdict and why, before everything else."""
    about = decision.transaction
    yield f"Who: {about.who or 'not known'}"
    when = f"{about.time:%Y-%m-%d %H:%M} UTC" if about.time else "at an unknown time"
    yield f"What: {decision.amount or 'an unknown amount'}, {when}, transaction {visible(about.id)}"
    if about.text:
        yield Text(about.text, "italic")
    yield f"{decision.verdict}  {100 * decision.probability:.1f}% fraud", "bold"
    how, reason = ruling.words, decision.main_reason
    if ruling.rule == "threshold":
        side = "below" if decision.verdict is Verdict.APPROVE else "not below"
        how = f"fraud is {percent(decision.probability, 1)} likely, {side} the limit of {percent(decision.threshold)}"
    if reason in {given.text for given in decision.reasons}:
        reason = f"{'it says' if ruling.rule == 'policy' else 'mostly because'}: {reason}"
    yield f"{DONE[decision.verdict].capitalize()}: {how}; {reason}"


def _heard(outcomes: Sequence[OutcomeHeard]) -> Iterator[Part]:
    if not outcomes:
        yield "Not known yet whether it was fraud"
    for heard in outcomes:
        outcome = heard.outcome
        by = f" by {visible(outcome.author)}" if outcome.author else ""
        truth = f"{'fraud' if outcome.is_fraud else 'legitimate'}; the verdict was {heard.judgement.ruling}"
        yield f"{'An opinion' if outcome.is_opinion else 'Later known'} ({outcome.source}{by}): {truth}"
        for name, text in (("note", outcome.note), *outcome.details.items()):
            if text:
                yield f"         {visible(name)}: {visible(text)}", "dim"


async def _explained(book: BulletPlaybook, decision: Decision, settings: ModelSettings) -> tuple[Decision, str]:
    """The decision with its trace; or as it is recorded, with the texts of its bullets, and why there is no trace."""
    if decision.has_trace or not decision.digest:
        return decision, ""
    try:
        async with _learner_of(book, decision, settings) as learner:
            return await learner.explain(decision), ""
    except CannotExplain as problem:
        bullets = book.snapshot_at(decision.revision).bullets
        reasons = [
            reason.model_copy(update={"text": bullets[reason.bullet_id].shown})
            for reason in decision.reasons
            if reason.bullet_id is not None
        ]
        return decision.model_copy(update={"reasons": tuple(reasons)}), str(problem)


@asynccontextmanager
async def _learner_of(book: BulletPlaybook, decision: Decision, settings: ModelSettings) -> AsyncIterator[Learner]:
    """A learner that decides as a decision was made. A model's answers come from the cache: nothing is sent."""
    settings = replace(
        settings,
        agent=decision.model,
        judge=EMBEDDED,
        reflector=EMBEDDED,
        embedding=key_of(decision.selection.embedder) or decision.selection.embedder,
        style=Style.DIRECT if decision.prompt.startswith("agent_direct") else Style.REASONED,
        opinion="alone" if decision.engine_odds is None else COMBINED,
        tier=None,
        fallback=Fallback.ERROR,
        max_calls=0,
    )
    roles = roles_for(settings, trained_mapping(book))
    learner = roles.learner(book)
    if decision.fallback:
        learner.agent = failing_as(decision)
    try:
        yield learner
    finally:
        await roles.close()


async def _replayed_the_same(book: BulletPlaybook, decision: Decision, settings: ModelSettings) -> bool:
    """Whether deciding again gives the same."""
    try:
        async with _learner_of(book, decision, settings) as learner:
            return decision.same_as(await learner.replay(decision))
    except BudgetExceeded:
        raise ModelError(
            f"the reply of {decision.model} to this decision is no longer cached; repeating the decision would need a "
            "new call"
        ) from None


def _find(book: BulletPlaybook, wanted: str) -> Decision:
    found = book.ledger.decisions([wanted])
    if wanted in found:
        return found[wanted]
    made = book.ledger.transaction_events([wanted])[wanted].decisions
    if not made:
        message = f"there is no decision '{wanted}' in this playbook, and none on a transaction with that id"
        raise not_recorded(message, wanted, book.ledger)
    return made[-1]


def _clauses(decision: Decision, book: BulletPlaybook) -> dict[str, str]:
    """Of each bullet among the reasons: the tests that made it apply, with the values they read."""
    bullets = book.snapshot_at(decision.revision).bullets
    said = {}
    for reason in decision.reasons:
        bullet = bullets.get(reason.bullet_id or "")
        if bullet is not None and bullet.condition is not None:
            said[bullet.id] = say_clause(bullet.condition, decision.facts)
    return {bullet_id: clause for bullet_id, clause in said.items() if clause}


def _decided(decision: Decision, book: BulletPlaybook, ruling: DecidingRule) -> Iterator[Part]:
    yield f"\nDecided by {ruling.rule}: {ruling.words}"
    yield f"{decision.id} on {decision.transaction.id}, playbook revision {decision.revision}, {decision.model}", "dim"
    if decision.has_trace:
        left = " > ".join(f"{count.stage} {count.left}" for count in decision.selection.stages)
        yield f"\nBullets left after each stage: {left}"
    if decision.selection.scores:
        yield _scores(decision)
        for score in decision.selection.scores:
            bullet = book.get_bullet(score.bullet_id)
            yield f"{score.bullet_id}  {bullet.content if bullet else ''}"
    if decision.selection_fallback:
        yield f"Bullets were found by {decision.selection.embedder}: {decision.selection_fallback}", "yellow"
    if decision.fallback:
        yield f"The model that should have decided failed: {decision.fallback}", "yellow"
    if decision.model == EMBEDDED:
        yield f"\nReasons, in log-odds of fraud, starting at {decision.base:+.2f}:"
    else:
        yield f"\nReasons; the probability is {_FROM[decision.probability_from]} ({decision.prompt}):"
    clauses = _clauses(decision, book)
    for reason in decision.reasons:
        if reason.kind is ReasonKind.RULE:  # said above
            continue
        yield f"  {reason.amount}  {reason.text}  ({reason.bullet_id or reason.kind})"
        if clause := clauses.get(reason.bullet_id or ""):
            yield f"         read: {clause}", "dim"
    yield "\nFacts: " + ", ".join(f"{name} {say_value(name, value)}" for name, value in sorted(decision.facts.items()))


def _known(decision: Decision, unknown: str) -> Iterator[Part]:
    if decision.familiarity is not None:
        yield f"Known of what the playbook relies on: {100 * decision.familiarity:.0f}%"
    for piece in decision.unread:
        yield f"Not understood: {piece}", "yellow"
    if unknown:
        yield f"Its stages and scores cannot be shown: {unknown}.", "yellow"


_FROM = {
    ProbabilityFrom.FITTED: "fitted on labelled cases",
    ProbabilityFrom.STATED: "what the model stated",
    ProbabilityFrom.ODDS: "that of its verdict tokens, not checked against labelled cases",
    ProbabilityFrom.CALIBRATED: "that of its verdict tokens, calibrated on labelled cases",
    ProbabilityFrom.COMBINED: "that of the embedded engine and the model's opinion together",
}


def _scores(decision: Decision) -> Table:
    table = Table(title="Selected bullets")
    for heading in ("bullet", "quality", "relevance", "draw", "combined", "diversity", "total"):
        table.add_column(heading, justify="left" if heading == "bullet" else "right")
    for score in decision.selection.scores:
        parts = (score.quality, score.semantic, score.thompson, score.combined, score.diversity, score.total)
        table.add_row(score.bullet_id, *(f"{part:.3f}" for part in parts))
    return table


def attest(
    book: Reading,
    decisions: Annotated[
        str | None,
        Option(metavar="N|all", help=f"Decisions to make again, evenly over the ledger. Default: {USUAL_SAMPLE}."),
    ] = None,
    to: Annotated[Path | None, Option(metavar="FILE", help="Write the attestation, for --check elsewhere.")] = None,
    check: Annotated[Path | None, Option(metavar="FILE", help="Compare with an attestation from elsewhere.")] = None,
) -> Said:
    """Print digests of a playbook, to tell whether two machines hold and compute the same.

    One is of every event of the ledger, one of what was learnt and set, and one of decisions made again from the
    ledger. A decision that does not come out as recorded is named (exit code 1).

    With --check, each digest is compared (exit code 1 if one differs), and the first event that differs is named. A
    ledger that goes on where the other ends is no difference: it is compared up to there.

        acefraud attest --playbook book.db --to here.json
        acefraud attest --playbook copy.db --check here.json
    """
    if check is not None:
        if decisions is not None or to is not None:
            raise InputError("--check makes the same decisions again as its file; leave out --decisions and --to")
        return _checked(book, check)
    if decisions is not None and decisions != "all" and not decisions.isdecimal():
        raise InputError(f"--decisions: expected a number or 'all', got '{decisions}'")
    with progress("attesting") as done:
        made = attest_playbook(book, None if decisions == "all" else int(decisions or USUAL_SAMPLE), progress=done)
    if to is not None:
        write_text(made.model_dump_json() + "\n", to)
    shown = (
        f"acefraud   {made.acefraud}, engine {made.engine}",
        f"ledger     {made.ledger}  up to event {made.last_event:,}",
        f"playbook   {made.playbook}  {made.bullets:,} bullets",
        f"decisions  {made.decisions.digest}  {made.decisions.made_again:,} of {made.decisions.recorded:,} made again",
        *_made_again(made.decisions),
    )
    return made.model_dump(), shown, int(made.decisions.first_different is not None)


def _made_again(again: DecisionsDigest) -> Iterator[Part]:
    if again.first_different is not None:
        count = again.made_again - again.same
        yield f"{count:,} decisions made again are NOT as recorded, first {again.first_different}", "red"
    elif again.made_again:
        yield "All decisions made again are as recorded"
    for reason, count in again.not_repeatable.items():
        yield f"{count:,} decisions cannot be made again: {reason}", "yellow"


def _checked(book: BulletPlaybook, file: Path) -> Said:
    try:
        there = Attestation.model_validate_json(read_text(file))
    except ValidationError as problem:
        fault = first_fault(problem, Attestation)
        raise InputError(f"expected what `acefraud attest --to` writes: {fault}", file=str(file)) from None
    with progress("attesting") as done:
        check = check_attestation(book, there, done)
    first = check.first_differing_event
    event = next(iter(book.ledger.read(first - 1, first)), None) if first else None
    about = event and {"kind": event.payload.kind, "at": event.at.isoformat()}
    shown: list[Part] = [f"{name:<9}  {getattr(check, name)}" for name in ("ledger", "playbook", "decisions")]
    if check.ledger.startswith("continued"):
        shown.append(f"The same up to event {check.here.last_event:,}, where one ledger ends and the other continues")
    elif first is not None:
        what = f"{about['kind']}, written {about['at']}" if about else "there is none here"
        shown.append(f"The first of {check.differing_events:,} events that differ is {first:,}: {what}")
    if (there.acefraud, there.engine) != (check.here.acefraud, check.here.engine):
        shown.append(f"The other is of acefraud {there.acefraud}, engine {there.engine}")
    content = {**check.model_dump(exclude={"here"}), "event": about}
    return content, [*shown, *_made_again(check.here.decisions)], int(not check.agrees)
