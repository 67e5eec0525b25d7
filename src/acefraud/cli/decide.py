"""`acefraud decide`: APPROVE or DECLINE, with reasons."""

from __future__ import annotations

import asyncio
import hashlib
import json as jsonlib
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from acefraud.cli.console import (
    JsonOption,
    MappingOption,
    PlaybookOption,
    StrictOption,
    cast_for,
    existing_playbook,
    line,
    note,
    playbook_path,
    print_json,
    progress,
    tell_bad_rows,
    tell_usage,
    trained_mapping,
)
from acefraud.cli.models import with_model_options
from acefraud.core.decision import Decision, ProbabilityFrom
from acefraud.core.transaction import MAX_TEXT, Transaction, Verdict
from acefraud.datasets import load_mapping, read_transactions
from acefraud.errors import BudgetExceeded, InputError, ModelError
from acefraud.learning.casting import Cast
from acefraud.settings import ModelSettings
from acefraud.storage import BulletPlaybook

BATCH = 200
"""Decisions that are written and acknowledged together."""
BATCH_WITH_MODEL = 32
"""The same where a model decides: what it has decided should not wait long for the rest."""
REASONS_SHOWN = 5
_STYLES = {Verdict.DECLINE: "bold red", Verdict.APPROVE: "bold green", Verdict.REVIEW: "bold yellow"}
_SAID = {ProbabilityFrom.STATED: " (stated by the model)", ProbabilityFrom.ODDS: " (the model's odds, not calibrated)"}
_ENDINGS = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")


@with_model_options
def decide(
    what: Annotated[
        str,
        typer.Argument(
            metavar="[FILE|TEXT|JSON|-]", help="A file, the text of one transaction, one as JSON, or - for stdin."
        ),
    ] = "-",
    playbook: PlaybookOption = None,
    mapping: MappingOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
    *,
    chosen: ModelSettings,
) -> None:
    """Decide transactions with a playbook and record the decisions.

    A decision is printed once it is safely written, so nothing that was printed is ever lost. Standard input takes
    one JSON object a line. With neither --playbook nor a playbook.db, general knowledge decides and nothing is kept.

        acefraud decide 'User (account age: 3 days) attempts $2,500 purchase at 3:15 AM through a VPN'
        acefraud decide '{"id": "t1", "facts": {"amount": 2500, "vpn": true}}' --playbook book.db
        acefraud decide today.csv --playbook book.db --json > decisions.jsonl
    """
    path = playbook_path(playbook)
    if playbook is None and not path.exists():
        note(f"no playbook at {path}: deciding by general knowledge; nothing is kept")
        book = BulletPlaybook()
    else:
        book = existing_playbook(playbook)
    with book:
        transactions = _transactions(what, book, mapping, strict)
        players = cast_for(chosen, trained_mapping(book), load_mapping(mapping) if mapping else None)
        asyncio.run(_decide_all(players, book, transactions, json))


async def _decide_all(players: Cast, book: BulletPlaybook, transactions: list[Transaction], json: bool) -> None:
    size = BATCH if players.agent is None else BATCH_WITH_MODEL
    try:
        learner = players.learner(book)
        with progress("deciding") as done:
            for start in range(0, len(transactions), size):
                try:
                    decisions = await learner.decide_all(transactions[start : start + size])
                except (ModelError, BudgetExceeded) as failure:
                    kind = BudgetExceeded if isinstance(failure, BudgetExceeded) else ModelError
                    raise kind(f"{failure}; {_left(transactions, start)}") from failure
                for decision in decisions:
                    _print(decision, json)
                done(min(1.0, (start + size) / len(transactions)))
    finally:
        await players.close()
        tell_usage(players.client)


def _left(transactions: Sequence[Transaction], start: int) -> str:
    """Which transactions were not decided, in words."""
    first, left = transactions[start].id, len(transactions) - start
    rest = " and all after it" if left > 1 else ""
    return f"not decided: '{first}'{rest}, {left:,} of {len(transactions):,}"


