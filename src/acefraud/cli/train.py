"""`acefraud train`: bullets from labelled history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import typer

from acefraud.cli.console import (
    JsonOption,
    MappingOption,
    PlaybookOption,
    StrictOption,
    cast_for,
    line,
    note,
    playbook_path,
    print_json,
    progress,
    proposed_json,
    stop_short,
    tell_bad_rows,
    tell_proposed,
    tell_usage,
    usage_json,
)
from acefraud.cli.models import with_model_options
from acefraud.datasets import SHIPPED, Dataset, load_dataset
from acefraud.embedded.scorecard import GENERAL
from acefraud.errors import BudgetExceeded, InputError, ModelError
from acefraud.learning.casting import Cast
from acefraud.learning.learner import Learner
from acefraud.learning.pipeline import sample_of
from acefraud.learning.remembering import EntityMemory
from acefraud.learning.thresholds import RULES, ThresholdRule
from acefraud.settings import ModelSettings
from acefraud.storage import BulletPlaybook, open_playbook

ThresholdOption = Annotated[
    str | None,
    typer.Option(
        "--threshold",
        metavar="RULE",
        help=f"From which probability of fraud on to decline: {RULES}. Default: as the playbook has it, 0.5 at first.",
    ),
]


@with_model_options
def train(
    source: Annotated[str, typer.Argument(metavar="FILE", help="Labelled transactions: JSON, JSONL, CSV or Parquet.")],
    playbook: PlaybookOption = None,
    mapping: MappingOption = None,
    threshold: ThresholdOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
    *,
    chosen: ModelSettings,
) -> None:
    """Learn bullets from a labelled history and add them to a playbook.

    The conditions are grown on the earlier four fifths of the rows and must hold up on the latest fifth; each
    bullet shows what was measured of it. Nothing is written unless the whole run succeeds. Where rows have a time and
    name customers, terminals or others that come again, what is remembered of each becomes facts too.

    The threshold can be chosen on the latest cases: for the most right decisions (accuracy), for the balance of
    precision and recall (f1), or to catch as much fraud as it can while declining at most a share of the honest ones
    (fpr=0.01). With cost=5:100, declining an honest one costs 5 and approving a fraud 100. Later learning keeps it.

        acefraud train history.csv --playbook book.db
        acefraud train history.csv --playbook book.db --threshold cost=5:100
    """
    rule = None if threshold is None else ThresholdRule.parse(threshold)
    data = load_dataset(source, mapping=mapping, strict=strict)
    tell_bad_rows(data.bad_rows, data.unlabelled)
    if mapping is None and source not in SHIPPED:
        tell_mapping(data)
    if data.frauds in (0, len(data)):
        raise InputError("all rows have the same label; expected both fraud and honest ones", file=source)
    path = playbook_path(playbook)
    players = cast_for(chosen, data.mapping)
    with open_playbook(path) as book, progress("learning") as done:
        learner = players.learner(book)
        added, unfitted = asyncio.run(_train(players, learner, data, rule, done))
        memory = learner.memory()
        standing = len(book.get_bullets_for_node(learner.options.node))
        kept = [b for b in book.get_bullets_for_node(learner.options.node) if b.id in set(added)]
        declines_from = _threshold(book, learner.options.node)
    if unfitted:
        note(f"the odds of the agent's words were not fitted: {unfitted}. What was learnt until then is kept")
    if json:
        print_json(
            {
                "playbook": str(path),
                "rows": len(data),
                "frauds": data.frauds,
                "bad_rows": len(data.bad_rows),
                "unlabelled": data.unlabelled,
                "bullets": len(kept),
                "threshold": declines_from,
                "threshold_rule": rule.words if rule else None,
                **({"history": _history(memory)} if memory else {}),
                **proposed_json(learner.proposed),
                **({"odds_not_fitted": unfitted} if unfitted else {}),
                **usage_json(players.client),
            }
        )
        stop_short(learner, unfitted)
        return
    line(
        f"{len(data):,} cases, {data.frauds:,} of them fraud: "
        f"{len(kept)} bullet{'' if len(kept) == 1 else 's'} in {path}"
    )
    line(f"Declined from a probability of fraud of {declines_from:.3g} on{f' ({rule.words})' if rule else ''}")
    if memory is not None:
        windows = ", ".join(memory.plan.windows)
        line(f"History of each {' and '.join(memory.names)} over {windows}: {len(memory.facts)} facts")
    for bullet in sorted(kept, key=lambda b: -abs(b.weight or 0))[:5]:
        line(f"  {bullet.id}  {bullet.content}")
    if not kept and standing:
        line(f"Nothing new: the playbook's {standing} bullets say what these cases teach.")
    elif not kept:
        line("Nothing could be shown with so few cases; decisions rest on general knowledge until more arrive.")
    stop_short(learner, unfitted)


async def _train(
    players: Cast, learner: Learner, data: Dataset, rule: ThresholdRule | None, done: Callable[[float], None]
) -> tuple[list[str], str]:
    """The ids of the bullets added, and why the odds were not fitted, where a budget was in the way."""
    try:
        added = await learner.train(
            data.train,
            dataset=data.name,
            mapping=data.mapping.describe(),
            waiting=data.waiting,
            threshold=rule,
            progress=done,
        )
        return added, await _fit_odds(players, learner, data)
    finally:
        await players.close()
        tell_usage(players.client)
        tell_proposed(learner.proposed)


async def _fit_odds(players: Cast, learner: Learner, data: Dataset) -> str:
    if players.scale_odds:
        memory = learner.memory()
        cases = data.train if memory is None else memory.studied(data.train, data.waiting)
        try:
            await learner.scale_odds(sample_of(cases, players.scale_odds), data.frauds / len(data))
        except BudgetExceeded as spent:
            return str(spent)
        except ModelError as failure:  # the bullets are written by now
            raise ModelError(
                f"{failure}; the bullets are kept, but the odds of the agent's words not fitted"
            ) from failure
    return ""


def tell_mapping(data: Dataset) -> None:
    """Say on standard error how the columns of a file were taken."""
    note("# Columns were taken so; save this, correct it and pass it with --mapping:")
    note(data.mapping.describe().rstrip())


def _threshold(book: BulletPlaybook, node: str) -> float:
    return (book.snapshot().calibration(node) or GENERAL).threshold


def _history(memory: EntityMemory) -> dict[str, Any]:
    return {"entities": memory.names, "windows": memory.plan.windows, "facts": len(memory.facts)}
