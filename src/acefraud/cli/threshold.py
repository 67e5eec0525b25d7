"""`acefraud threshold ...` and `feed ...`: what becomes of a probability, and what outcomes say of its level."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from acefraud.cli import group
from acefraud.cli.console import Said
from acefraud.cli.rules import flips_in_words
from acefraud.cli.workspace import Changing, Reading, embedded_learner
from acefraud.core.bullet import DEFAULT_NODE
from acefraud.core.outcome import FeedKind
from acefraud.core.review_rule import COSTS, ReviewRule
from acefraud.core.scope import Author
from acefraud.errors import InputError
from acefraud.service.answers import threshold_answer
from acefraud.storage import BulletPlaybook
from acefraud.storage.changes import plan_threshold

threshold_app, feed_app = group("threshold"), group("feed")

ThresholdOption = Annotated[float | None, Option(help="Decline from this fraud probability on. Default: as it is.")]
BetweenOption = Annotated[
    tuple[float, float] | None, Option(metavar="LOW HIGH", help="Send cases in this band of probabilities to a person.")
]
CostsOption = Annotated[
    str | None,
    Option(
        metavar="COSTS",
        help=f"Choose the verdict that costs least: {COSTS}. A missed fraud may cost a share of its amount (80%; "
        "fraud_loss=0.8 is the same) or both (80%+25); left out, its amount. Without review, nothing is reviewed.",
    ),
]
NoReviewOption = Annotated[
    bool, Option(help="Drop the band or the costs: send nothing to a person any more, except by policies.")
]


@threshold_app.command()
def show(book: Reading) -> Said:
    """Show what decides: the threshold, a band or costs, and what is left of today's reviews if they are limited.

    acefraud threshold show --playbook book.db
    """
    return _threshold(book)


@threshold_app.command("set")
def set_threshold(
    book: Changing,
    by: Author,
    threshold: ThresholdOption = None,
    review_between: BetweenOption = None,
    costs: CostsOption = None,
    no_review: NoReviewOption = False,
) -> Said:
    """Set the threshold, which cases go to a person, or what each verdict costs, without training again.

    What is not given stays as it is. With costs, each case gets the verdict that is expected to cost least; a day's
    reviews go to the cases where they save most. Costs decide before the threshold does: drop them with --no-review.

        acefraud threshold set --threshold 0.4 --playbook book.db
        acefraud threshold set --review-between 0.3 0.7 --playbook book.db
        acefraud threshold set --costs false_decline=15,missed_fraud=200,review=5,per_day=50 --playbook book.db
    """
    book.set_threshold(threshold, _review(review_between, costs), no_review=no_review, **by)
    return _threshold(book)


@threshold_app.command()
def preview(
    book: Reading,
    threshold: ThresholdOption = None,
    review_between: BetweenOption = None,
    costs: CostsOption = None,
    no_review: NoReviewOption = False,
) -> Said:
    """Show which past decisions and labelled cases another threshold would change. Nothing is stored.

    acefraud threshold preview --threshold 0.4 --playbook book.db
    """
    change = plan_threshold(book, DEFAULT_NODE, threshold, _review(review_between, costs), no_review=no_review)
    preview = embedded_learner(book).preview_change(change.payloads)
    return preview.as_json(), flips_in_words(preview)


def _review(between: tuple[float, float] | None, costs: str | None) -> ReviewRule | None:
    if between is not None and costs is not None:
        raise InputError("--review-between and --costs exclude each other")
    said = costs if between is None else between
    return None if said is None else ReviewRule.of(said)


def _threshold(book: BulletPlaybook) -> Said:
    told, level = threshold_answer(book.snapshot(), DEFAULT_NODE, embedded_learner(book)), level_in_words(book)
    return {**told.model_dump(mode="json"), "level": level}, [told.words[0].upper() + told.words[1:], *level]


@feed_app.command("show")
def show_feed(book: Reading) -> Said:
    """Show how outcomes arrive, what silence means, and where the level of fraud is.

    acefraud feed show --playbook book.db
    """
    return _feed(book)


@feed_app.command("set")
def set_feed(
    book: Changing,
    by: Author,
    kind: Annotated[
        FeedKind | None, Option(help="Which decisions get an outcome; unknown lets it be recognised.")
    ] = None,
    silence_days: Annotated[
        float | None,
        Option(
            min=0, help="After so many days without a report a decision counts as legitimate; 0: silence says nothing."
        ),
    ] = None,
    declines_pass: Annotated[
        bool | None,
        Option(
            "--declines-pass/--declines-stop",
            help="Whether declined transactions go through all the same, so that their silence says something.",
        ),
    ] = None,
    follow_level: Annotated[
        bool | None, Option("--follow-level/--no-level", help="Whether the level of fraud follows outcomes.")
    ] = None,
) -> Said:
    """Say how outcomes arrive. What is not given stays as it is.

    Chargebacks report frauds only, so nothing is learnt from them until you say when silence counts as legitimate.

        acefraud feed set --kind fraud_only --silence-days 60 --playbook book.db
        acefraud feed set --no-level --why 'a partner sent wrong labels' --playbook book.db
    """
    book.set_feed(kind, silence_days=silence_days, declines_pass=declines_pass, follow_level=follow_level, **by)
    return _feed(book)


@feed_app.command()
def accept(book: Changing, by: Author) -> Said:
    """Agree to a step of the level of fraud that is held because it would change many verdicts.

    acefraud feed accept --who ana --why 'the attack is real' --playbook book.db
    """
    book.settle_level(accept=True, **by)
    return _feed(book)


@feed_app.command()
def reset(book: Changing, by: Author) -> Said:
    """Put the level of fraud back to what was calibrated, and drop a step that is held.

    acefraud feed reset --playbook book.db
    """
    book.settle_level(accept=False, **by)
    return _feed(book)


def _feed(book: BulletPlaybook) -> Said:
    feed, level = book.feed(DEFAULT_NODE), level_in_words(book)
    content = {**feed.model_dump(mode="json"), "words": feed.words, "level": level}
    return content, [f"Outcomes: {feed.words}", *level]


def level_in_words(book: BulletPlaybook) -> list[str]:
    """Where the level of fraud is, what is held, and since when silence counts."""
    feed, calibration = book.feed(DEFAULT_NODE), book.snapshot().calibration(DEFAULT_NODE)
    told = []
    if feed.silence_days is not None and feed.silent_until is None:
        told.append("The days run from when a transaction is decided; none is that old yet")
    if feed.silent_until is not None:
        told.append(f"Silence counts for decisions made until {feed.silent_until:%Y-%m-%d %H:%M}")
    if calibration is not None and calibration.recent is not None:
        told.append(f"Level of fraud: {calibration.recent.shift:+.1f}, {calibration.recent.in_words}")
    if calibration is not None and calibration.held is not None:
        told.append(f"Held until `acefraud feed accept`: {calibration.held.in_words}")
    return told
