"""`python -m benchmarks reviews`: what a day's reviews save, by who gets them.

Traffic is drawn from the later part of a dataset: more of it by day than by night, and not the same every day. It is
decided one after another, with costs and a limit of reviews. Three ways to spend a day's reviews are compared: first
come, first served; as the playbook does; and in hindsight, on the best cases of each day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from acefraud import BulletPlaybook, Cases, Learner, Transaction, Verdict, load_dataset
from benchmarks.console import JsonOption, line, print_json, progress
from benchmarks.quality.dataset_folder import data_folder, sources

WORLD = "complex_fraud_detection"
SETS = "cloudwalk,bri_atm"
FALSE_DECLINE, MISSED_FRAUD, REVIEW = 15.0, 200.0, 2.0
TRAINED = 0.7
"""The share of the cases, the earlier ones, that the playbook learns from."""
START = datetime(2025, 1, 6, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A case that was decided."""

    day: int
    cost: float
    """What the cheaper of approving and declining is expected to cost."""
    saving: float
    """What a review would save; not above 0 where it saves nothing."""
    reviewed: bool


def reviews(
    folder: Annotated[Path | None, typer.Argument(help="A folder of datasets; default: $ACEFRAUD_DATA.")] = None,
    names: Annotated[str, typer.Option(help="Datasets of it, separated by commas.")] = SETS,
    *,
    days: Annotated[int, typer.Option(min=2, help="Days of traffic.")] = 20,
    cases: Annotated[int, typer.Option(min=10, help="Cases of an ordinary day.")] = 600,
    per_day: Annotated[int, typer.Option(min=1, help="Reviews a day.")] = 20,
    json: JsonOption = False,
) -> None:
    """Measure what **a day's reviews** save: first come first served, by the playbook's cut, and in hindsight.

    python -m benchmarks reviews ../data --names cloudwalk
    """
    mappings = Path(__file__).parent / "mappings"
    known = {
        source.name: source.load().train
        for source in sources(data_folder(folder), names=names.split(","), mappings=mappings)
    }
    found: dict[str, Any] = {}
    with progress("deciding") as done:
        histories = {WORLD: load_dataset(WORLD).with_history().train, **known}
        for index, (name, history) in enumerate(histories.items(), 1):
            found[name] = summary(decided(history, moments(days, cases), per_day), per_day)
            done(index / len(histories))
    if json:
        print_json(found)
        return
    for name, one in found.items():
        ways = {"first_come": "first come", "cut": "by the cut", "hindsight": "in hindsight"}
        costs = ", ".join(f"{one[way]:,.0f} {words}" for way, words in ways.items())
        line(f"{name}: expected cost per day {costs}; {one['closed']:.0%} of the gap closed")


def decided(history: Cases, times: Sequence[datetime], per_day: int) -> list[Arrival]:
    """Traffic from the later part of a history, decided one after another by what the earlier part taught."""
    ordered = history.in_order()
    first = round(TRAINED * len(ordered))
    now = START
    playbook = BulletPlaybook(clock=lambda: now)
    learner = Learner(playbook)
    learner.study(ordered[:first])
    costs = f"false_decline={FALSE_DECLINE},missed_fraud={MISSED_FRAUD},review={REVIEW},per_day={per_day}"
    playbook.set_threshold(review=costs)
    dice = np.random.default_rng(1)
    later = [case.transaction for case in ordered[first:]]
    arrivals = []
    for number, at in enumerate(times):
        now = at
        drawn = later[int(dice.integers(len(later)))]
        decision = learner.decide_sync(Transaction(id=f"r{number}", facts=drawn.facts, text=drawn.text))
        risk = decision.probability
        cost = min(risk * MISSED_FRAUD, (1 - risk) * FALSE_DECLINE)
        arrivals.append(Arrival((at - START).days, cost, cost - REVIEW, decision.verdict is Verdict.REVIEW))
    return arrivals


def moments(days: int, cases: int) -> list[datetime]:
    """When cases arrive: most of them by day, and on some days twice as many as on others."""
    dice = np.random.default_rng(0)
    found: list[datetime] = []
    for day in range(days):
        count = int(cases * dice.uniform(0.67, 1.33))
        hours = np.sort(np.clip(dice.normal(14, 5, count), 0, 23.999))
        found += [START + timedelta(days=day, hours=float(hour)) for hour in hours]
    return found


def summary(arrivals: Sequence[Arrival], per_day: int) -> dict[str, float]:
    """Expected costs per day of the three ways, and the share closed of the gap between the first and the last."""
    days = arrivals[-1].day + 1
    first_come = best = 0.0
    for day in range(days):
        helped = [arrival.saving for arrival in arrivals if arrival.day == day and arrival.saving > 0]
        first_come += sum(helped[:per_day])
        best += sum(sorted(helped)[-per_day:])
    by_cut = sum(arrival.saving for arrival in arrivals if arrival.reviewed)
    unreviewed = sum(arrival.cost for arrival in arrivals)
    return {
        "first_come": (unreviewed - first_come) / days,
        "cut": (unreviewed - by_cut) / days,
        "hindsight": (unreviewed - best) / days,
        "closed": (by_cut - first_come) / (best - first_come) if best > first_come else 1.0,
        "reviews": sum(arrival.reviewed for arrival in arrivals) / days,
    }
