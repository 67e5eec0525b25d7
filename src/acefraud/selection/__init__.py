"""Picks the few bullets that matter for a transaction: `HybridSelector.select_bullets`, in five stages (`stages.py`).

May import roles, curation, storage, llm, facts, rules, core, support, settings and errors.
"""
