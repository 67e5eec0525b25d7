"""The loop: decide, hear outcomes, judge, reflect, review the playbook.

`Learner` is the way in; its methods are in `deciding`, `hearing` and `studying`. Imports `engine`, `selection`,
`roles`, `curation`, `storage`, `datasets`, `facts`, `rules` and `core`.
"""
