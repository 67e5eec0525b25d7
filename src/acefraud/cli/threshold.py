"""`acefraud threshold ...`: from which fraud probability on to decline, and which cases go to a person."""

from __future__ import annotations

from typing import Annotated

import typer

from acefraud.cli import SUMMARIES
from acefraud.cli.console import print_result
from acefraud.cli.feed import level_in_words
from acefraud.cli.options import JsonOption, PlaybookOption, WhoOption, WhyOption
from acefraud.cli.rules import flips_in_words
from acefraud.cli.workspace import author, embedded_learner, existing_playbook
from acefraud.core.bullet import DEFAULT_NODE
from acefraud.core.review_rule import COSTS, ReviewRule
from acefraud.errors import InputError
from acefraud.service.answers import threshold_answer
from acefraud.storage import BulletPlaybook
from acefraud.storage.changes import plan_threshold

app = typer.Typer(help=SUMMARIES["threshold"], no_args_is_help=True, add_completion=False)

ThresholdOption = Annotated[
    float | None, typer.Option("--threshold", help="Decline from this fraud probability on. Default: as it is.")
]
BetweenOption = Annotated[
    tuple[float, float] | None,
    typer.Option("--review-between", metavar="LOW HIGH", help="Send cases in this band of probabilities to a person."),
]
CostsOption = Annotated[
    str | None,
    typer.Option(
        "--costs",
        metavar="COSTS",
        help=f"Choose the verdict that costs least: {COSTS}. A missed fraud may cost a share of its amount (80%; "
        "fraud_loss=0.8 is the same) or both (80%+25); left out, its amount. Without review, nothing is reviewed.",
    ),
]
NoReviewOption = Annotated[
    bool,
    typer.Option(
        "--no-review", help="Drop the band or the costs: send nothing to a person any more, except by policies."
    ),
]


@app.command()
def show(playbook: PlaybookOption = None, json: JsonOption = False) -> None:
    """Show what decides: the threshold, a band or costs, and what is left of today's reviews if they are limited.

    acefraud threshold show --playbook book.db
    """
    with existing_playbook(playbook, read_only=True) as book:
        _print(book, json=json)


@app.command("set")
def set_threshold(
    playbook: PlaybookOption = None,
    threshold: ThresholdOption = None,
    review_between: BetweenOption = None,
    costs: CostsOption = None,
    no_review: NoReviewOption = False,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Set the threshold, which cases go to a person, or what each verdict costs, without training again.

    What is not given stays as it is. With costs, each case gets the verdict that is expected to cost least; a day's
    reviews go to the cases where they save most. Costs decide before the threshold does: drop them with --no-review.

        acefraud threshold set --threshold 0.4 --playbook book.db
        acefraud threshold set --review-between 0.3 0.7 --playbook book.db
        acefraud threshold set --costs false_decline=15,missed_fraud=200,review=5,per_day=50 --playbook book.db
    """
    review = _review(review_between, costs)
    with existing_playbook(playbook) as book:
        book.set_threshold(threshold, review, no_review=no_review, who=author(who), why=why)
        _print(book, json=json)


@app.command()
def preview(
    playbook: PlaybookOption = None,
    threshold: ThresholdOption = None,
    review_between: BetweenOption = None,
    costs: CostsOption = None,
    no_review: NoReviewOption = False,
    json: JsonOption = False,
) -> None:
    """Show which past decisions and labelled cases another threshold would change. Nothing is stored.

    acefraud threshold preview --threshold 0.4 --playbook book.db
    """
    review = _review(review_between, costs)
    with existing_playbook(playbook, read_only=True) as book:
        change = plan_threshold(book, DEFAULT_NODE, threshold, review, no_review=no_review)
        found = embedded_learner(book).preview_change(change.payloads)
    print_result(found.as_json(), "\n".join(flips_in_words(found)), json=json)


def _review(between: tuple[float, float] | None, costs: str | None) -> ReviewRule | None:
    if between is not None and costs is not None:
        raise InputError("--review-between and --costs exclude each other")
    said = costs if between is None else between
    return None if said is None else ReviewRule.of(said)


def _print(book: BulletPlaybook, *, json: bool) -> None:
    told = threshold_answer(book.snapshot(), DEFAULT_NODE, embedded_learner(book))
    level = level_in_words(book)
    words = "\n".join([told.words[0].upper() + told.words[1:], *level])
    print_result({**told.model_dump(mode="json"), "level": level}, words, json=json)
