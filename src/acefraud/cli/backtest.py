"""`acefraud backtest`: a condition or a whole playbook against labelled history."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from acefraud.cli.console import line, note_bad_rows, print_json, print_result
from acefraud.cli.options import JsonOption, MappingOption, PlaybookOption, StrictOption
from acefraud.cli.train import note_label_delay
from acefraud.cli.workspace import embedded_learner, existing_playbook, trained_mapping
from acefraud.core.condition import Condition
from acefraud.core.evidence import Evidence
from acefraud.core.fact_catalog import FactCatalog
from acefraud.core.table import FactTable
from acefraud.core.transactions import Cases
from acefraud.datasets import Dataset, load_dataset
from acefraud.errors import InputError
from acefraud.evaluation.metrics import Interval, Scored, as_json, bootstrap_metrics, in_percent
from acefraud.learning.batch_scoring import score
from acefraud.learning.entity_memory import memory_for
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.rules.english import say
from acefraud.rules.induction.out_of_time import record_of
from acefraud.rules.reader import Vocabulary, read_rule
from acefraud.rules.scorecard import GENERAL
from acefraud.storage import BulletPlaybook


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

    Nothing is learnt and nothing is recorded. On the history that a playbook was trained on, its figures look better
    than they are: use later cases. A case sees only labels that had arrived by then, after the label_delay of the
    playbook's mapping; a second set of figures does without the facts that depend on labels.

        acefraud backtest history.csv --condition "amount > 2000 and account_age_days < 30"
        acefraud backtest later.csv --playbook book.db
    """
    if condition is not None:
        data = load_dataset(source, mapping=mapping, strict=strict)
        note_bad_rows(data.bad_rows, data.unlabelled, data.remarks)
        note_label_delay(data, mapping)
        _condition(condition, data, json)
        return
    with existing_playbook(playbook, read_only=True) as book:
        data = load_dataset(source, mapping=mapping, remembered=trained_mapping(book), strict=strict)
        note_bad_rows(data.bad_rows, data.unlabelled, data.remarks)
        _playbook(book, data, json)


def _condition(text: str, data: Dataset, json: bool) -> None:
    memory = memory_for(data.mapping.describe())
    cases = _all_cases(data)
    known = LabelledFacts.of(memory.studied(cases, data.waiting) if memory else cases)
    condition = read(text, known.facts)
    evidence = _measured(condition, known)
    text = f"{condition}\n{say(condition)}: {evidence.in_words()}"
    if evidence.lift is not None:
        text += f"\n{evidence.lift:.2f} times the {100 * evidence.base_rate:.1f}% of all cases"
    print_result({"condition": str(condition), "english": say(condition), **_evidence_json(evidence)}, text, json=json)


def _playbook(book: BulletPlaybook, data: Dataset, json: bool) -> None:
    learner, snapshot = embedded_learner(book), book.snapshot()
    memory = memory_for(snapshot.mapping)
    cases = _all_cases(data)
    if memory is not None:  # their history continues what the playbook remembers
        cases = memory.backtested(cases, data.waiting, book.ledger)
    known = LabelledFacts.of(cases)
    threshold = (snapshot.calibration(learner.options.node) or GENERAL).threshold

    def figures_with(facts: FactTable) -> dict[str, Interval]:
        found = score(cases.transactions, snapshot, learner.selector, learner.options, known=facts).probabilities
        return bootstrap_metrics(Scored(found >= threshold, found, known.labels))

    figures = figures_with(known.facts)
    without = figures_with(known.facts.without(memory.plan.label_facts)) if memory else None
    bullets = [
        (bullet, bullet.condition, _measured(bullet.condition, known))
        for bullet in book.get_bullets_for_node(learner.options.node)
        if bullet.condition is not None
    ]
    if json:
        rows = [{"bullet_id": b.id, "content": b.content, **_evidence_json(evidence)} for b, _, evidence in bullets]
        content = {"rows": len(cases), "rows.unreadable": data.unreadable, **as_json(figures)}
        if memory and without:
            content |= {"label_delay": memory.plan.label_delay, "without_label_facts": as_json(without)}
        print_json({**content, "bullets": rows})
        return
    _print_figures(figures)
    if memory and without:
        late = f"{memory.plan.label_delay} after their transaction (label_delay)"
        line(f"Labels without a time of their own arrive {late}. With facts that depend on labels unknown:")
        _print_figures(without)
    line(f"{len(bullets)} bullets on {len(cases):,} cases", "bold")
    for bullet, condition, evidence in bullets:
        learnt = bullet.evidence.in_words() if bullet.evidence else "nothing: unverified"
        line(f"{bullet.id}  {bullet.argues or ''}  {say(condition)}")
        line(f"    here {evidence.in_words()}; learnt with {learnt}")


def _print_figures(figures: dict[str, Interval]) -> None:
    for metric, figure in figures.items():
        line(f"{metric.replace('_', ' '):>18}  {in_percent(figure)}")


def _all_cases(data: Dataset) -> Cases:
    return Cases.stacked([data.train, data.test])


def read(text: str, facts: FactTable) -> Condition:
    """A condition from its text form or from English. Raises InputError that names what was not understood."""
    reading = read_rule(text, Vocabulary.of(FactCatalog.of(facts)))
    if reading.condition is None:
        raise InputError(f"{reading.problem} The facts are: {', '.join(facts.names[:20])}", field="condition")
    return reading.condition


def _measured(condition: Condition, known: LabelledFacts) -> Evidence:
    record = record_of(condition.holds_in(known.facts), known.labels)
    return Evidence(learnt=record, base_rate=float(known.labels.mean()))


def _evidence_json(evidence: Evidence) -> dict[str, Any]:
    low, high = evidence.learnt.interval
    figures = {
        "precision": evidence.learnt.precision,
        "low": low,
        "high": high,
        "lift": evidence.lift,
        "base_rate": evidence.base_rate,
    }
    rounded = {name: None if figure is None else round(figure, 6) for name, figure in figures.items()}
    return {"support": evidence.learnt.support, "frauds": evidence.learnt.frauds, **rounded}
