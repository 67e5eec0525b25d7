"""A playbook measured on labelled history that it has not seen, as `acefraud backtest` does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acefraud import BulletPlaybook, Cases, Dataset, Evidence, Learner, SchemaMapping, load_dataset
from acefraud.display.frames import frame_of_rows
from acefraud.display.html_tables import block, line, table
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, quoted
from acefraud.evaluation.comparison import HEADINGS
from acefraud.evaluation.metrics import METRICS, Interval, Scored, as_json, figures_of, in_percent

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame


@dataclass(frozen=True, slots=True, repr=False)
class MeasuredBullet(ShortRepr):
    """A bullet, and what labelled history says of it."""

    id: str
    content: str
    argues: str
    evidence: Evidence
    """What was measured here."""
    learnt: Evidence | None
    """What it was learnt with; None if it was never measured."""

    def __repr_args__(self) -> ReprArgs:
        yield "id", Plain(quoted(self.id))
        yield "evidence", Plain(self.evidence.in_words())

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {"bullet_id": self.id, "content": self.content, **evidence_json(self.evidence)}


@dataclass(frozen=True, slots=True, repr=False)
class Backtest(ShortRepr):
    """The figures of a playbook on labelled history, and of each of its bullets.

    >>> import polars as pl
    >>> playbook = BulletPlaybook()
    >>> _ = playbook.add_bullet("Amount above $500: decline")
    >>> found = backtest(playbook, pl.DataFrame({"amount": [900.0, 20.0], "is_fraud": [1, 0]}))
    >>> sorted(found.figures), found.to_frame().select("content", "support", "frauds").row(0)
    (['accuracy', 'average_precision', 'false_declines', 'fraud_caught'], ('Amount above $500: decline', 1, 1))
    """

    rows: int
    figures: dict[str, Interval]
    """Accuracy, fraud caught, false declines and average precision, each with its interval."""
    bullets: tuple[MeasuredBullet, ...]
    without_label_facts: dict[str, Interval] | None = None
    """The figures if the facts that depend on labels are unknown; None if there is no history."""
    label_delay: str = ""
    """How long labels take to arrive, by the mapping; empty if there is no history."""
    every_bullet: bool = False
    """Whether every bullet that fires counts for a case, or those that the selector picks."""

    @property
    def counted(self) -> str:
        """Which bullets count for a case, in words."""
        return f"{'every bullet that fires' if self.every_bullet else 'what the selector picks'} counts for a case"

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(f"{self.rows:,} rows")
        for metric, interval in self.figures.items():
            yield metric, Plain(in_percent(interval))
        yield "bullets", len(self.bullets)

    def _repr_html_(self) -> str:
        """The figures for a notebook."""
        rows = [("playbook", self.figures), ("without facts from labels", self.without_label_facts)]
        return block(
            f"Backtest on {self.rows:,} rows",
            table(
                ["", *(HEADINGS[metric] for metric in METRICS)],
                [[name, *(in_percent(each[metric]) for metric in METRICS)] for name, each in rows if each],
            ),
            line(f"{len(self.bullets):,} bullets were measured; to_frame() has them. Here {self.counted}."),
        )

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        content = {"rows": self.rows, "every_bullet": self.every_bullet, **as_json(self.figures)}
        if self.without_label_facts is not None:
            content |= {"label_delay": self.label_delay, "without_label_facts": as_json(self.without_label_facts)}
        return {**content, "bullets": [bullet.as_json() for bullet in self.bullets]}

    def to_frame(self, backend: str = "polars") -> Any:
        """The bullets as a data frame: what was measured here, beside what each was learnt with."""
        rows = []
        for bullet in self.bullets:
            low, high = (None, None) if bullet.learnt is None else bullet.learnt.interval
            precision = bullet.learnt and bullet.learnt.shown.precision
            learnt = {"learnt_precision": precision, "learnt_low": low, "learnt_high": high}
            rows.append({**bullet.as_json(), "argues": bullet.argues, **learnt})
        return frame_of_rows(rows, backend)


def backtest(
    playbook: BulletPlaybook | Learner,
    history: Dataset | str | Path | IntoFrame,
    *,
    mapping: SchemaMapping | Path | None = None,
    every_bullet: bool = False,
) -> Backtest:
    """Measure a playbook on labelled history: a `Dataset`, a file or a data frame. Nothing is learnt or recorded.

    On the history that the playbook was trained on, its figures look better than they are: use later cases. A case sees
    only labels that had arrived by then. That is what differs from the probabilities of `Learner.score_all`, which is
    given no labels; without a history, equal ids give equal probabilities. With `every_bullet` all bullets that fire
    count, as in a classifier, and not only those that the selector picks.

    >>> playbook = BulletPlaybook()
    >>> _ = playbook.add_bullet("Amount above $500: decline")
    >>> import polars as pl
    >>> later = pl.DataFrame({"amount": [900.0, 20.0, 700.0, 30.0], "is_fraud": [1, 0, 0, 0]})
    >>> found = backtest(playbook, later)
    >>> found.rows, found.bullets[0].evidence.in_words()
    (4, '1 of 2 past cases were fraud (50%, 9-91%)')
    """
    learner = playbook if isinstance(playbook, Learner) else Learner(playbook)
    if not isinstance(history, Dataset):
        history = load_dataset(history, mapping=mapping, remembered=learner.mapping)
    scores = learner.backtest_scores(
        Cases.stacked([history.train, history.test]), history.waiting, every_bullet=every_bullet
    )

    def figures(probabilities: Any) -> dict[str, Interval]:
        return figures_of([[Scored(probabilities >= scores.threshold, probabilities, scores.labels)]])

    without = scores.without_label_facts
    return Backtest(
        len(scores.labels),
        figures(scores.scores.probabilities),
        tuple(
            MeasuredBullet(bullet.id, bullet.content, str(bullet.argues or ""), evidence, bullet.evidence)
            for bullet, evidence in ((measured.bullet, measured.evidence) for measured in scores.bullets)
        ),
        None if without is None else figures(without),
        scores.label_delay,
        every_bullet,
    )


def evidence_json(evidence: Evidence) -> dict[str, Any]:
    """What was measured, rounded so that the output does not depend on the last bit."""
    figures = {**evidence.learnt.figures, "lift": evidence.lift, "base_rate": evidence.base_rate}
    return {name: round(figure, 6) if isinstance(figure, float) else figure for name, figure in figures.items()}
