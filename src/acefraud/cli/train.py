"""`acefraud train`: bullets from labelled history."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from acefraud.cli.console import Said, note, note_bad_rows, progress, shown_steps, stoppable
from acefraud.cli.options import MappingOption, PlaybookOption, SchedulerOption, StrictOption, WorkersOption
from acefraud.cli.threshold import CostsOption
from acefraud.cli.workspace import any_playbook, budget_code, learner_with, model_report, place_of, roles_for
from acefraud.datasets import SHIPPED, Dataset, SchemaMapping, load_dataset
from acefraud.engine.parts import PartedHistory, first_labelled, sources_of
from acefraud.engine.thresholds import RULES, ThresholdRule
from acefraud.errors import BudgetExceeded, InputError, ModelError
from acefraud.learning.build_roles import Roles
from acefraud.learning.learner import Learner
from acefraud.learning.pipeline import sample_of
from acefraud.rules.scorecard import GENERAL, missing_cases
from acefraud.settings import ModelSettings
from acefraud.storage import BulletPlaybook
from acefraud.support.database_address import shown_place
from acefraud.support.runners import runner_for

BULLETS_SHOWN = 5
_AS_IT_WAS = "the playbook is as it was"


@stoppable(lambda: _AS_IT_WAS)
def train(
    source: Annotated[
        str,
        Argument(
            metavar="FILE",
            help="Labelled transactions: JSON, JSONL, CSV or Parquet. Or a folder of such files, or 'days/*.parquet'.",
        ),
    ],
    playbook: PlaybookOption = None,
    mapping: MappingOption = None,
    threshold: Annotated[
        str | None,
        Option(
            metavar="RULE",
            help=f"The fraud probability to decline from: {RULES}. Default: that of the playbook, 0.5 at first.",
        ),
    ] = None,
    costs: CostsOption = None,
    most_bullets: Annotated[
        int | None,
        Option(
            min=1,
            help="Learn at most this many bullets, now and later. Default: the limit of the playbook, 150 at first.",
        ),
    ] = None,
    plain: Annotated[
        bool, Option(help="Learn short bullets only, now and later: two tests, lists of three values.")
    ] = False,
    strict: StrictOption = False,
    workers: WorkersOption = 1,
    scheduler: SchedulerOption = None,
    *,
    settings: ModelSettings,
) -> Said:
    """Learn bullets from labelled history and add them to a playbook.

    Conditions are grown on the earlier four fifths of the rows and must hold on the latest fifth; each bullet shows
    what was measured. Nothing is written unless the whole run succeeds. If rows have a time and name customers,
    terminals or other entities that come back, the history of each entity becomes facts too.

    The threshold can be chosen on the latest cases: for the most correct decisions (accuracy), for the balance of
    precision and recall (f1), or to catch as much fraud as possible while declining at most a share of the honest
    cases (fpr=0.01). With cost=5:100, declining an honest case costs 5 and approving a fraud 100. --costs takes what
    `acefraud threshold set` does: the cost of a review too, and how many there may be a day. Later learning keeps the
    threshold and the costs.

    The files of a folder or a pattern are parts of one history, which need not fit into memory together: they are read
    one at a time, by several --workers on this machine, or on the Dask cluster of a --scheduler. What is learnt is the
    same to the last bit, however rows are divided.

        acefraud train history.csv --playbook book.db
        acefraud train history.csv --playbook book.db --threshold f1
        acefraud train history.csv --playbook book.db --costs false_decline=15,missed_fraud=200,review=5,per_day=50
        acefraud train history.csv --playbook book.db --most-bullets 20
        acefraud train 'days/*.parquet' --playbook book.db --mapping mapping.toml --workers 2
    """
    if threshold is not None and costs is not None:
        raise InputError("--threshold and --costs exclude each other")
    said = threshold if costs is None else costs
    rule = None if said is None else ThresholdRule.parse(said)
    with _history(source, mapping, strict=strict, workers=workers, scheduler=scheduler) as data:
        if data.frauds in (0, len(data)):
            raise InputError("all rows have the same label; expected both fraud and honest rows", file=source)
        roles = roles_for(settings, data.mapping)
        return _learn(data, roles, playbook, rule, most_bullets=most_bullets, plain=plain)


@contextmanager
def _history(
    source: str, mapping: Path | None, *, strict: bool, workers: int, scheduler: str | None
) -> Iterator[Dataset | PartedHistory]:
    """One file in memory, or several as parts of a history, with what a person should know of their reading."""
    sources = sources_of(source)
    if not sources and workers == 1 and scheduler is None:
        data = load_dataset(source, mapping=mapping, strict=strict)
        note_bad_rows(data.bad_rows, data.unlabelled)
        note_reading(data, source, mapping)
        note_label_delay(data, mapping)
        yield data
        return
    with runner_for(workers, scheduler) as runner:
        known = _known_from_first(sources or [source], source, mapping, strict=strict)
        with shown_steps() as steps:
            history = PartedHistory.read(sources or [source], known, runner, steps, name=source, strict=strict)
        if history.bad_rows:
            note(f"{history.bad_rows:,} rows could not be read and were left out")
        yield history


def _known_from_first(sources: list[str], source: str, mapping: Path | None, *, strict: bool) -> SchemaMapping:
    """How the columns of all parts are read, with what a person should know of it."""
    first = first_labelled(sources, mapping, strict=strict)
    note_reading(first, source, mapping)
    note_label_delay(first, mapping)
    return first.mapping


def _learn(
    data: Dataset | PartedHistory, roles: Roles, playbook: Path | None, rule: ThresholdRule | None, **limits: Any
) -> Said:
    place = shown_place(place_of(playbook))
    with any_playbook(playbook) as book, stoppable(partial(_kept, book, book.seq)):
        learner, added, unfitted = asyncio.run(_train(roles, book, data, rule, **limits))
        memory, node = learner.memory(), learner.options.node
        bullets = book.get_bullets_for_node(node)
        kept = [bullet for bullet in bullets if bullet.id in set(added)]
        cases = learner.remembered()
        nothing, missing = learner.nothing_learnt(), missing_cases(cases.facts, cases.labels)
        declines_from = (book.snapshot().calibration(node) or GENERAL).threshold
    if unfitted:
        note(f"the odds of the agent's words were not fitted: {unfitted}. What was learnt until then is kept")
    content = {
        "playbook": place,
        "rows": len(data),
        "rows.unreadable": data.unreadable,
        "frauds": data.frauds,
        "bad_rows": len(data.bad_rows) if isinstance(data, Dataset) else data.bad_rows,
        "unlabelled": data.unlabelled,
        "bullets": len(kept),
        "threshold": declines_from,
        "threshold_rule": rule.words if rule else None,
    }
    count = f"{len(kept)} bullet{'' if len(kept) == 1 else 's'}"
    lines = [
        f"{len(data):,} cases, {data.frauds:,} of them fraud: {count} in {place}",
        f"Declines from a fraud probability of {declines_from:.3g}{f' ({rule.words})' if rule else ''}",
    ]
    if memory is not None:
        history = {"entities": memory.names, "windows": memory.plan.windows, "facts": len(memory.facts)}
        content |= {"history": history, "label_delay": memory.plan.label_delay}
        windows = ", ".join(memory.plan.windows)
        lines.append(f"History of each {' and '.join(memory.names)} over {windows}: {len(memory.facts)} facts")
    if unfitted:
        content["odds_not_fitted"] = unfitted
    strongest = sorted(kept, key=lambda bullet: -abs(bullet.weight or 0))[:BULLETS_SHOWN]
    lines += [f"  {bullet.id}  {bullet.content}" for bullet in strongest]
    if not kept and bullets:
        lines.append(f"Nothing new: the playbook's {len(bullets)} bullets already say what these cases teach.")
    elif not kept:
        lines += [f"No bullet was learnt: {nothing}.", *([f"What is missing: {missing}"] if missing else [])]
    return {**content, **model_report(roles, learner)}, lines, budget_code(learner, unfitted)


def _kept(book: BulletPlaybook, seq: int) -> str:
    """What is kept of a training that was stopped: it is written at once, and only the odds are fitted after that."""
    book.refresh()
    return _AS_IT_WAS if book.seq == seq else "what was learnt until then is kept"


async def _train(
    roles: Roles, book: BulletPlaybook, data: Dataset | PartedHistory, rule: ThresholdRule | None, **limits: Any
) -> tuple[Learner, list[str], str]:
    """The learner, the ids of the bullets added, and why the odds were not fitted if a budget ran out."""
    async with learner_with(roles, book, **limits) as learner:
        with progress("learning", len(data)) as done:
            added = await learner.train(data, dataset=data.name, threshold=rule, progress=done)
        return learner, added, await _fit_odds(roles, learner, data)


async def _fit_odds(roles: Roles, learner: Learner, data: Dataset | PartedHistory) -> str:
    if not roles.scale_odds:
        return ""
    if isinstance(data, PartedHistory):
        return "they are fitted on a history in one piece"
    memory = learner.memory()
    cases = data.train if memory is None else memory.studied(data.train, data.waiting)
    try:
        await learner.scale_odds(sample_of(cases, roles.scale_odds), data.frauds / len(data))
    except BudgetExceeded as spent:
        return str(spent)
    except ModelError as failure:  # the bullets are already written
        raise ModelError(
            f"{failure}; the bullets are kept, but the odds of the agent's words were not fitted"
        ) from failure
    return ""


def note_reading(data: Dataset, source: str, mapping: Path | None) -> None:
    """Say on standard error how the columns of a file were read, as far as the mapping does not say it."""
    if source in SHIPPED:
        return
    for remark in data.report:
        note(f"{'warning: ' if remark.weight == 'warning' else ''}{remark}")
    head = "# The columns were read like this. To correct it, save it to a file and pass that with --mapping:"
    note(f"# What {mapping} leaves open was read like this:" if mapping else head)
    told = data.mapping.model_copy(update={"why": {}})  # the report has said it
    note(told.describe(beside=SchemaMapping.load(mapping) if mapping else None).rstrip())


def note_label_delay(data: Dataset, mapping: Path | None) -> None:
    """Warn on standard error if figures depend on how late labels are, and nobody has said it."""
    if remark := data.delay_remark(SchemaMapping.load(mapping) if mapping else None):
        note(f"warning: {remark}")
