"""Outcomes that callers report: those that come in together are kept with one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter

from acefraud.core.outcome import Outcome
from acefraud.errors import InputError
from acefraud.learning.learner import Learner
from acefraud.learning.received_outcomes import Received, receive


@dataclass(frozen=True, slots=True)
class Report:
    """The outcomes of one request, kept all or none."""

    outcomes: Sequence[Outcome]
    who: str


Kept = Sequence[Received] | Exception
"""What became of a report."""


def receive_reports(learner: Learner, reports: Sequence[Report]) -> list[Kept]:
    """Keep reports in order. One that is wrong does not keep the others from being accepted."""
    kept: list[Kept] = []
    for who, some in groupby(reports, key=attrgetter("who")):
        kept += _received(learner, list(some), who)
    return kept


def _received(learner: Learner, reports: Sequence[Report], who: str) -> list[Kept]:
    try:
        outcomes, node = [one for report in reports for one in report.outcomes], learner.options.node
        received = iter(receive(learner.playbook, outcomes, [None] * len(outcomes), node=node, who=who))
    except InputError as problem:
        if len(reports) == 1:
            return [problem]
        return [kept for report in reports for kept in _received(learner, [report], who)]
    return [list(islice(received, len(report.outcomes))) for report in reports]
