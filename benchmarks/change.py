"""`python -m benchmarks change`: how soon online learning follows a change of the fraud rate, or of its patterns.

Each stream has a few facts that tell fraud from honest cases and some that tell nothing. A learner starts empty and
decides 50 cases at a time.

In one kind of stream, what fraud looks like never changes; only how common it is does. One fact grows with time, as row
numbers do, and each label arrives at once or 100 cases later. In the other kind a tenth of all cases is fraud, and what
fraud looks like changes after 3,000 cases; each label arrives 200 cases later, and learners of river take part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from acefraud import Case, Cases, Transaction, label_stream
from acefraud.errors import ConfigurationError
from benchmarks.arrays import Mask, Numbers
from benchmarks.console import JsonOption, line, names_in, out, print_json, progress
from benchmarks.quality.contender import Streaming
from benchmarks.quality.measures import Groups, calibration_error
from benchmarks.quality.playbooks import OnlinePlaybook
from benchmarks.quality.river_peers import AdaptiveForest, OnlineLogistic
from benchmarks.quality.streams import BATCH

DELAYS = (0, 100)
"""Cases that come between a case and its label."""
SETTLED = 500
"""Outcomes since a jump after which the level should have followed."""
MEASURED = 2_000
"""Cases that are measured from then on."""
BEFORE = 3_000
"""Cases before the first jump."""
LATE = 200
"""Cases between a case and its label where what fraud looks like changes."""
AFTER = 1_000
"""Cases from such a change on that are measured, and as many before it."""
_START = datetime(2024, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Planted:
    """The labels of a stream, and where its fraud rate jumps."""

    labels: Mask
    jumps: Mapping[str, int]
    """The first case after each jump, by a name. The figures of a quiet stream are measured as after a jump."""


Plant = Callable[[np.random.Generator], Planted]


def up_and_down(generator: np.random.Generator) -> Planted:
    """An attack that begins and ends: 2 % fraud, then 40 %, then 2 % again."""
    shares = np.repeat([0.02, 0.4, 0.02], BEFORE)
    return Planted(generator.random(len(shares)) < shares, {"up": BEFORE, "down": 2 * BEFORE})


def runs(generator: np.random.Generator) -> Planted:
    """2 % fraud, then four times 200 frauds in a row and 800 honest cases, as in a file that is partly sorted."""
    scattered = generator.random(BEFORE) < 0.02
    run = np.repeat([True, False], [200, 800])
    return Planted(np.concatenate([scattered, np.tile(run, 4)]), {"runs": BEFORE})


def quiet(share: float) -> Plant:
    """A stream with the same share of fraud throughout."""
    return lambda generator: Planted(generator.random(2 * BEFORE) < share, {"quiet": BEFORE})


STREAMS: dict[str, Plant] = {
    "up_and_down": up_and_down,
    "runs": runs,
    "quiet_2": quiet(0.02),
    "quiet_10": quiet(0.1),
}


Telling = Mapping[str, float]
"""By how many standard deviations the frauds differ in a number, or which share of them has a flag."""
OLD: Telling = {"amount": 1.6, "account_age_days": -1.4, "new_device": 0.7}
RING = "ring"
"""A name for frauds that have a large number, and a flag or word with it, and are else like honest cases."""
PATTERNS: dict[str, tuple[Telling, Telling]] = {
    "swapped": (OLD, {"distance_km": 1.6, "minutes_since_last": -1.4, "night": 0.7}),
    "inverted": (OLD, {"amount": -1.6, "account_age_days": 1.4, "new_device": 0.05}),
    "partly": (OLD, {"amount": 1.6, "distance_km": -1.4, "night": 0.7}),
    "pattern": ({RING: 0.0}, {RING: 1.0}),
    "unchanged": (OLD, OLD),
    "unchanged_pattern": ({RING: 0.0}, {RING: 0.0}),
}
"""What tells fraud before and after the change."""
LEARNERS: dict[str, Callable[[int], Streaming]] = {
    "acefraud": OnlinePlaybook,
    "river_arf": AdaptiveForest,
    "river_logistic": OnlineLogistic,
}


def change(
    streams: Annotated[str | None, typer.Option(help="Only these streams, separated by commas.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many seeds to run.")] = 5,
    json: JsonOption = False,
) -> None:
    """Measure how soon online learning follows a **sudden change**, and what that costs without one.

    Where the fraud rate changes, the figures are those of the 2,000 cases that follow the first 500 outcomes since a
    jump: calibration error (ten bins of equal mass), ROC AUC and average precision. `AUC at once` includes the cases
    before these 500 outcomes.

    Where the patterns change, they are the average precision of the 1,000 cases before and of the 1,000 from then on.

        python -m benchmarks change
        python -m benchmarks change --streams swapped,inverted,partly,pattern,unchanged --seeds 10
        python -m benchmarks change --streams runs --seeds 1 --json
    """
    wanted = names_in(streams) or [*STREAMS, *PATTERNS]
    if unknown := [name for name in wanted if name not in {**STREAMS, **PATTERNS}]:
        raise ConfigurationError(f"unknown stream '{unknown[0]}': expected {', '.join([*STREAMS, *PATTERNS])}")
    figures, patterns = [], []
    with progress("deciding") as done:
        for nth, name in enumerate(wanted):
            for learner in LEARNERS if name in PATTERNS else ():
                found = [precision_around(PATTERNS[name], learner, seed) for seed in range(seeds)]
                before, after = ([round(each[at], 3) for each in found] for at in (0, 1))
                patterns.append({"stream": name, "learner": learner, "before": before, "after": after})
                done((nth + 1) / len(wanted))
            for delay in DELAYS if name in STREAMS else ():
                runs_of_it = [measure(STREAMS[name], delay, seed) for seed in range(seeds)]
                figures += [
                    {"stream": name, "since": jump, "delay": delay, **_summed([run[jump] for run in runs_of_it])}
                    for jump in runs_of_it[0]
                ]
                done((nth + (delay == DELAYS[-1])) / len(wanted))
    if json:
        print_json({"seeds": seeds, "figures": figures, "patterns": patterns})
        return
    if figures:
        out.print(_table(figures))
        line(f"Means over {seeds} seeds; AUC is the lowest of them.", "dim")
    if patterns:
        out.print(_pattern_table(patterns))
        line(f"AP, means over {seeds} seeds, and the lowest and highest after the change.", "dim")


def measure(plant: Plant, delay: int, seed: int) -> dict[str, dict[str, float]]:
    """Run a learner through a stream. Returns the figures since each jump."""
    generator = np.random.default_rng(seed)
    planted = plant(generator)
    scores = decided(cases_of(planted.labels, delay, generator), OnlinePlaybook(seed))
    found = {}
    for name, jump in planted.jumps.items():
        settled = jump + SETTLED + delay
        end = min(settled + MEASURED, len(scores))
        after = Groups.of(scores[settled:end], planted.labels[settled:end]).figures()
        found[name] = {
            "calibration_error": calibration_error(scores[settled:end], planted.labels[settled:end], bins=10),
            "roc_auc": after["roc_auc"],
            "roc_auc_at_once": Groups.of(scores[jump:end], planted.labels[jump:end]).figures()["roc_auc"],
            "average_precision": after["average_precision"],
        }
    return found


def precision_around(telling: tuple[Telling, Telling], learner: str, seed: int) -> tuple[float, float]:
    """The average precision of a learner before and after what fraud looks like changes."""
    cases = changing_cases(telling, np.random.default_rng(seed))
    scores = decided(cases, LEARNERS[learner](seed))
    parts = slice(BEFORE - AFTER, BEFORE), slice(BEFORE, BEFORE + AFTER)
    before, after = (Groups.of(scores[part], cases.labels[part]).figures()["average_precision"] for part in parts)
    return before, after


def changing_cases(telling: tuple[Telling, Telling], generator: np.random.Generator) -> Cases:
    """Cases of which other facts tell fraud from `BEFORE` on."""
    cases: list[Case] = []
    for tells, count in zip(telling, (BEFORE, AFTER), strict=True):
        labels = generator.random(count) < 0.1
        for facts, label in zip(_facts(tells, labels, generator), labels.tolist(), strict=True):
            at = _START + len(cases) * _MINUTE
            transaction = Transaction(id=f"t{len(cases)}", time=at, facts=facts)
            cases.append(Case(transaction=transaction, is_fraud=label, known_at=at + LATE * _MINUTE))
    return Cases.of(cases)


def _facts(tells: Telling, labels: Mask, generator: np.random.Generator) -> list[dict[str, Any]]:
    count = len(labels)
    numbers = {
        name: np.exp(generator.normal(3 + tells.get(name, 0.0) * labels, 1.0))
        for name in ("amount", "account_age_days", "distance_km", "minutes_since_last")
    }
    numbers |= {f"noise_{column}": generator.normal(size=count) for column in range(3)}
    flags = {
        name: generator.random(count) < np.where(labels, tells.get(name, 0.3), 0.3) for name in ("new_device", "night")
    }
    words = generator.choice(["online", "shop", "phone", "post"], count)
    if RING in tells:
        ring = labels & (generator.random(count) < 0.85)
        large = np.exp(3 + np.abs(generator.normal(1.2, 0.6, int(ring.sum()))))
        numbers["distance_km" if tells[RING] else "amount"][ring] = large
        words[ring & bool(tells[RING])] = "phone"
        flags["new_device"] |= ring & (not tells[RING])
    return [
        {
            **{name: round(float(column[row]), 3) for name, column in numbers.items()},
            **{name: bool(column[row]) for name, column in flags.items()},
            "channel": str(words[row]),
        }
        for row in range(count)
    ]


def decided(cases: Cases, learner: Streaming) -> Numbers:
    """The probabilities that a learner gives the cases, each before it hears its label."""
    scores = []
    for what, places in label_stream(cases, decide=np.arange(len(cases)), batch=BATCH, early=False):
        rows = cases.take(places)
        if what == "hear":
            learner.learn(rows)
        else:
            scores.append(learner.predict(rows))
    return np.concatenate(scores)


def cases_of(labels: Mask, delay: int, generator: np.random.Generator) -> Cases:
    """One case a minute. The label of each arrives after so many others."""
    count = len(labels)
    amounts = np.exp(generator.normal(4 + 0.8 * labels, 1.0))
    ages = np.exp(generator.normal(5 - 0.7 * labels, 1.0))
    online = generator.random(count) < np.where(labels, 0.6, 0.3)
    noise = generator.normal(size=(count, 3))
    words = generator.choice(["red", "green", "blue", "grey"], count)
    return Cases.of(
        Case(
            transaction=Transaction(
                id=f"t{index}",
                time=_START + index * _MINUTE,
                facts={
                    "amount": round(float(amounts[index]), 2),
                    "account_age_days": round(float(ages[index]), 1),
                    "channel": "online" if online[index] else "shop",
                    "row_number": index,
                    "colour": str(words[index]),
                    **{f"noise_{column}": round(float(each), 3) for column, each in enumerate(noise[index])},
                },
            ),
            is_fraud=bool(labels[index]),
            known_at=_START + (index + delay) * _MINUTE,
        )
        for index in range(count)
    )


def _summed(runs_of_it: list[dict[str, float]]) -> dict[str, float]:
    """Means over the seeds; of an AUC the lowest, because none should fall below a half."""
    return {
        name: float((np.min if name.startswith("roc") else np.mean)([run[name] for run in runs_of_it]))
        for name in runs_of_it[0]
    }


def _table(figures: list[dict[str, Any]]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for heading in ("stream", "since", "delay", "calibration error", "AUC", "AUC at once", "AP"):
        table.add_column(heading, justify="left" if heading in ("stream", "since") else "right")
    for figure in figures:
        shown = (figure[name] for name in ("calibration_error", "roc_auc", "roc_auc_at_once", "average_precision"))
        table.add_row(figure["stream"], figure["since"], str(figure["delay"]), *(f"{value:.3f}" for value in shown))
    return table


def _pattern_table(patterns: list[dict[str, Any]]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for heading in ("stream", "learner", "before", "after", "lowest", "highest"):
        table.add_column(heading, justify="left" if heading in ("stream", "learner") else "right")
    for row in patterns:
        after = row["after"]
        shown = (float(np.mean(row["before"])), float(np.mean(after)), min(after), max(after))
        table.add_row(row["stream"], row["learner"], *(f"{value:.3f}" for value in shown))
    return table
