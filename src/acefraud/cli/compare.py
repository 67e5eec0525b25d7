"""`acefraud compare` and `acefraud backtest`: figures on labelled history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from rich.table import Table
from typer import Argument, Option

from acefraud.cli.console import Said, line, note, note_bad_rows, nothing_written, out, print_json, progress, stoppable
from acefraud.cli.options import JsonOption, MappingOption, PlaybookOption, StrictOption
from acefraud.cli.train import note_label_delay, note_reading
from acefraud.cli.workspace import embedded_learner, existing_playbook, note_usage, roles_for, trained_mapping
from acefraud.core.condition import Condition
from acefraud.core.fact_names import FactCatalog
from acefraud.core.table import FactTable
from acefraud.core.transactions import Cases
from acefraud.datasets import SHIPPED, Dataset, load_dataset
from acefraud.engine.entity_memory import memory_for
from acefraud.engine.score import measured_on
from acefraud.errors import InputError
from acefraud.evaluation.backtest import Backtest, evidence_json
from acefraud.evaluation.backtest import backtest as measure
from acefraud.evaluation.compare import Part, compare_parts, limited, parts_of_data, parts_of_worlds
from acefraud.evaluation.comparison import LIGHTGBM, NAMES, Comparison, ModelFigures, mode_rows
from acefraud.evaluation.metrics import METRICS, Interval, in_percent
from acefraud.evaluation.report import write_report
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.rules.english import say
from acefraud.rules.reader import Vocabulary, read_rule
from acefraud.settings import ModelSettings
from acefraud.storage import BulletPlaybook


@stoppable(nothing_written)
def compare(
    source: Annotated[
        str, Argument(metavar="[FILE]", help="Labelled transactions, or the name of the shipped synthetic world.")
    ] = SHIPPED[0],
    seeds: Annotated[int, Option(min=1, max=100, help="How many seeds to run.")] = 5,
    folds: Annotated[
        int | None,
        Option(min=0, help="Cross-validate with this many folds; 0 splits once. Default: 5 for small files."),
    ] = None,
    test_share: Annotated[float, Option(min=0.05, max=0.95, help="Share of a file to test on.")] = 0.3,
    report: Annotated[
        Path | None, Option(help="Folder for the report. Default: acefraud-report; none with --json.")
    ] = None,
    limit: Annotated[
        int | None, Option(min=20, help="Use at most this many cases to learn from, and this many to test on.")
    ] = None,
    mapping: MappingOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
    *,
    settings: ModelSettings,
) -> None:
    """Compare **vanilla**, **online only** and **offline + online** on the same cases, beside **LightGBM**.

    Vanilla decides by a fixed scorecard of general fraud knowledge. Online only starts with an empty playbook and
    learns from each outcome as it arrives. Offline + online studies the training part first, then goes on learning.
    Every case is decided before its label is heard.

    LightGBM is fitted once on the training part, with the facts that the modes decide on, and declines from a
    probability of 0.5, as they do. It takes part if it is installed (pip install 'acefraud[bench]') and there are at
    least 200 training cases, whoever plays the roles.

    With no FILE, each seed makes its own synthetic world, split by time. A file with times is split by time (the last
    30 % is the test), one without at random with the same share of each label; small files without times are
    cross-validated.

        acefraud compare                       # the shipped world, five seeds, report in acefraud-report/
        acefraud compare tx.csv --json         # your own labelled history, for a script
    """
    data = load_dataset(source, mapping=mapping, strict=strict)
    note_reading(data, source, mapping)
    note_label_delay(data, mapping)
    independent = bool(data.test)
    if independent:
        parts = list(parts_of_worlds(lambda seed: load_dataset(source, seed=seed), range(seeds)))
    else:
        parts = _parts_of_data(data, seeds, folds, test_share)
    if limit is not None:
        parts = [limited(part, limit) for part in parts]
    roles = roles_for(settings, data.mapping)
    try:
        with progress("comparing the modes") as done:
            result = compare_parts(parts, name=data.name, independent=independent, roles=roles, progress=done)
    finally:
        note_usage(roles)
    if result.no_lightgbm:
        note(result.no_lightgbm)
    folder = report or (None if json else Path("acefraud-report"))
    page = write_report(result, folder) if folder else None
    if json:
        print_json({**result.as_json(), "rows.unreadable": data.unreadable})
        return
    out.print(modes_table(result))
    out.print(differences_table(result))
    if result.on_models and result.on_models.tiers:
        out.print(tiers_table(result.on_models))
    if result.on_models and result.on_models.fallbacks:
        failed, left = result.on_models.fallbacks, result.on_models.undecided
        line(f"The model failed in {failed:,} decisions; {left:,} were left to a person and out of all figures.")
    if result.label_delay:
        line(result.about_labels, "dim")
    line(f"Intervals: {result.method}. {result.test_rows:,} cases decided per seed.", "dim")
    if page is not None:
        line(f"Report: {page}")


def _parts_of_data(data: Dataset, seeds: int, folds: int | None, test_share: float) -> list[Part]:
    note_bad_rows(data.bad_rows, data.unlabelled)
    if not data.has_time:
        data = data.without_duplicates()
        if data.dropped:
            note(f"{data.dropped:,} rows that repeat an earlier one were left out")
    return list(parts_of_data(data, range(seeds), folds=folds, test_share=test_share))


def modes_table(result: Comparison) -> Table:
    """The figures of the modes, and of LightGBM if it took part."""
    what = "three modes and LightGBM" if LIGHTGBM in result.modes else "three modes"
    headings = ("mode", "accuracy", "fraud caught", "false declines", "PR-AUC", "bullets", "cited", "secs")
    table = _table(f"{result.dataset}: {what}, {result.seeds} seed{'s' if result.seeds > 1 else ''}", headings)
    for row in mode_rows(result, _cell):
        table.add_row(*row)
    return table


def differences_table(result: Comparison) -> Table:
    """The paired differences, in points."""
    headings = ("", "accuracy", "fraud caught", "false declines", "PR-AUC")
    table = _table("Paired differences, in points", headings)
    for (mode, other), figures in result.differences.items():
        name = NAMES[other] if other == LIGHTGBM else NAMES[other].lower()
        table.add_row(f"{NAMES[mode]}\nless {name}", *(_cell(figures[metric], signed=True) for metric in METRICS))
    return table


def tiers_table(figures: ModelFigures) -> Table:
    """What the first tier saved, and what that cost in accuracy."""
    headings = ("mode", "calls saved", "of", "accuracy", "in full")
    table = _table("The clear cases without a call, beside all cases with one", headings)
    for mode, tier in figures.tiers.items():
        decisions = tier.settled + tier.asked
        table.add_row(NAMES[mode], f"{tier.settled:,}", f"{decisions:,}", _cell(tier.accuracy), _cell(tier.in_full))
    return table


def _table(title: str, headings: tuple[str, ...]) -> Table:
    """A narrow table with its first column on the left and figures on the right."""
    table = Table(padding=(0, 0, 0, 1), title=title)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left")
    return table


def _cell(interval: Interval, *, signed: bool = False) -> str:
    """The interval below the mean, so that the table stays narrow."""
    text = in_percent(interval, signed=signed).replace(" (", "\n").replace(")", "")
    return text.replace(" to ", "–").replace("100.0", "100")


@stoppable(nothing_written)
def backtest(
    source: Annotated[str, Argument(metavar="FILE", help="Labelled history.")],
    condition: Annotated[str | None, Option(help="A condition, in its text form or in plain English.")] = None,
    playbook: PlaybookOption = None,
    mapping: MappingOption = None,
    strict: StrictOption = False,
) -> Said:
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
        return _condition(condition, data)
    with existing_playbook(playbook, read_only=True) as book:
        data = load_dataset(source, mapping=mapping, remembered=trained_mapping(book), strict=strict)
        note_bad_rows(data.bad_rows, data.unlabelled, data.remarks)
        measured = measure(embedded_learner(book), data)
        figures = measured.as_json()
        bullets = figures.pop("bullets")
        content = {"rows": figures.pop("rows"), "rows.unreadable": data.unreadable, **figures, "bullets": bullets}
        return content, list(_backtest_lines(measured, book))


def _condition(text: str, data: Dataset) -> Said:
    memory = memory_for(data.mapping.describe())
    cases = Cases.stacked([data.train, data.test])
    known = LabelledFacts.of(memory.studied(cases, data.waiting) if memory else cases)
    condition = read(text, known.facts)
    evidence = measured_on(condition, known)
    lines = [str(condition), f"{say(condition)}: {evidence.in_words()}"]
    if evidence.lift is not None:
        lines.append(f"{evidence.lift:.2f} times the {100 * evidence.base_rate:.1f}% of all cases")
    return {"condition": str(condition), "english": say(condition), **evidence_json(evidence)}, lines


def _backtest_lines(measured: Backtest, book: BulletPlaybook) -> Iterator[str | tuple[str, str]]:
    yield from _figures(measured.figures)
    if measured.without_label_facts is not None:
        late = f"{measured.label_delay} after their transaction (label_delay)"
        yield f"Labels without a time of their own arrive {late}. With facts that depend on labels unknown:"
        yield from _figures(measured.without_label_facts)
    yield f"{len(measured.bullets)} bullets on {measured.rows:,} cases; {measured.counted}", "bold"
    for tested in measured.bullets:
        bullet = book.get_bullet(tested.id)
        words = say(bullet.condition) if bullet and bullet.condition else tested.content
        learnt = tested.learnt.in_words() if tested.learnt else "nothing: unverified"
        yield f"{tested.id}  {tested.argues}  {words}"
        yield f"    here {tested.evidence.in_words()}; learnt with {learnt}"


def _figures(figures: dict[str, Interval]) -> list[str]:
    return [f"{metric.replace('_', ' '):>18}  {in_percent(figure)}" for metric, figure in figures.items()]


def read(text: str, facts: FactTable) -> Condition:
    """A condition from its text form or from English. Raises InputError that names what was not understood."""
    reading = read_rule(text, Vocabulary.of(FactCatalog.of(facts)))
    if reading.condition is None:
        raise InputError(f"{reading.problem} The facts are: {', '.join(facts.names[:20])}", field="condition")
    return reading.condition
