"""When a review is due."""

from __future__ import annotations

import pytest

from acefraud.core.playbook import CaseCount, LearningState
from acefraud.engine.options import LearnerOptions
from acefraud.learning.review import review_due


def due(remembered: tuple[int, int], new: tuple[int, int], least_cases: int = 40) -> bool:
    state = LearningState(CaseCount(*remembered), CaseCount(*new))
    return review_due(state, LearnerOptions(), least_cases)


@pytest.mark.parametrize(
    ("remembered", "new", "is_due"),
    [
        ((0, 0), (39, 20), False),  # too few cases in all
        ((0, 0), (40, 10), True),
        ((0, 0), (40, 9), False),  # ten of the rarer kind are needed
        ((0, 0), (40, 31), False),  # here the honest ones are rarer
        ((0, 0), (40, 30), True),
        ((1_500, 150), (499, 50), False),  # a quarter of all cases must be new
        ((1_500, 150), (500, 50), True),
        ((6_000, 600), (1_999, 199), False),
        ((6_000, 600), (2_000, 0), True),  # due in any case
        ((90, 9), (499, 9), False),
        ((90, 9), (500, 5), True),  # after many outcomes half as many are enough
    ],
)
def test_when_a_review_is_due(remembered: tuple[int, int], new: tuple[int, int], is_due: bool) -> None:
    assert due(remembered, new) is is_due