def _transactions(what: str, book: BulletPlaybook, mapping: Path | None, strict: bool) -> list[Transaction]:
    if what == "-":
        return _read(sys.stdin, book, mapping, strict, name="standard input")
    if what.lstrip().startswith("{"):
        return _read(StringIO(_one_line(what)), book, mapping, True, name="the argument")
    looks_like_file = what.lower().endswith(_ENDINGS) and "\n" not in what
    if looks_like_file or (len(what) < 255 and Path(what).is_file()):
        return _read(Path(what), book, mapping, strict)
    if not what.strip():
        raise InputError("expected a transaction, got an empty text")
    if len(what) > MAX_TEXT:
        raise InputError(f"the text has {len(what):,} characters, expected at most {MAX_TEXT:,}")
    return [Transaction(id=_made_id(what), text=what)]


def _read(
    source: Path | TextIO, book: BulletPlaybook, mapping: Path | None, strict: bool, name: str | None = None
) -> list[Transaction]:
    """Every way in goes through the same reader, so that a label can nowhere pass for a fact."""
    if isinstance(source, Path) and not source.exists():
        raise InputError("there is no such file", file=str(source))
    lines = None if isinstance(source, Path) else "jsonl"
    remembered = trained_mapping(book)
    found = read_transactions(source, mapping=mapping, remembered=remembered, strict=strict, name=name, format=lines)
    tell_bad_rows(found.bad_rows)
    return list(found.rows)


def _one_line(what: str) -> str:
    """A transaction given as JSON, on one line and with an id."""
    try:
        content = jsonlib.loads(what)
    except jsonlib.JSONDecodeError as broken:
        raise InputError(f"not valid JSON: {broken.msg} at character {broken.pos}") from None
    except RecursionError:
        raise InputError("not valid JSON: nested too deeply") from None
    except ValueError:
        raise InputError("not valid JSON: a number with too many digits") from None
    if not any(name in content for name in ("id", "transaction_id")):
        content["id"] = _made_id(what)
    return jsonlib.dumps(content)


def _made_id(what: str) -> str:
    """A transaction without an id is known by its content."""
    try:
        return "tx-" + hashlib.sha256(what.encode()).hexdigest()[:12]
    except UnicodeEncodeError as problem:
        raise InputError(f"expected valid UTF-8, got something else at character {problem.start + 1}") from None


def _print(decision: Decision, json: bool) -> None:
    if json:
        print_json(as_json(decision))
        return
    share = f"{100 * decision.probability:.1f}% fraud"
    style = _STYLES[decision.verdict]
    share += _SAID.get(decision.probability_from, "")
    line(f"{decision.verdict}  {share}  {decision.transaction.id}  {decision.id}", style)
    for reason in decision.reasons[:REASONS_SHOWN]:
        line(f"  {reason.amount}  {reason.text}  ({reason.bullet_id or reason.kind})")
    if decision.facts and not decision.reasons:
        line("  no bullet applies: the probability is that of an ordinary case", "dim")
    more = len(decision.reasons) - REASONS_SHOWN
    if more > 0:
        line(f"  ... and {more} more: acefraud explain {decision.id}", "dim")
    if not decision.facts:
        line("  nothing could be read from this: the verdict is the one for an unknown case", "yellow")
    if decision.selection_fallback:
        line(f"  bullets found by {decision.selection.embedder}: {decision.selection_fallback}", "yellow")
    for piece in decision.unread:
        line(f"  not understood: {piece}", "dim")


def as_json(decision: Decision) -> dict[str, Any]:
    """A decision for scripts."""
    return {
        "transaction_id": decision.transaction.id,
        "decision_id": decision.id,
        "verdict": str(decision.verdict),
        "probability": round(decision.probability, 6),
        "threshold": decision.threshold,
        "reasons": [
            {
                "text": reason.text,
                "contribution": None if reason.contribution is None else round(reason.contribution, 6),
                "bullet_id": reason.bullet_id,
                "kind": str(reason.kind),
            }
            for reason in decision.reasons
        ],
        "unread": list(decision.unread),
        "revision": decision.revision,
        "model": decision.model,
        "probability_from": str(decision.probability_from),
        **({"usage": decision.usage.model_dump()} if decision.usage else {}),
        **({"fallback": decision.fallback} if decision.fallback else {}),
        **({"selection_fallback": decision.selection_fallback} if decision.selection_fallback else {}),
    }
