"""What labelled cases would have to show before the first bullet can be proven."""

from __future__ import annotations

import math

import numpy as np

from acefraud.core.fact_names import words_for
from acefraud.core.table import FactTable
from acefraud.rules.scorecard import GENERAL, score_in, scorecard
from acefraud.support.arrays import BoolArray

_PROVEN, _LEAST = 2.0, 0.5
"""Standard errors by which the frauds of a line must differ from what the scorecard expects to be proven, and to be
worth naming."""
_FEWEST = 5
"""Cases to which a line must apply."""
_MOST = 1_000
"""More cases than this are no useful answer."""


def missing_cases(facts: FactTable, labels: BoolArray) -> str:
    """The number that could be proven first, and how many more outcomes that would take; empty if none stands out.

    >>> missing_cases(FactTable([{"merchant_rating": 2.0}] * 8), np.array([True] * 3 + [False] * 5))
    'about 17 more outcomes that state the merchant rating'
    """
    p = 0.5 * (1.0 + np.tanh(0.5 * (GENERAL.intercept + score_in(facts))))
    nearest: dict[str, int] = {}
    for point in scorecard():
        mask, (test, *_) = point.condition.holds_in(facts), point.condition.tests
        words = words_for(test.fact)
        if words is None or words.kind != "number" or mask.sum() < _FEWEST:
            continue
        errors = abs(float((labels - p)[mask].sum())) / math.sqrt(float((p * (1 - p))[mask].sum()))
        if _LEAST <= errors < _PROVEN:
            more = math.ceil(int(facts.known(test.fact).sum()) * ((_PROVEN / errors) ** 2 - 1))
            nearest[words.noun] = min(more, nearest.get(words.noun, _MOST))
    noun = min(nearest, key=lambda one: nearest[one], default="")
    if not noun or nearest[noun] >= _MOST:
        return ""
    outcomes = "outcome that states" if nearest[noun] == 1 else "outcomes that state"
    return f"about {nearest[noun]} more {outcomes} the {noun}"
