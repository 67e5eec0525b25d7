"""Searching within groups, also where group and time do not fit into one number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.errors import InputError
from acefraud.facts.history import HistoryEvents
from acefraud.facts.history.columns import GroupedValues

moments = st.integers(-20, 20) | st.sampled_from([-(2**60), 2**60, 2**60 + 1])


@given(st.lists(st.tuples(st.integers(0, 5), moments)), st.lists(st.tuples(st.integers(0, 6), moments), min_size=1))
def test_the_first_later_one_of_the_same_group_is_found(
    there: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    there.sort()
    group, values = (np.array([each[side] for each in there], dtype=np.int64) for side in (0, 1))
    of, after = (np.array([each[side] for each in asked], dtype=np.int64) for side in (0, 1))
    line = GroupedValues.of(group, values, groups=7)
    expected = [sum(each <= query for each in there) for query in asked]
    assert line.after(of, after).tolist() == expected


def test_columns_of_a_history_are_equally_long() -> None:
    with pytest.raises(InputError, match="the columns of a history must all have 2 rows"):
        HistoryEvents(
            time=np.array([1, 2]),
            entities={"card": np.array([0], dtype=np.int32)},
            ids=np.array(["a", "b"]),
            label=np.array([0, 1], dtype=np.int8),
            known_at=np.array([1, 2]),
        )
