"""The loop: decide, take in outcomes, judge, reflect, review the playbook.

`Learner` is the way in. Imports `selection`, `roles`, `curation`, `storage`, `datasets`, `facts`, `rules` and `core`.
"""
