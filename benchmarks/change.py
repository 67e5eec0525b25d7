"""`python -m benchmarks change`: how soon online learning follows a sudden change of the fraud rate.

Each stream has a few facts that tell fraud from honest cases, some that tell nothing, and one that grows with time, as
row numbers do. What fraud looks like never changes; only how common it is does. A learner starts empty and decides 50
cases at a time, and each label arrives at once or 100 cases later.
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
from benchmarks.quality.measures import Groups, calibration_error
from benchmarks.quality.playbooks import OnlinePlaybook
from benchmarks.quality.streams import BATCH

DELAYS = (0, 100)
"""Cases that come between a case and its label."""
SETTLED = 500
"""Outcomes since a jump after which the level should have followed."""
MEASURED = 2_000
"""Cases that are measured from then on."""
BEFORE = 3_000
"""Cases before the first jump."""
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


def change(
    streams: Annotated[str | None, typer.Option(help="Only these streams, separated by commas.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many seeds to run.")] = 5,
    json: JsonOption = False,
) -> None:
    """Measure how soon online learning follows a **sudden change** of the fraud rate, and what that costs without one.

    The figures are those of the 2,000 cases that follow the first 500 outcomes since a jump: calibration error (ten
    bins of equal mass), ROC AUC and average precision. `AUC at once` includes the cases before these 500 outcomes.

        python -m benchmarks change
        python -m benchmarks change --streams runs --seeds 1 --json
    """
    wanted = names_in(streams) or list(STREAMS)
    if unknown := [name for name in wanted if name not in STREAMS]:
        raise ConfigurationError(f"unknown stream '{unknown[0]}': expected {', '.join(STREAMS)}")
    figures = []
    with progress("deciding") as done:
        for nth, name in enumerate(wanted):
            for delay in DELAYS:
                runs_of_it = [measure(STREAMS[name], delay, seed) for seed in range(seeds)]
                figures += [
                    {"stream": name, "since": jump, "delay": delay, **_summed([run[jump] for run in runs_of_it])}
                    for jump in runs_of_it[0]
                ]
                done((nth + (delay == DELAYS[-1])) / len(wanted))
    if json:
        print_json({"seeds": seeds, "figures": figures})
        return
    out.print(_table(figures))
    line(f"Means over {seeds} seeds; AUC is the lowest of them.", "dim")


def measure(plant: Plant, delay: int, seed: int) -> dict[str, dict[str, float]]:
    """Run a learner through a stream. Returns the figures since each jump."""
    generator = np.random.default_rng(seed)
    planted = plant(generator)
    scores = decided(cases_of(planted.labels, delay, generator), seed)
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


def decided(cases: Cases, seed: int) -> Numbers:
    """The probabilities that a learner gives the cases, each before it hears its label."""
    learner = OnlinePlaybook(seed)
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
                id=f"t{place}",
                time=_START + place * _MINUTE,
                facts={
                    "amount": round(float(amounts[place]), 2),
                    "account_age_days": round(float(ages[place]), 1),
                    "channel": "online" if online[place] else "shop",
                    "row_number": place,
                    "colour": str(words[place]),
                    **{f"noise_{column}": round(float(one), 3) for column, one in enumerate(noise[place])},
                },
            ),
            is_fraud=bool(labels[place]),
            known_at=_START + (place + delay) * _MINUTE,
        )
        for place in range(count)
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
    for one in figures:
        shown = (one[name] for name in ("calibration_error", "roc_auc", "roc_auc_at_once", "average_precision"))
        table.add_row(one["stream"], one["since"], str(one["delay"]), *(f"{value:.3f}" for value in shown))
    return table
