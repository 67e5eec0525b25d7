"""Facts with memory: what the past of a customer, a terminal or any other entity says of a transaction.

One set of definitions, two ways to derive them: `history_columns` over a table and `HistoryState` one transaction at
a time. Only transactions that arrived before count, only labels that had arrived, and never the transaction itself.
"""

from acefraud.history.columns import history_columns
from acefraud.history.events import Event, HistoryEvents
from acefraud.history.leak import leaks
from acefraud.history.plan import HistoryPlan
from acefraud.history.state import HistoryState
from acefraud.history.store import MemoryRows

__all__ = [
    "Event",
    "HistoryEvents",
    "HistoryPlan",
    "HistoryState",
    "MemoryRows",
    "history_columns",
    "leaks",
]
