"""`acefraud backtest`: a condition or a whole playbook against labelled history."""

from __future__ import annotations

from typing import Annotated

import typer

from acefraud.cli.console import line, note_bad_rows, print_json, print_result
from acefraud.cli.interrupts import nothing_written, stoppable
from acefraud.cli.options import JsonOption, MappingOption, PlaybookOption, StrictOption
from acefraud.cli.train import note_label_delay
from acefraud.cli.workspace import embedded_learner, existing_playbook, trained_mapping
from acefraud.core.condition import Condition
from acefraud.core.fact_names import FactCatalog
from acefraud.core.table import FactTable
from acefraud.core.transactions import Cases
from acefraud.datasets import Dataset, load_dataset
from acefraud.engine.backtest_scores import measured_on
from acefraud.engine.entity_memory import memory_for
from acefraud.errors import InputError
from acefraud.evaluation.backtest import Backtest, evidence_json
from acefraud.evaluation.backtest import backtest as measure
from acefraud.evaluation.metrics import Interval, in_percent
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.rules.english import say
from acefraud.rules.reader import Vocabulary, read_rule
from acefraud.storage import BulletPlaybook


@stoppable(nothing_written)
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
        found = measure(embedded_learner(book), data)
        if json:
            content = found.as_json()
            bullets = content.pop("bullets")
            rows = content.pop("rows")
            print_json({"rows": rows, "rows.unreadable": data.unreadable, **content, "bullets": bullets})
            return
        _print(found, book)


def _condition(text: str, data: Dataset, json: bool) -> None:
    memory = memory_for(data.mapping.describe())
    cases = Cases.stacked([data.train, data.test])
    known = LabelledFacts.of(memory.studied(cases, data.waiting) if memory else cases)
    condition = read(text, known.facts)
    evidence = measured_on(condition, known)
    text = f"{condition}\n{say(condition)}: {evidence.in_words()}"
    if evidence.lift is not None:
        text += f"\n{evidence.lift:.2f} times the {100 * evidence.base_rate:.1f}% of all cases"
    print_result({"condition": str(condition), "english": say(condition), **evidence_json(evidence)}, text, json=json)


def _print(found: Backtest, book: BulletPlaybook) -> None:
    _print_figures(found.figures)
    if found.without_label_facts is not None:
        late = f"{found.label_delay} after their transaction (label_delay)"
        line(f"Labels without a time of their own arrive {late}. With facts that depend on labels unknown:")
        _print_figures(found.without_label_facts)
    line(f"{len(found.bullets)} bullets on {found.rows:,} cases; {found.counted}", "bold")
    for one in found.bullets:
        bullet = book.get_bullet(one.id)
        words = say(bullet.condition) if bullet and bullet.condition else one.content
        learnt = one.learnt.in_words() if one.learnt else "nothing: unverified"
        line(f"{one.id}  {one.argues}  {words}")
        line(f"    here {one.evidence.in_words()}; learnt with {learnt}")


def _print_figures(figures: dict[str, Interval]) -> None:
    for metric, figure in figures.items():
        line(f"{metric.replace('_', ' '):>18}  {in_percent(figure)}")


def read(text: str, facts: FactTable) -> Condition:
    """A condition from its text form or from English. Raises InputError that names what was not understood."""
    reading = read_rule(text, Vocabulary.of(FactCatalog.of(facts)))
    if reading.condition is None:
        raise InputError(f"{reading.problem} The facts are: {', '.join(facts.names[:20])}", field="condition")
    return reading.condition
