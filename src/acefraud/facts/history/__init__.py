"""Facts from history: what the past of a customer, a terminal or any other entity says of a transaction.

One set of definitions, computed in two ways: `history_columns` over a whole table and `HistoryState` one transaction at
a time. Only transactions that arrived before count, only labels that had arrived, and never the transaction itself.
Imports `core` and `errors` only.
"""

from acefraud.facts.history.columns import history_columns
from acefraud.facts.history.plan import HistoryEvent, HistoryEvents, HistoryPlan
from acefraud.facts.history.state import HistoryState

__all__ = ["HistoryEvent", "HistoryEvents", "HistoryPlan", "HistoryState", "history_columns"]
