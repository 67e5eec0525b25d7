"""`python -m benchmarks feeds`: what a playbook learns if only frauds are reported, beside one that hears every label.

A playbook is trained on the first 40 % of a dataset by time and decides the next 30 % in order. Frauds are reported
late, by 5 to 30 % of the span of the dataset, at random. The complete feed brings every other label just as late. The
fraud-only feed brings nothing else: silence for 30 % of the span counts as legitimate. Clocks are those of the
transactions. Once all labels have matured, both are reviewed and measured on the last 30 %, which nobody learns from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from acefraud import BulletPlaybook, Cases, HybridSelector, Learner, LearnerOptions, Outcome, load_dataset
from benchmarks.arrays import Mask, Micros, Numbers, Places
from benchmarks.console import JsonOption, line, names_in, out, print_json, progress
from benchmarks.quality.dataset_folder import data_folder, sources
from benchmarks.quality.measures import Groups

NODE = "fraud_detection"
TRAINED, MEASURED_FROM = 0.4, 0.7
"""The shares of the span of a dataset up to which a playbook is trained, and from which it is measured."""
EARLIEST, LATEST = 0.05, 0.30
"""How late reports are, as shares of the span."""
BATCH = 50
WAITS = 40
"""Looks at the clock while the last labels mature."""
THRESHOLD = "fpr=0.05"
"""So that all datasets have declines to compare."""
UPLOADS = (1, 30, 300)
FOLLOWED = 0.5
"""A jump has been followed once the mean score has gone this share of the way to its new place..."""
WINDOW = 250
"""...over so many decisions."""
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Streamed:
    """What a playbook decided on the rows after its training."""

    scores: Numbers
    declined: Mask
    labels: Mask
    times: Micros
    held: int
    """Steps of the level that were held."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A dataset in order of time, and when each of its labels is reported."""

    cases: Cases
    mapping: str
    due: Micros
    span: int

    @classmethod
    def of(cls, cases: Cases, mapping: str, seed: int) -> Replay:
        """Reports that are late at random."""
        times = cases.transactions.times
        span = int(times[-1] - times[0])
        late = np.random.default_rng(seed).uniform(EARLIEST, LATEST, len(times))
        return cls(cases, mapping, times + (late * span).astype(np.int64), span)

    @property
    def start(self) -> int:
        """The first row that is decided."""
        times = self.cases.transactions.times
        return int(np.searchsorted(times, times[0] + TRAINED * self.span))

    def learner(self, seed: int, threshold: str | None = THRESHOLD) -> tuple[Learner, Clock]:
        """A learner that has studied the first rows, and the clock of its playbook."""
        clock = Clock()
        playbook = BulletPlaybook(clock=clock)
        learner = Learner(playbook, selector=HybridSelector(seed=seed), options=LearnerOptions(seed=seed))
        clock.now = int(self.cases.transactions.times[self.start])
        learner.study(self.cases.take(slice(0, self.start)), mapping=self.mapping, threshold=threshold)
        return learner, clock

    def outcomes(self, rows: Places) -> list[Outcome]:
        """The outcomes of some rows."""
        ids, labels = self.cases.transactions.ids, self.cases.labels
        return [
            Outcome(transaction_id=ids[row], is_fraud=bool(labels[row]), at=_time(int(self.due[row])), source="label")
            for row in rows.tolist()
        ]


class Clock:
    """A clock that shows what it is told."""

    now = 0

    def __call__(self) -> datetime:
        return _time(self.now)


def feeds(  # noqa: PLR0917  # the signature of a command is its list of options
    folder: Annotated[Path | None, typer.Argument(help="Folder of datasets. Default: $ACEFRAUD_DATA.")] = None,
    datasets: Annotated[str | None, typer.Option(help="Only these datasets, separated by commas.")] = None,
    mappings: Annotated[Path | None, typer.Option(help="Folder with a mapping NAME.toml for datasets.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many seeds to run.")] = 3,
    rows: Annotated[int, typer.Option(min=1000, help="At most so many of the latest rows of each dataset.")] = 15_000,
    json: JsonOption = False,
) -> None:
    """Measure what **fraud-only feeds** teach, beside complete ones with equally late frauds.

    Average precision and the share of declines, once labels have matured; what uploads of many frauds at once change;
    and how many decisions it takes to follow frauds that triple, where a person agrees to every step that is held.

        python -m benchmarks feeds data --mappings benchmarks/mappings
    """
    found = sources(data_folder(folder), names=names_in(datasets), mappings=mappings)
    figures: list[dict[str, Any]] = []
    with progress("replaying") as done:
        for nth, source in enumerate(found):
            data = load_dataset(source.file, mapping=source.mapping)
            cases = data.train.in_order()[-rows:]
            if not cases.transactions.timed:
                continue
            for seed in range(seeds):
                figures.append({"dataset": source.name, "seed": seed, **measure(cases, data.mapping.describe(), seed)})
                done((nth + (seed + 1) / seeds) / len(found))
    if json:
        print_json(figures)
        return
    out.print(_table(figures))
    for line_of in _summary(figures):
        line(line_of)


