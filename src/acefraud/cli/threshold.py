"""`acefraud threshold ...`: from which fraud probability on to decline, and which cases go to a person."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from pydantic import ValidationError

from acefraud.cli import SUMMARIES
from acefraud.cli.console import print_result
from acefraud.cli.options import JsonOption, PlaybookOption, WhoOption, WhyOption
from acefraud.cli.rules import flips_in_words
from acefraud.cli.workspace import author, embedded_learner, existing_playbook
from acefraud.core.bullet import DEFAULT_NODE
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import ReviewCosts, ReviewRule
from acefraud.errors import InputError
from acefraud.rules.scorecard import GENERAL
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
        help="Choose the verdict that costs least: false_decline=20,review=5 and perhaps fraud_loss=1 (share of the "
        "amount that an approved fraud loses) and per_day=100 (reviews a day).",
    ),
]


NoReviewOption = Annotated[
    bool, typer.Option("--no-review", help="Send nothing to a person any more, except by policies.")
]


@app.command()
def show(playbook: PlaybookOption = None, json: JsonOption = False) -> None:
    """Show from which fraud probability on a playbook declines, and which cases go to a person.

    acefraud threshold show --playbook book.db
    """
    with existing_playbook(playbook, read_only=True) as book:
        snapshot = book.snapshot()
    print_result(_as_json(snapshot), _in_words(snapshot), json=json)


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
    """Set the threshold and which cases go to a person, without training again.

    What is not given stays as it is.

        acefraud threshold set --threshold 0.4 --playbook book.db
        acefraud threshold set --review-between 0.3 0.7 --playbook book.db
        acefraud threshold set --costs false_decline=20,review=5,per_day=100 --playbook book.db
    """
    review = _review(review_between, costs)
    with existing_playbook(playbook) as book:
        book.set_threshold(threshold, review, no_review=no_review, who=author(who), why=why)
        snapshot = book.snapshot()
    print_result(_as_json(snapshot), _in_words(snapshot), json=json)


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
    if between is None and costs is None:
        return None
    if between is not None and costs is not None:
        raise InputError("--review-between and --costs exclude each other")
    if between is None:
        return ReviewRule(costs=_costs(costs or ""))
    low, high = between
    if not 0 <= low < high <= 1:
        raise InputError(f"expected two probabilities, the lower one first, got {low:g} and {high:g}")
    return ReviewRule(between=between)


def _costs(text: str) -> ReviewCosts:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    given = {name.strip(): value.strip() for name, _, value in pairs}
    known = ReviewCosts.model_fields
    unknown = [name for name in given if name not in known]
    missing = [name for name, field in known.items() if field.is_required() and not given.get(name)]
    if unknown or missing:
        wrong = f"there is no '{unknown[0]}'" if unknown else f"'{missing[0]}' is missing"
        raise InputError(f"expected {', '.join(f'{name}=NUMBER' for name in known)}; {wrong}", field="costs")
    try:
        return ReviewCosts.model_validate(given)
    except ValidationError as problem:
        name = str(problem.errors(include_url=False)[0]["loc"][0])
        expected = {"per_day": "a whole number, 0 or more", "fraud_loss": "a number above 0"}
        what = expected.get(name, "a number, 0 or more")
        raise InputError(f"{name}: expected {what}, got '{given[name]}'", field="costs") from None


def _in_words(snapshot: Snapshot) -> str:
    calibration = snapshot.calibration(DEFAULT_NODE) or GENERAL
    review = snapshot.reviews.get(DEFAULT_NODE)
    sent = review.words if review else "nothing goes to a person, except by policies"
    return f"Declines from a fraud probability of {calibration.threshold:g}; {sent}"


def _as_json(snapshot: Snapshot) -> dict[str, Any]:
    calibration, review = snapshot.calibration(DEFAULT_NODE) or GENERAL, snapshot.reviews.get(DEFAULT_NODE)
    return {"threshold": calibration.threshold, "review": None if review is None else review.model_dump(mode="json")}
