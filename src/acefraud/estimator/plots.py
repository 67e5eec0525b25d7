"""Pictures of a fitted classifier. matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import PrecisionRecallDisplay

from acefraud import Bullet, FactTable, Learner, Record
from acefraud.display.short_repr import shown_text
from acefraud.errors import ConfigurationError
from acefraud.estimator.tables import fact_columns, fact_contributions
from acefraud.evaluation.metrics import Column, Flags, Scored, average_precision

_DECLINE, _APPROVE, _MUTED = "#d55e00", "#0072b2", "#59636e"
_LONGEST, _GROUPS, _CUTS = 70, 10, 21


def plot_rules(bullets: Sequence[Bullet], most: int, ax: Any) -> Any:
    """The share of fraud where each rule holds, with its interval, beside the share among all cases."""
    by_weight = sorted(bullets, key=lambda bullet: -abs(bullet.weight or 0.0))
    measured = [(b, b.evidence) for b in by_weight if b.evidence and b.evidence.shown.precision is not None]
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
    ax.set(xlim=(0, 1), title=f"The {len(shown)} heaviest rules")
    ax.set_xlabel("share of fraud where the rule holds, with its 95 % interval; dashed: among all cases", loc="right")
    return ax


def plot_learning(learner: Learner, facts: FactTable, is_fraud: Flags, ax: Any, *, seen: bool = False) -> Any:
    """Average precision of the score as rules are added, the heaviest first."""
    score = learner.additive_score()
    terms = sorted(score.holding(facts), key=lambda rule: -abs(rule[0].weight))
    margin = np.full(len(facts), score.calibration.level)
    reached = []
    for term, mask in terms:
        margin += term.weight * mask
        reached.append(average_precision(Scored(margin > 0, margin, is_fraud)))
    ax = _axes(ax, height=3.6)
    ax.plot(range(1, len(reached) + 1), reached, color=_DECLINE)
    ax.axhline(float(is_fraud.mean()), color=_MUTED, linestyle="--", linewidth=1)
    ax.set_ylim(0, min(1.0, 1.2 * max([*reached, float(is_fraud.mean())])))
    ax.set(xlabel="rules, the heaviest first; dashed: no rule", ylabel="average precision")
    ax.set_title("On cases it has learnt from" if seen else f"On {len(is_fraud):,} cases")
    return ax


def plot_coverage(learner: Learner, facts: FactTable, is_fraud: Flags, most: int, ax: Any) -> Any:
    """The shares of frauds and of honest cases on which each rule holds, and any that argues for fraud."""
    rules = [(term, mask) for term, mask in learner.additive_score().holding(facts) if term.bullet is not None]
    shown = sorted(rules, key=lambda rule: -abs(rule[0].weight))[:most][::-1]
    argued = np.any([np.zeros(len(facts)), *(mask for term, mask in rules if term.weight > 0)], axis=0)
    ax, covered = _axes(ax, height=1.2 + 0.32 * max(1, len(shown))), []
    for among, colour, name, up in ((is_fraud, _DECLINE, "frauds", 0.2), (~is_fraud, _APPROVE, "honest cases", -0.2)):
        shares = [mask[among].sum() / max(1, among.sum()) for mask in (argued, *(mask for _, mask in shown))]
        ax.barh(np.arange(len(shown)) + up, shares[1:], height=0.4, color=colour, label=name)
        covered.append(f"{shares[0]:.0%} of {name}")
    ax.set_yticks(range(len(shown)), [_label(term.bullet) for term, _ in shown if term.bullet])
    ax.legend()
    ax.set(xlim=(0, 1), xlabel="share on which the rule holds")
    ax.set_title(f"A rule that argues for fraud holds on {' and '.join(covered)}", loc="right")
    return ax


def plot_shape(learner: Learner, facts: FactTable, fact: str, ax: Any) -> Any:
    """The mean of what a fact adds to the log-odds, by its value, from the least to the most."""
    contributions = fact_contributions(learner, facts)
    if fact not in contributions:
        raise ValueError(f"no rule tests {fact!r}; the facts that rules test are: {', '.join(sorted(contributions))}")
    column, ax = fact_columns(facts, [fact])[fact], _axes(ax, height=3.6)
    if column.dtype.is_numeric():
        values = column.drop_nulls().to_numpy()
        added = contributions[fact][column.is_not_null().to_numpy()]
        cuts = np.unique(np.quantile(values, np.linspace(0, 1, _CUTS))) if len(values) else values
        groups = np.searchsorted(cuts, values)
        rows = [groups == group for group in np.unique(groups)]
        places = [float(values[mask].mean()) for mask in rows]
    else:
        words, added = np.array([str(value) for value in column.cast(str).fill_null("unknown")]), contributions[fact]
        common = sorted(set(words), key=lambda word: (-np.sum(words == word), word))[:_CUTS]
        rows, places = [words == word for word in common], list(range(len(common)))
        ax.set_xticks(places, [shown_text(word, _LONGEST).replace("$", r"\$") for word in common])
    low, mean, high = (np.array([measure(added[mask]) for mask in rows]) for measure in (np.min, np.mean, np.max))
    ax.plot(places, mean, "o", color=_DECLINE)
    ax.vlines(places, low, high, color=_MUTED)
    ax.axhline(0, color=_MUTED, linestyle="--", linewidth=1)
    ax.set(xlabel=fact.replace("$", r"\$"), ylabel="added to the log-odds of fraud:\nmean, least and most")
    return ax


def plot_calibration(probabilities: Column, is_fraud: Flags, ax: Any) -> Any:
    """The share of fraud in groups of cases of about the same probability, with intervals."""
    ax, highest = _axes(ax, height=4.6), 0.0
    for rows in np.array_split(np.argsort(probabilities, kind="stable"), min(_GROUPS, len(is_fraud))):
        record, mean = Record(support=len(rows), frauds=int(is_fraud[rows].sum())), float(probabilities[rows].mean())
        ax.plot([mean, mean], record.interval, color=_DECLINE, linewidth=2)
        ax.plot([mean], [record.precision], "o", color=_DECLINE, markersize=5)
        highest = max(highest, mean, record.interval[1])
    ax.plot([0, highest], [0, highest], color=_MUTED, linestyle="--", linewidth=1)
    ax.set(xlabel="mean probability of a group of cases", ylabel="share of fraud, with its 95 % interval")
    ax.set_title(f"{probabilities.mean():.1%} expected, {is_fraud.mean():.1%} of {len(is_fraud):,} cases were fraud")
    return ax


def plot_precision_recall(probabilities: Column, is_fraud: Flags, threshold: float, ax: Any) -> Any:
    """Precision by recall, and where the threshold stands."""
    ax, declined = _axes(ax, height=4.6), probabilities >= threshold
    PrecisionRecallDisplay.from_predictions(is_fraud, probabilities, ax=ax, plot_chance_level=True)
    if declined.any() and is_fraud.any():
        caught, right = is_fraud[declined].sum() / is_fraud.sum(), is_fraud[declined].mean()
        ax.plot([caught], [right], "o", color=_APPROVE, label=f"fraud from {threshold:.3g} on")
        ax.legend()
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
