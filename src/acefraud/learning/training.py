"""A labelled history on its way into a playbook."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypedDict, Unpack

from acefraud.core.events import Recalibrated, ThresholdSet, Trained
from acefraud.core.ledger import KnownCase, RowUpdate
from acefraud.core.transaction import Case, Transaction
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets import Dataset, SchemaMapping, load_dataset, mapping_of, parse_mapping
from acefraud.display.frames import is_dask_frame, is_frame
from acefraud.display.short_repr import ShortRepr
from acefraud.engine.entity_memory import KeptTimes, memory_for, time_facts_of
from acefraud.engine.options import LearnerOptions
from acefraud.engine.parts import PartedHistory, first_labelled
from acefraud.engine.score import score
from acefraud.engine.thresholds import ThresholdRule, cases_for, choose
from acefraud.errors import InputError, point_out
from acefraud.facts.extraction import READER
from acefraud.facts.time_facts import with_time_facts
from acefraud.roles.embedded.case_memory import KnownCases, LabelledFacts
from acefraud.roles.reflector import Reflector
from acefraud.rules.scorecard import GENERAL
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arguments import check_type
from acefraud.support.arrays import BoolArray, IntArray
from acefraud.support.runners import runner_for_frame
from acefraud.support.timestamps import UNKNOWN, last_plausible

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame


Progress = Callable[[float], None]


class TrainingOptions(TypedDict, total=False):
    """What may be said of a labelled history."""

    dataset: str
    """Its name."""
    mapping: SchemaMapping | Path | str
    """How it was, or is to be, read: a mapping, the path of one, or its text."""
    waiting: Sequence[Transaction]
    """Transactions that are still waiting for their label."""
    threshold: ThresholdRule | str | None
    """How the threshold is chosen, as a rule or in its words, or what each verdict costs; None leaves it as it is."""
    progress: Progress
    """Called now and then with the share that is done."""
    ids: bool
    """False lets the ids of a data frame repeat."""
    both_labels: bool
    """Whether a history without both labels is an error, which it is unless you say False."""


@dataclass(frozen=True, slots=True, repr=False)
class Training(ShortRepr):
    """Cases in order of time with all their facts, and what the playbook will keep of them."""

    cases: Cases
    """All of them or, if they are in parts, the latest ones."""
    latest: Cases
    """Those that will be remembered."""
    facts: KnownCases
    trained: Trained
    memory_change: RowUpdate | None
    """What it changes in the memory of entities."""
    threshold: ThresholdRule | None
    threshold_cases: LabelledFacts | None
    """The cases on which a threshold is chosen."""
    progress: Progress

    @classmethod
    def of(
        cls,
        given: Cases,
        playbook: BulletPlaybook,
        reflector: Reflector,
        node: str,
        **options: Unpack[TrainingOptions],
    ) -> Training:
        """A history ready to learn from, with the facts that its mapping's history gives. Nothing is written.

        Raises InputError if `both_labels` are needed and there is only one, or none.
        """
        mapping = written_mapping(options.get("mapping", ""))
        if options.get("both_labels", True):
            _check_labels(given.labels)
        if names := time_facts_of(mapping):
            given = given.with_facts(with_time_facts(given.transactions, names).facts)
        memory, unlabelled = memory_for(mapping), Transactions.of(options.get("waiting", ()))
        if memory is not None:
            _note_later(given.transactions.times, last_plausible(given.transactions.times))
        studied = given if memory is None else memory.studied(given, unlabelled)
        ordered = studied.in_order()
        filling = None if memory is None else memory.filling(studied, unlabelled, playbook.ledger)
        known: TrainingOptions = {**options, "mapping": mapping}
        facts = LabelledFacts.of(ordered)
        latest = ordered.take(facts.latest(reflector.memory.capacity))
        return cls._with(
            ordered, latest, facts, known, playbook=playbook, reflector=reflector, node=node, filling=filling
        )

    @classmethod
    def of_parts(
        cls,
        given: PartedHistory,
        playbook: BulletPlaybook,
        reflector: Reflector,
        node: str,
        **options: Unpack[TrainingOptions],
    ) -> Training:
        """A history in parts ready to learn from. Nothing is written."""
        cases, memory = given.cases, memory_for(given.mapping.describe())
        _check_labels(cases.labels)
        latest = cases.cases(cases.latest(reflector.memory.capacity))
        filling: RowUpdate | None = None
        if memory is not None:
            _note_later(cases.times, given.last)
            kept = KeptTimes.of(given.times, memory.plan)
            filling = memory.filling(*given.recent(kept), playbook.ledger, kept)
        known: TrainingOptions = {**options, "mapping": given.mapping.describe()}
        return cls._with(
            latest, latest, cases, known, playbook=playbook, reflector=reflector, node=node, filling=filling
        )

    @classmethod
    def _with(
        cls,
        cases: Cases,
        latest: Cases,
        facts: KnownCases,
        options: TrainingOptions,
        *,
        playbook: BulletPlaybook,
        reflector: Reflector,
        node: str,
        filling: RowUpdate | None,
    ) -> Training:
        memory_change = filling
        if filling is None and memory_for(playbook.snapshot().mapping):
            # A training without a history ends the one that is kept.
            memory_change = lambda rows: rows.clear()  # noqa: E731
        trained = Trained(
            node=node,
            dataset=options.get("dataset", ""),
            rows=len(facts),
            frauds=facts.frauds,
            mapping=written_mapping(options.get("mapping", "")),
            remembered=len(latest),
            remembered_frauds=int(latest.labels.sum()),
        )
        threshold = options.get("threshold")
        rule = ThresholdRule.parse(threshold) if isinstance(threshold, str) else threshold
        threshold_cases = cases_for(rule, facts, reflector.options.induction.later_share) if rule else None
        progress = options.get("progress", lambda _: None)
        return cls(cases, latest, facts, trained, memory_change, rule, threshold_cases, progress)

    def remember(self, playbook: BulletPlaybook) -> None:
        """Record the training, and keep the latest cases with their facts."""
        facts = self.facts.take(self.facts.latest(len(self.latest))).facts.rows()
        known = [KnownCase(case, each, READER) for case, each in zip(self.latest, facts, strict=True)]
        playbook.record([self.trained], cases=known, rows=self.memory_change)
        mapping = mapping_of(self.trained.mapping)
        if mapping is not None and (mapping.feed or mapping.silence_days):
            playbook.set_feed(mapping.feed, silence_days=mapping.silence_days, node=self.trained.node)

    def set_threshold(self, playbook: BulletPlaybook, selector: HybridSelector, options: LearnerOptions) -> None:
        """Choose the threshold on labelled cases as the playbook scores them now. Without a rule it stays."""
        if self.threshold is None or self.threshold_cases is None:
            return
        if (rule := self.threshold.review) is not None:
            playbook.record([ThresholdSet(node=options.node, review=rule)])
            if rule.costs is None or rule.costs.threshold is None:
                return
        snapshot, cases = playbook.snapshot(), self.threshold_cases
        rows = Transactions(cases.ids, cases.facts, times=cases.times)
        scores = score(rows, snapshot, selector.without_draws(), options, known=cases.facts)
        chosen = choose(self.threshold, scores.probabilities, cases.labels)
        calibration = (snapshot.calibration(options.node) or GENERAL).model_copy(update={"threshold": chosen})
        playbook.record([Recalibrated(node=options.node, calibration=calibration)])


def _note_later(times: IntArray, last: int) -> None:
    """Say how many times are later than the last plausible one."""
    if last != UNKNOWN:
        wrong = int((times > last).sum())
        point_out(f"{wrong:,} of {len(times):,} times are far later than all others: they count in no history")


def _check_labels(labels: BoolArray) -> None:
    frauds, count = int(labels.sum()), len(labels)
    if not count:
        raise InputError("there are no cases: expected a history with both labels, fraud and honest")
    if frauds in (0, count):
        are, other = ("fraud", "honest ones") if frauds else ("honest", "frauds")
        which = f"all {count:,} cases are" if count > 1 else "the only case is"
        raise InputError(f"{which} {are}: expected both labels, so {other} are missing")


def written_mapping(mapping: SchemaMapping | Path | str) -> str:
    """A mapping as its text, which is what the playbook keeps."""
    check_type("mapping", mapping, (SchemaMapping, Path, str), "a SchemaMapping, the path of one, or its text")
    if isinstance(mapping, Path):
        mapping = SchemaMapping.load(mapping)
    return mapping.describe() if isinstance(mapping, SchemaMapping) else mapping


HistoryInput: TypeAlias = "Sequence[Case] | IntoFrame | Path | PartedHistory"
"""Labelled cases, a `Dataset`, a data frame (pandas, polars, pyarrow, Dask), or the path of a file."""


@contextmanager
def in_parts(given: HistoryInput, options: TrainingOptions) -> Iterator[HistoryInput]:
    """A data frame of Dask as a history in parts, for as long as it is needed; any other history unchanged.

    What the mapping of the options leaves open is guessed from the first partition with rows.
    """
    if not is_dask_frame(given):
        yield given
        return
    ids, mapping = options.get("ids", True), _mapping_in(options)
    with runner_for_frame(given) as (runner, sources):
        first = first_labelled(sources, mapping, ids=ids)
        _warn_of_delay(first, mapping)
        history = PartedHistory.read(sources, first.mapping, runner, name=first.name, ids=ids)
        if history.bad_rows:
            point_out(f"{history.bad_rows:,} rows could not be read and were left out")
        yield history


def _read(given: IntoFrame | Path, options: TrainingOptions) -> Dataset:
    mapping = _mapping_in(options)
    data = load_dataset(given, mapping=mapping, ids=options.get("ids", True))
    _warn_of_delay(data, mapping)
    return data


def _mapping_in(options: TrainingOptions) -> SchemaMapping | None:
    mapping = options.get("mapping") or None
    if isinstance(mapping, Path):
        return SchemaMapping.load(mapping)
    return parse_mapping(mapping) if isinstance(mapping, str) else mapping


def _warn_of_delay(data: Dataset, mapping: SchemaMapping | None) -> None:
    if remark := data.delay_remark(mapping):
        warnings.warn(remark, UserWarning, stacklevel=5)


def as_history(given: Sequence[Case] | IntoFrame | Path, options: TrainingOptions) -> tuple[Cases, TrainingOptions]:
    """The cases, and the options with what a dataset knows of itself: its name, its mapping and what waits for a label.

    A data frame is read as `load_dataset` reads it, with the mapping of the options if there is one.

    >>> import polars as pl
    >>> cases, options = as_history(pl.DataFrame({"amount": [5.0, 900.0], "is_fraud": [0, 1]}), {})
    >>> len(cases), options["dataset"]
    (2, 'frame')
    """
    if isinstance(given, Path) or is_frame(given):
        given = _read(given, options)
        options = {**options, "mapping": given.mapping}
    if isinstance(given, Dataset):
        own: TrainingOptions = {"dataset": given.name, "mapping": given.mapping, "waiting": given.waiting}
        options = {**own, **options}
        given = given.train
    return Cases.of(given), options
