"""From a transaction to a decision: what was given, its facts and context, the score, the policies, the verdict.

`Decider.decide` in `decider.py` is where it comes together; `score.py` scores many rows in columns. `models.py` and
`own_agents.py` are there only for agents on language models. Imports what `learning` may import, but not `learning`.
"""
