"""A synthetic world of payments: seeded, labelled, told both as facts and in an analyst's English.

Real labelled payments cannot be shipped with a library. This world stands in for them where something has to be
shown or measured: patterns overlap, facts go missing, labels come late and are sometimes wrong, and the mix changes
over the months. Its figures say how a learner behaves under those conditions, not how it would do at a given bank.
"""

from acefraud.datasets.world.options import WorldOptions
from acefraud.datasets.world.world import generate

__all__ = ["WorldOptions", "generate"]
