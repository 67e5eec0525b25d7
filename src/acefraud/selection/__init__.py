"""Picks the few bullets that matter for a transaction, in five stages (`stages.py`).

May import roles, curation, storage, llm, facts, rules, core, settings and errors.
"""