def measure(cases: Cases, mapping: str, seed: int) -> dict[str, Any]:
    """All figures of one dataset and seed."""
    replay = Replay.of(cases, mapping, seed)
    runs = (stream(replay, seed, fraud_only=fraud_only, until=MEASURED_FROM) for fraud_only in (False, True))
    complete, reported = runs
    ap, other_ap = (_average_precision(replay, each) for each in (complete, reported))
    declines, other_declines = (float(each.declined[_matured(replay, each)].mean()) for each in (complete, reported))
    return {
        "ap_complete": ap,
        "ap_fraud_only": other_ap,
        "declines_complete": declines,
        "declines_fraud_only": other_declines,
        "held": reported.held,
        "uploads": {str(count): upload(replay, seed, count) for count in UPLOADS},
        **jump(cases, mapping, seed),
    }


def stream(replay: Replay, seed: int, *, fraud_only: bool, agree: bool = True, until: float = 1.0) -> Streamed:
    """Decide the rows after the training in order; each label is heard when it is due, or never.

    The rows after the share `until` of the span are decided at its end, once all labels have matured. A threshold is
    chosen only if there are such rows: without them scores are looked at, not verdicts.
    """
    learner, clock = replay.learner(seed, THRESHOLD if until < 1 else None)
    times, labels = replay.cases.transactions.times, replay.cases.labels
    silence = LATEST * replay.span / _DAY
    if fraud_only:  # the frauds of a dataset are reported whatever was decided
        learner.playbook.set_feed("fraud_only", silence_days=silence, declines_pass=True)
    end = int(np.searchsorted(times, times[0] + until * replay.span, side="right"))
    places = np.arange(replay.start, end)
    reported = places[labels[places]] if fraud_only else places
    waiting = reported[np.argsort(replay.due[reported], kind="stable")]
    scores, declined, held = [], [], 0
    ticks = [int(times[first]) for first in range(replay.start, end, BATCH)]
    waits: list[float] = np.linspace(0, 1.1 * LATEST * replay.span, WAITS).tolist() if end < len(times) else []
    for nth, now in enumerate([*ticks, *(int(times[end - 1] + wait) for wait in waits)]):
        clock.now = now
        count = int(np.searchsorted(replay.due[waiting], clock.now, side="right"))
        for some in _batches(waiting[:count]):
            learner.hear_all_sync(replay.outcomes(some))
            held += _settled(learner, agree=agree)
        waiting = waiting[count:]
        learner.hear_silence_sync()
        held += _settled(learner, agree=agree)
        if len(ticks) <= nth < len(ticks) + len(waits) - 1:
            continue
        if nth >= len(ticks):
            learner.review()
            held += _settled(learner, agree=agree)
        first = replay.start + nth * BATCH
        batch = slice(first, min(first + BATCH, end)) if nth < len(ticks) else slice(end, None)
        clock.now = max(now, int(times[batch][-1]))  # no row of a batch lies ahead of the clock
        decisions = learner.decide_all_sync(replay.cases.transactions.take(batch))
        scores += [decision.probability for decision in decisions]
        declined += [decision.verdict == "DECLINE" for decision in decisions]
    learner.playbook.close()
    decided = slice(replay.start, None)
    return Streamed(np.array(scores), np.array(declined), labels[decided], times[decided], held)


def upload(replay: Replay, seed: int, count: int) -> dict[str, Any]:
    """By which factor many reports at once, of frauds only, change the share of declines of a new playbook."""
    learner, clock = replay.learner(seed)
    clock.now = int(replay.cases.transactions.times[-1])
    rows = np.arange(replay.start, len(replay.cases))
    transactions = replay.cases.transactions.take(slice(replay.start, None))
    before = learner.decide_all_sync(transactions)
    frauds, honest = rows[replay.cases.labels[rows]], rows[~replay.cases.labels[rows]]
    ids = replay.cases.transactions.ids[np.concatenate([frauds, honest])[:count]]
    outcomes = [Outcome(transaction_id=each, is_fraud=True, source="chargeback") for each in ids.tolist()]
    for start in range(0, len(outcomes), BATCH):
        learner.hear_all_sync(outcomes[start : start + BATCH])
    after = learner.score_sync(transactions)
    shares = [sum(each.verdict == "DECLINE" for each in some) / len(rows) for some in (before, after)]
    calibration = learner.playbook.snapshot().calibration(NODE)
    held = calibration is not None and calibration.held is not None
    learner.playbook.close()
    return {"before": shares[0], "after": shares[1], "held": held}


