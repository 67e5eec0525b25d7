"""From a transaction to a decision: what was given, its facts and context, the score, the policies, the verdict.

`decider.py` is where it comes together: `Decider.decide`. `score.py` has the sum that every score comes from.
"""
