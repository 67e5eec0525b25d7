"""A synthetic world of payments: seeded, labelled, told both as facts and in an analyst's English.

Real labelled payments cannot be shipped with a library. This world replaces them in examples and measurements: patterns
overlap, facts go missing, labels come late and are sometimes wrong, and the mix changes over the months. Results on it
show how a learner behaves under those conditions, not how it would do at a given bank.
"""

from acefraud.datasets.world.world import WorldOptions, generate

__all__ = ["WorldOptions", "generate"]