def jump(cases: Cases, mapping: str, seed: int) -> dict[str, Any]:
    """How many decisions each feed needs to follow frauds that triple half-way through the decided rows."""
    times = cases.transactions.times
    turn = times[0] + (TRAINED + 1) / 2 * (times[-1] - times[0])
    thinned = cases.labels & (times < turn) & (np.random.default_rng(seed + 1).random(len(times)) > 1 / 3)
    kept = cases.take(~thinned)
    replay = Replay.of(kept, mapping, seed)
    found = {}
    for name, fraud_only in (("complete", False), ("fraud_only", True)):
        run = stream(replay, seed, fraud_only=fraud_only)
        found[f"jump_{name}"] = _followed(run, turn)
        found[f"jump_held_{name}"] = run.held
    return found


def _followed(run: Streamed, turn: float) -> int | None:
    """Decisions after the jump until the mean score has gone half of its way; None if it never did."""
    first = int(np.searchsorted(run.times, turn))
    if first < WINDOW or len(run.scores) - first < 2 * WINDOW:
        return None
    mean = np.convolve(run.scores, np.ones(WINDOW) / WINDOW, mode="valid")  # of the scores from each place on
    before, truth = float(run.scores[max(0, first - 1000) : first].mean()), float(run.labels[first:].mean())
    reached = np.flatnonzero(mean[first:] >= before + FOLLOWED * (truth - before))
    return int(reached[0]) if len(reached) else None


def _settled(learner: Learner, *, agree: bool) -> int:
    """Agree to a step of the level that is held, if that is asked for. Returns how many were."""
    calibration = learner.playbook.snapshot().calibration(NODE)
    if calibration is None or calibration.held is None:
        return 0
    if agree:
        learner.playbook.settle_level(accept=True, who="a person")
    return 1


def _matured(replay: Replay, run: Streamed) -> Mask:
    mask: Mask = run.times >= replay.cases.transactions.times[0] + MEASURED_FROM * replay.span
    return mask


def _average_precision(replay: Replay, run: Streamed) -> float:
    rows = _matured(replay, run)
    return Groups.of(run.scores[rows], run.labels[rows]).figures()["average_precision"]


def _batches(rows: Places) -> Iterator[Places]:
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


def _time(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def _summary(figures: list[dict[str, Any]]) -> Iterator[str]:
    ratios = np.array([figure["ap_fraud_only"] / figure["ap_complete"] for figure in figures])
    declines = np.array([figure["declines_fraud_only"] / max(figure["declines_complete"], 1e-9) for figure in figures])
    yield f"Average precision, fraud only to complete: geometric mean {np.exp(np.log(ratios).mean()):.3f}"
    yield f"Share of declines, fraud only to complete: geometric mean {np.exp(np.log(declines).mean()):.3f}"
    worst = [
        (abs(part["after"] / max(part["before"], 1e-9) - 1), part["held"], figure["dataset"], count)
        for figure in figures
        for count, part in figure["uploads"].items()
    ]
    change, held, name, count = max(worst)
    where = f"{name}, {count} frauds, {'held' if held else 'not held'}"
    yield f"Uploads at once: the largest change of the share of declines is {change:.1%} of itself ({where})"
    pairs = [(figure["jump_fraud_only"], figure["jump_complete"]) for figure in figures]
    known = [(each, other) for each, other in pairs if each is not None and other is not None]
    if known:
        ratio = sum(each for each, _ in known) / max(1, sum(other for _, other in known))
        yield f"Frauds triple: both followed in {len(known)} of {len(pairs)} runs, in {ratio:.2f} times the decisions"


def _table(figures: list[dict[str, Any]]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    headings = ("dataset", "seed", "AP complete", "fraud only", "declines", "fraud only", "held", "jump", "fraud only")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "dataset" else "right")
    for figure in figures:
        table.add_row(
            figure["dataset"],
            str(figure["seed"]),
            f"{figure['ap_complete']:.3f}",
            f"{figure['ap_fraud_only']:.3f}",
            f"{figure['declines_complete']:.2%}",
            f"{figure['declines_fraud_only']:.2%}",
            str(figure["held"]),
            *(str(figure[name]) for name in ("jump_complete", "jump_fraud_only")),
        )
    return table
