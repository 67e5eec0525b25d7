"""`acefraud backtest`: a condition or a whole playbook against labelled history."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from acefraud.cli.console import (
    JsonOption,
    MappingOption,
    PlaybookOption,
    StrictOption,
    existing_playbook,
    learner_on,
    line,
    print_json,
    tell_bad_rows,
    trained_mapping,
)
from acefraud.core.condition import Condition
from acefraud.core.english import say
from acefraud.core.evidence import Evidence
from acefraud.core.reading import read_bullet, read_condition
from acefraud.core.transactions import Cases
from acefraud.datasets import Dataset, SchemaMapping, load_dataset
from acefraud.embedded.case_memory import LabelledFacts
from acefraud.embedded.induction.holding_up import record_of
from acefraud.embedded.scorecard import GENERAL
from acefraud.errors import InputError
from acefraud.evaluation.metrics import METRICS, Scored, as_json, in_percent, over_rows
from acefraud.learning.batch_scoring import score
from acefraud.learning.learner import Learner
from acefraud.learning.remembering import memory_for


def backtest(
    source: Annotated[str, typer.Argument(metavar="FILE", help="Labelled history.")],
    condition: Annotated[
        str | None, typer.Option("--condition", help="A condition, in its text form or in plain English.")
    ] = None,
    playbook: PlaybookOption = None,
    mapping: MappingOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Measure a condition, or every bullet of a playbook and its decisions, on labelled history.

    Nothing is learnt and nothing is recorded. Measured on the history a playbook was trained on, its figures look
    better than they are: use later cases.

        acefraud backtest history.csv --condition "amount > 2000 and account_age_days < 30"
        acefraud backtest later.csv --playbook book.db
    """
    remembered = _remembered(playbook) if condition is None else None
    data = load_dataset(source, mapping=mapping, remembered=remembered, strict=strict)
    tell_bad_rows(data.bad_rows, data.unlabelled)
    cases = _with_history(data, playbook, alone=condition is not None)
    known = LabelledFacts.of(cases)

    def measured(wanted: Condition) -> Evidence:
        record = record_of(wanted.holds_in(known.facts), known.labels)
        return Evidence(learnt=record, base_rate=float(known.labels.mean()))

    if condition is not None:
        wanted = read(condition)
        _must_know(wanted, known.facts.names, source)
        _tell_condition(wanted, measured(wanted), json)
        return
    with existing_playbook(playbook, read_only=True) as book:
        learner = learner_on(book)
        scored = _scored(learner, cases, known)
        bullets = [b for b in book.get_bullets_for_node(learner.options.node) if b.condition is not None]
    figures = {m: over_rows(lambda drawn, m=m: METRICS[m](scored.taken(drawn)), len(cases)) for m in METRICS}  # type: ignore[misc]
    found = [(bullet, measured(bullet.condition)) for bullet in bullets if bullet.condition is not None]
    if json:
        rows = [{"bullet_id": b.id, "content": b.content, **_as_json(evidence)} for b, evidence in found]
        print_json({"rows": len(cases), **as_json(figures), "bullets": rows})
        return
    for metric, figure in figures.items():
        line(f"{metric.replace('_', ' '):>18}  {in_percent(figure)}")
    line(f"{len(found)} bullets on {len(cases):,} cases", "bold")
    for bullet, evidence in found:
        learnt = bullet.evidence.in_words() if bullet.evidence else "nothing: unverified"
        line(f"{bullet.id}  {bullet.argues or ''}  {say(bullet.condition) if bullet.condition else ''}")
        line(f"    here {evidence.in_words()}; learnt with {learnt}")


def _with_history(data: Dataset, playbook: Path | None, *, alone: bool) -> Cases:
    """The cases with the facts of their history: of the file alone, or after what the playbook remembers."""
    cases = Cases.stacked([data.train, data.test])
    if alone:
        memory = memory_for(data.mapping.describe())
        return memory.studied(cases, data.waiting) if memory else cases
    with existing_playbook(playbook, read_only=True) as book:
        memory = memory_for(book.snapshot().mapping)
        return Cases.of(memory.tested(cases, data.waiting, book.ledger)) if memory else cases


def _must_know(condition: Condition, names: list[str], file: str) -> None:
    """A fact that no row has is more likely mistyped than never known."""
    for fact in sorted(condition.facts):
        if fact not in names:
            near = get_close_matches(fact, names, 1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; the facts are: {', '.join(names[:20])}"
            raise InputError(f"no row has the fact '{fact}'{hint}", file=file)


def _remembered(playbook: Path | None) -> SchemaMapping | None:
    with existing_playbook(playbook, read_only=True) as book:
        return trained_mapping(book)


def read(words: str) -> Condition:
    """A condition in its text form or in English."""
    try:
        return Condition.parse(words)
    except ValueError as problem:
        found = read_condition(words) or read_bullet(words).condition
        if found is None:
            raise InputError(f"not a condition, and not English that could be read as one: {problem}") from None
        return found


def _scored(learner: Learner, cases: Cases, known: LabelledFacts) -> Scored:
    """What the playbook says of the cases as it stands."""
    snapshot = learner.playbook.snapshot()
    said = score(cases.transactions, snapshot, learner.selector, learner.options, known=known.facts).probabilities
    frame = snapshot.calibration(learner.options.node) or GENERAL
    return Scored(said >= frame.threshold, said, known.labels)


def _as_json(evidence: Evidence) -> dict[str, Any]:
    low, high = evidence.learnt.interval
    return {
        "support": evidence.learnt.support,
        "frauds": evidence.learnt.frauds,
        "precision": None if evidence.learnt.precision is None else round(evidence.learnt.precision, 6),
        "low": round(low, 6),
        "high": round(high, 6),
        "lift": None if evidence.lift is None else round(evidence.lift, 6),
        "base_rate": round(evidence.base_rate, 6),
    }


def _tell_condition(condition: Condition, evidence: Evidence, json: bool) -> None:
    if json:
        print_json({"condition": str(condition), "english": say(condition), **_as_json(evidence)})
        return
    line(str(condition))
    line(f"{say(condition)}: {evidence.in_words()}")
    if evidence.lift is not None:
        line(f"{evidence.lift:.2f} times the {100 * evidence.base_rate:.1f}% of all cases")
