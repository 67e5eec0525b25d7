"""Pictures of a fitted classifier. matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud import FactTable, Learner
from acefraud.errors import ConfigurationError
from acefraud.evaluation.metrics import Scored, average_precision

_DECLINE, _APPROVE, _MUTED = "#d55e00", "#0072b2", "#59636e"
_LONGEST = 70


def plot_rules(rules: Mapping[str, Sequence[Any]], most: int, ax: Any) -> Any:
    """The share of fraud where each rule holds, with its interval, beside the share among all cases."""
    measured = [place for place, share in enumerate(rules["precision"]) if share is not None][:most]
    ax = _axes(ax, height=1.2 + 0.32 * max(1, len(measured)))
    if not measured:
        ax.set_title("No rule was measured yet")
        return ax
    for row, place in enumerate(reversed(measured)):
        share, low, high = (rules[name][place] for name in ("precision", "low", "high"))
        colour = _DECLINE if (rules["weight"][place] or 0) > 0 else _APPROVE
        ax.plot([low, high], [row, row], color=colour, linewidth=2)
        ax.plot([share], [row], "o", color=colour, markersize=5)
    ax.set_yticks(range(len(measured)), [_shortened(rules["english"][place]) for place in reversed(measured)])
    ax.axvline(rules["base_rate"][measured[0]], color=_MUTED, linestyle="--", linewidth=1)
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of fraud where the rule holds, with its 95 % interval; dashed: among all cases")
    ax.set_title(f"The {len(measured)} heaviest rules")
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


def _shortened(text: str) -> str:
    words = text.split(": ", maxsplit=1)[0].replace("$", r"\$")
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"
