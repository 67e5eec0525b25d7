"""The learners in the benchmark, one line for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acefraud.errors import ConfigurationError
from benchmarks.quality.contender import Contender, StreamContender
from benchmarks.quality.peers import Figs, LightGbm, Logistic, RuleFit, SkopeRules, Tree
from benchmarks.quality.playbooks import OnlinePlaybook, Playbook, PlaybookWithoutDraws, WholePlaybook
from benchmarks.quality.river_peers import AdaptiveForest, HoeffdingTree

Factory = Callable[[int], Contender | StreamContender]
"""Makes a learner from a seed."""

REFERENCE = "lightgbm"
"""The learner that the ratios refer to."""
OURS = "acefraud"
WITHOUT_DRAWS = "acefraud_without_draws"

CONTENDERS: dict[str, Factory] = {
    OURS: Playbook,
    WITHOUT_DRAWS: PlaybookWithoutDraws,
    "acefraud_all": WholePlaybook,
    "acefraud_online": OnlinePlaybook,
    REFERENCE: LightGbm,
    "logistic": Logistic,
    "tree": Tree,
    "figs": Figs,
    "rulefit": RuleFit,
    "skope_rules": SkopeRules,
    "river_hat": HoeffdingTree,
    "river_arf": AdaptiveForest,
}


def chosen(names: Sequence[str] | None) -> dict[str, Factory]:
    """The learners with these names, in the order of the table; all of them if no names are given."""
    unknown = [name for name in names or () if name not in CONTENDERS]
    if unknown:
        raise ConfigurationError(f"there is no model '{unknown[0]}'; the models are: {', '.join(CONTENDERS)}")
    return {name: factory for name, factory in CONTENDERS.items() if names is None or name in names}
