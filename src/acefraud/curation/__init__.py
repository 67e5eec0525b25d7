"""Keeps duplicates out of the playbook and names contradictions.

May import storage, facts, rules, core, settings and errors.
"""
