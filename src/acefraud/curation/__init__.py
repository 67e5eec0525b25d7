"""Keeping the playbook free of duplicates, and open about contradictions."""
