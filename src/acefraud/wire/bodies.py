"""What callers send: the bodies of requests. The service checks them; the docs of the API describe them."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, Field, Tag

from acefraud.core.bullet import DEFAULT_NODE, MAX_CONTENT, Snooze, Status
from acefraud.core.context_facts import MAX_VALUE, Feed
from acefraud.core.outcome import MAX_AUTHOR, MAX_DETAIL, MAX_DETAILS, MAX_NOTE, MOST_SILENCE_DAYS, FeedKind, Outcome
from acefraud.core.review_rule import ReviewRule
from acefraud.core.transaction import MAX_TEXT, Verdict
from acefraud.wire.answers import examples

_MAX_WHY: Final = 1_000
_MOST: Final = sys.float_info.max
"""The largest number that a fact may have."""
_MOST_VALUES: Final = 5_000
_LONGEST_FEED: Final = 36_500
"""Days."""
_ORDER: Final[dict[str, Any]] = {
    "id": "order-17",
    "time": "2026-03-01T02:14:00Z",
    "facts": {"amount": 2500, "vpn": True, "account_age_days": 3, "country": "FR"},
    "text": "",
}


def _storable(text: str) -> str:
    """Text that every store can keep and every log can show; anything else is refused."""
    if any(ord(char) < 32 or 0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise ValueError("expected text without control characters")
    return text


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("expected a reason, got only spaces")
    return text


def _in_utc(time: datetime) -> datetime:
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("expected a time between the years 1 and 9999 in UTC") from None


def _in_capitals(verdict: object) -> object:
    return verdict.upper() if isinstance(verdict, str) else verdict


AnyCaseVerdict = Annotated[Verdict, BeforeValidator(_in_capitals)]
"""A verdict in a request, in any case."""
Time = Annotated[datetime, AfterValidator(_in_utc)]
"""A time in a request. Without a zone it is read as UTC."""
Id = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_storable)]
"""An id that the caller chose."""
Why = Annotated[str, Field(max_length=_MAX_WHY), AfterValidator(_storable)]
"""Why somebody changes something, if they say so."""
Note = Annotated[str, AfterValidator(_storable)]
"""What somebody wrote."""
Detail = Annotated[str, Field(max_length=MAX_DETAIL), AfterValidator(_storable)]
"""The name or the text of a detail."""
RequiredWhy = Annotated[str, Field(min_length=1, max_length=_MAX_WHY), AfterValidator(_storable), AfterValidator(_said)]
"""Why somebody changes something. The ledger keeps it beside their name."""
Content = Annotated[str, Field(min_length=1, max_length=MAX_CONTENT), AfterValidator(_storable)]
"""The words of a rule."""
Value = Annotated[str, Field(min_length=1, max_length=MAX_VALUE), AfterValidator(_storable)]
"""A value on a list."""


def _one_fact(value: object) -> object:
    """A fact, so that one of another kind is one fault, and not one for each kind that it might have been."""
    if not isinstance(value, bool | int | float | str | None):
        raise ValueError("expected a number, a text or true/false")
    if isinstance(value, int | float) and not -_MOST <= value <= _MOST:
        raise ValueError("expected a finite number; leave out what is unknown")
    return value


FactBody = Annotated[bool | float | str | None, BeforeValidator(_one_fact)]
"""The value of a fact; null is not known."""


class StrictBody(BaseModel, extra="forbid", use_attribute_docstrings=True):
    """A body that refuses fields it does not have."""


class PrivateBody(StrictBody, hide_input_in_errors=True):
    """A body whose values may be personal: errors do not repeat them."""


class TransactionBody(PrivateBody):
    """A transaction to decide: facts or text or both."""

    model_config = examples(_ORDER)

    id: Id
    """Yours. Outcomes refer to it, and a repeat gets the first answer."""
    time: Time | None = None
    """When it happened; now if you leave it out. Without a zone it is read as UTC."""
    facts: dict[str, FactBody] = Field(default_factory=dict, max_length=1_000)
    """Numbers, flags and categories by name; leave out the rest."""
    text: str = Field(default="", max_length=MAX_TEXT)
    """Free text, from which facts are read."""
    entities: dict[str, Id] = Field(default_factory=dict, max_length=100)
    """Who and what took part, by the columns that the mapping names as entities. They are not facts."""

    def record(self) -> dict[str, Any]:
        """The transaction as a record, to be read with the mapping of the playbook."""
        return {name: value for name, value in vars(self).items() if value not in (None, "", {})}


class BatchBody(StrictBody):
    """Transactions to decide together."""

    model_config = examples({"transactions": [_ORDER]})

    transactions: list[TransactionBody] = Field(min_length=1, max_length=1_000)


class OutcomeBody(PrivateBody):
    """What a transaction turned out to be."""

    model_config = examples(
        {
            "id": "cb-881",
            "transaction_id": "order-17",
            "label": "fraud",
            "source": "chargeback",
            "time": "2026-04-02T00:00:00Z",
        }
    )

    id: Id
    """Yours. Two outcomes with one id are one outcome."""
    transaction_id: Id
    label: Literal["fraud", "legitimate"]
    source: Literal["label", "chargeback", "analyst"] = "label"
    time: Time | None = None
    """When it became known."""
    note: Note = Field(default="", max_length=MAX_NOTE)
    """What they noted about it."""
    author: Note = Field(default="", max_length=MAX_AUTHOR)
    """The person or system that found out."""
    details: dict[Detail, Detail] = Field(default_factory=dict, max_length=MAX_DETAILS)
    """What else the report says. Never a fact."""

    def outcome(self) -> Outcome:
        """The outcome."""
        content = self.model_dump(exclude={"label", "time"})
        return Outcome(**content, is_fraud=self.label == "fraud", at=self.time)


class OutcomesBody(StrictBody):
    """Many outcomes, accepted all or none."""

    outcomes: list[OutcomeBody] = Field(min_length=1, max_length=5_000)


def _one_or_many(body: object) -> str | None:
    """Which of the two a body is meant to be, so that only the faults of that one are told."""
    if not isinstance(body, dict):
        return None
    return "many" if "outcomes" in body else "one"


OneOrManyOutcomes = Annotated[
    Annotated[OutcomeBody, Tag("one")] | Annotated[OutcomesBody, Tag("many")],
    Discriminator(
        _one_or_many,
        custom_error_type="one_or_many_outcomes",
        custom_error_message='expected a JSON object: an outcome, or `{"outcomes": [...]}` with many',
    ),
]
"""An outcome, or many."""


class TraceBody(PrivateBody):
    """What an agent decided and, if known, the truth."""

    model_config = examples(
        {
            "transaction": _ORDER,
            "verdict": "DECLINE",
            "probability": 0.8,
            "bullet_ids": [],
            "agent": "our-agent",
            "reasoning": "a VPN and a young account",
            "label": "fraud",
        }
    )

    transaction: TransactionBody
    verdict: AnyCaseVerdict
    probability: float | None = Field(default=None, ge=0, le=1)
    """Of fraud, if the agent says so."""
    bullet_ids: list[str] = Field(default_factory=list, max_length=100)
    """The bullets that it used."""
    agent: str = Field(default="", max_length=100)
    """Its name."""
    reasoning: str = Field(default="", max_length=10_000)
    """Its reasons in its own words."""
    label: Literal["fraud", "legitimate"] | None = None
    """The truth, if it is known."""


class PolicyFields(PrivateBody):
    """Whether a rule becomes a policy or a note, if its words do not say so."""

    always: Literal["decline", "approve", "review"] | None = None
    """Make it a policy: it decides by itself, before anything is scored."""
    priority: int | None = Field(default=None, ge=0, le=1_000_000)
    """Of a policy. The highest decides. Approve has 300, decline 200, review 100."""
    final: bool = False
    """Of a policy that declines: nothing overrides it."""
    as_evidence: bool = False
    """Weigh it with others, even if it begins with an order such as "block". Otherwise that makes it a policy."""
    as_note: bool = False
    """Keep words that are not understood as a note for people. It never scores."""

    @property
    def has_policy_fields(self) -> bool:
        """Whether anything is asked for that goes with words."""
        return self.priority is not None or any((self.always, self.final, self.as_evidence, self.as_note))


class NewBulletBody(PolicyFields):
    """A rule to add."""

    model_config = examples(
        {"content": "Amount above 5,000 and an emulator: decline", "reason": "seen twice this week"}
    )

    content: Content
    """The rule, in plain English or in the formal syntax."""
    node: Id = DEFAULT_NODE
    """Which agent uses it."""
    reason: Why = ""
    """Kept in the ledger beside the name of your key."""


class BulletChangeBody(PolicyFields):
    """Other words for a rule, another status, or both at once."""

    model_config = examples(
        {"content": "Amount above 6,000 and an emulator: decline", "reason": "5,000 was too low"},
        {"status": "pinned", "reason": "agreed in the weekly review"},
    )

    content: Content | None = None
    """What it says from now on. A policy stays a policy."""
    status: Status | None = None
    """`active` approves or revives it, `pinned` protects it."""
    reason: RequiredWhy


class SnoozeBody(PrivateBody):
    """Whom a policy is not to apply to, and until when."""

    model_config = examples(
        {"key": "card", "value": "card-17", "until": "2036-01-31T00:00:00Z", "reason": "travels until then"}
    )

    key: Id
    """The entity or the fact, such as `card`."""
    value: Id
    until: Time
    """Without a zone it is read as UTC."""
    reason: RequiredWhy

    def snooze(self) -> Snooze:
        """The snooze."""
        return Snooze(key=self.key, value=self.value, until=self.until)


class RollbackBody(StrictBody):
    """Which revision to go back to."""

    model_config = examples({"revision": 41, "reason": "too many false alarms since Monday"})

    revision: int = Field(ge=0, le=2**53)
    """As `GET /v1/playbook/changes` tells it."""
    reason: Why = ""
    """Needed, except for a preview."""
    preview: bool = False
    """Only tell what would change."""


class ThresholdBody(StrictBody):
    """The threshold and the review rule to have from now on. What is not given stays as it is."""

    model_config = examples(
        {"threshold": 0.6, "review": {"between": [0.4, 0.7]}, "reason": "reviewers have time again"},
        {"review": {"costs": {"false_decline": 15, "missed_fraud": 200}}, "reason": "agreed with the desk"},
    )

    threshold: float | None = Field(default=None, gt=0, lt=1)
    """Stays as it is if it is not given, or null."""
    review: ReviewRule | None = None
    """Stays as it is if it is not given; null sends nothing to a person, except by policies."""
    reason: RequiredWhy

    @property
    def no_review(self) -> bool:
        """Whether nothing is to go to a person any more: the caller gave null."""
        return self.review is None and "review" in self.model_fields_set


class FeedChangeBody(StrictBody):
    """How outcomes arrive from now on. What is not given stays as it is."""

    model_config = examples({"kind": "fraud_only", "silence_days": 60, "reason": "chargebacks come within 60 days"})

    kind: FeedKind | None = None
    silence_days: float | None = Field(default=None, ge=0, le=MOST_SILENCE_DAYS)
    """0 lets silence say nothing."""
    declines_pass: bool | None = None
    follow_level: bool | None = None
    level: Literal["accept", "reset"] | None = None
    """Agree to a held step of the level, or put the level back to what was calibrated."""
    reason: RequiredWhy


class ReadBody(PrivateBody):
    """Words to read."""

    model_config = examples({"content": "Decline gift cards over $300 unless the customer is a VIP"})

    content: Content


class PreviewRequestBody(PolicyFields):
    """A change to preview: a new rule, or other words or another status for a bullet."""

    model_config = examples(
        {"content": "Amount above 5,000 and an emulator", "always": "decline"},
        {"bullet_id": "b-cd2445bf", "content": "VPN at night: decline"},
        {"bullet_id": "b-cd2445bf", "status": "retired"},
    )

    content: Content | None = None
    bullet_id: Id | None = None
    """The bullet to change; without one, the rule is new."""
    status: Status | None = None
    """Without words and status: `retired` for a bullet in use, else `active`."""
    node: Id = DEFAULT_NODE
    """Which agent uses a new rule."""


class FeedBody(StrictBody):
    """Outcomes feed a list: the value of a key of every transaction that turns out to be fraud."""

    key: Id
    """The entity or the fact whose value is listed."""
    days: float | None = Field(default=None, gt=0, le=_LONGEST_FEED)
    """For how long; null means for good."""


class ListDescriptionBody(PrivateBody):
    """What a list is for, and what feeds it."""

    model_config = examples({"about": "reported stolen", "reason": "asked for by the disputes team"})

    about: Why = ""
    feed: FeedBody | None = None
    reason: RequiredWhy

    def fed_by(self) -> Feed | None:
        """What feeds it."""
        return None if self.feed is None else Feed(key=self.feed.key, days=self.feed.days)


class NewItemBody(PrivateBody):
    """A value to put on a list. One that is there already gets the new reason and date."""

    value: Value
    reason: Why = ""
    """Default: the reason of the whole change."""
    until: Time | None = None
    """Without a zone it is read as UTC."""


class ListChangeBody(PrivateBody):
    """Values to put on a list and to take off it, all or none."""

    model_config = examples(
        {
            "add": [{"value": "card-17", "until": "2036-01-31T00:00:00Z"}],
            "remove": ["card-3"],
            "reason": "call of the bank",
        }
    )

    add: list[NewItemBody] = Field(default_factory=list, max_length=_MOST_VALUES)
    remove: list[Value] = Field(default_factory=list, max_length=_MOST_VALUES)
    reason: RequiredWhy
