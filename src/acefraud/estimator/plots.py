"""Pictures of a fitted classifier. matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud import Bullet, FactTable, Learner
from acefraud.display.short_repr import shown_text
from acefraud.errors import ConfigurationError
from acefraud.evaluation.metrics import Scored, average_precision

_DECLINE, _APPROVE, _MUTED = "#d55e00", "#0072b2", "#59636e"
_LONGEST = 70


def plot_rules(bullets: Sequence[Bullet], most: int, ax: Any) -> Any:
    """The share of fraud where each rule holds, with its interval, beside the share among all cases."""
    by_weight = sorted(bullets, key=lambda bullet: -abs(bullet.weight or 0.0))
    measured = [(one, one.evidence) for one in by_weight if one.evidence and one.evidence.shown.precision is not None]
    shown = measured[:most][::-1]  # the heaviest on top
    ax = _axes(ax, height=1.2 + 0.32 * max(1, len(shown)))
    if not shown:
        ax.set_title("No rule was measured yet")
        return ax
    for row, (bullet, evidence) in enumerate(shown):
        colour = _DECLINE if (bullet.weight or 0) > 0 else _APPROVE
        ax.plot(evidence.interval, [row, row], color=colour, linewidth=2)
        ax.plot([evidence.shown.precision], [row], "o", color=colour, markersize=5)
    ax.set_yticks(range(len(shown)), [_label(bullet) for bullet, _ in shown])
    ax.axvline(shown[-1][1].base_rate, color=_MUTED, linestyle="--", linewidth=1)
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of fraud where the rule holds, with its 95 % interval; dashed: among all cases")
    ax.set_title(f"The {len(shown)} heaviest rules")
    return ax


def plot_learning(
    learner: Learner, facts: FactTable, is_fraud: npt.NDArray[np.bool_], ax: Any, *, seen: bool = False
) -> Any:
    """Average precision of the score as rules are added, the heaviest first."""
    score = learner.additive_score()
    terms = sorted(score.holding(facts), key=lambda one: -abs(one[0].weight))
    margin = np.full(len(facts), score.calibration.level)
    reached = []
    for term, mask in terms:
        margin += term.weight * mask
        reached.append(average_precision(Scored(margin > 0, margin, is_fraud)))
    ax = _axes(ax, height=3.6)
    ax.plot(range(1, len(reached) + 1), reached, color=_DECLINE)
    ax.axhline(float(is_fraud.mean()), color=_MUTED, linestyle="--", linewidth=1)
    ax.set_ylim(0, 1)
    ax.set_xlabel("rules, the heaviest first; dashed: no rule")
    ax.set_ylabel("average precision")
    ax.set_title("On cases it has learnt from" if seen else f"On {len(is_fraud):,} cases")
    return ax


def _axes(ax: Any, *, height: float) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415
    except ImportError:
        raise ConfigurationError("plots need matplotlib: pip install 'acefraud[plots]'") from None
    return plt.subplots(figsize=(9, height), layout="constrained")[1]


def _label(bullet: Bullet) -> str:
    """What a rule says, without its figures; personal data is masked."""
    hidden = bullet.condition.hidden_values if bullet.condition else ()
    words = bullet.content.split(": ")[0]
    return shown_text(words, _LONGEST, hidden=hidden).replace("$", r"\$")
