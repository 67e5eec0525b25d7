"""Weights that came with a bullet's words: whether they can be used in a playbook, and using them."""

from __future__ import annotations

from acefraud.core.events import Recalibrated
from acefraud.core.measured_text import Fit
from acefraud.storage.playbook import BulletPlaybook


def fits_in(fit: Fit, node: str, playbook: BulletPlaybook) -> bool:
    """Whether a fit covers every weight that a node has, and is no older: weights of different fits do not add up."""
    snapshot = playbook.snapshot()
    current = snapshot.calibration(node)
    if current is not None and current.cases > fit.calibration.cases:
        return False
    return all(one.weight is None or one.condition in fit.weights for one in snapshot.for_node(node))


def use_fit(fit: Fit, node: str, playbook: BulletPlaybook) -> None:
    """Give the bullets of a node the weights of a fit, and the node its frame; the threshold stays."""
    snapshot = playbook.snapshot()
    current = snapshot.calibration(node)
    frame = fit.calibration.model_copy(update={"threshold": current.threshold}) if current else fit.calibration
    fitted = [one for one in snapshot.for_node(node) if one.condition in fit.weights]
    weights = {one.id: fit.weights[one.condition] for one in fitted if one.condition is not None}
    if frame != current or any(one.weight != weights[one.id] for one in fitted):
        playbook.record([Recalibrated(node=node, calibration=frame, weights=weights)])
