"""Values and pure functions, without input or output, clock or hidden randomness.

`playbook.py` folds events into a playbook; `ledger.py` says what a store must do. Imports support, settings, display
and errors only.
"""
