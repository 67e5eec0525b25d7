"""Decisions as data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from acefraud.core.decision import Decision
from acefraud.display.frames import make_frame
from acefraud.display.html_tables import MOST_ROWS, block, table
from acefraud.display.short_repr import shown_text


class DecisionSequence(Sequence[Decision]):
    """Decisions in order, which can become a data frame."""

    def to_frame(self, backend: str = "polars", *, reasons: bool = False) -> Any:
        """The decisions as a data frame of polars, pandas or pyarrow.

        With `reasons` it has the strongest reason of each and the ids of the bullets that it cites. These are computed
        for every decision, which takes a while for many.

        >>> from acefraud import BulletPlaybook, Learner
        >>> orders = [{"id": "t1", "amount": 12}, {"id": "t2", "vpn": True}]
        >>> decisions = Learner(BulletPlaybook()).decide_all_sync(orders)
        >>> decisions.to_frame()["transaction_id"].to_list()
        ['t1', 't2']
        """
        columns: dict[str, Any] = self._columns()
        if reasons:
            built = list(self)
            columns["reason"] = [one.reasons[0].text if one.reasons else "" for one in built]
            columns["cited"] = [list(one.cited) for one in built]
        return make_frame(columns, backend)

    def _repr_html_(self) -> str:
        """The first decisions, for a notebook."""
        rows = (
            (
                shown_text(one.transaction.id),
                str(one.verdict),
                f"{one.probability:.3f}",
                shown_text(one.reasons[0].text, 200, hidden=one.transaction.hidden_values) if one.reasons else "",
            )
            for one in self[:MOST_ROWS]
        )
        headings = ["transaction", "verdict", "probability", "strongest reason"]
        return block(self._heading(), table(headings, rows, total=len(self)))

    def _heading(self) -> str:
        return f"{len(self):,} decisions"

    def _columns(self) -> dict[str, Any]:
        built = list(self)
        return {
            "transaction_id": [one.transaction.id for one in built],
            "decision_id": [one.id for one in built],
            "verdict": [str(one.verdict) for one in built],
            "probability": [one.probability for one in built],
            "threshold": [one.threshold for one in built],
            "revision": [one.revision for one in built],
        }


class DecisionList(DecisionSequence):
    """Decisions that were built one by one, such as those of a language model."""

    def __init__(self, decisions: Sequence[Decision]) -> None:
        self._decisions = list(decisions)

    def __len__(self) -> int:
        return len(self._decisions)

    @overload
    def __getitem__(self, index: int) -> Decision: ...

    @overload
    def __getitem__(self, index: slice) -> DecisionList: ...

    def __getitem__(self, index: int | slice) -> Decision | DecisionList:
        return DecisionList(self._decisions[index]) if isinstance(index, slice) else self._decisions[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._decisions == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self):,} decisions>"
