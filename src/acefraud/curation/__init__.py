"""Keeps duplicates out of the playbook and names contradictions: `Curator`.

May import storage, facts, rules, core, support, settings and errors.
"""
