"""What the service answers: about decisions, outcomes, agents of the caller's own and the playbook."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema
from pydantic_core import CoreSchema

from acefraud.core.bullet import DEFAULT_NODE, Source, Status
from acefraud.core.decision import BulletScore
from acefraud.core.outcome import FeedKind, OutcomeSource
from acefraud.core.review_rule import DecidingRule, ReviewRule
from acefraud.core.transaction import Fact, Verdict
from acefraud.display.short_repr import ShortRepr

T = TypeVar("T")
_NONE: Final = re.compile(r"\bNone\b")


class Answer(
    ShortRepr,
    BaseModel,
    frozen=True,
    extra="allow",
    hide_input_in_errors=True,
    use_attribute_docstrings=True,
    json_schema_serialization_defaults_required=True,
):
    """Anything that the service answers.

    Fields that this version does not know are kept, and can be read like the others. A default stands in for a field
    that older services do not send; this one sends them all.

    >>> Page.model_validate({"items": ["a"], "total": 7}).total
    7
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The fields as the service sends them: without what helps to read other versions, and with null for None."""
        answer = handler(schema)
        described = handler.resolve_ref_schema(answer)
        described.pop("additionalProperties", None)
        for field in described.get("properties", {}).values():
            field.pop("default", None)
            if "description" in field:
                field["description"] = _NONE.sub("null", field["description"])
        return answer


class Page(Answer, Generic[T], use_attribute_docstrings=False):  # every Page[...] would read its source again
    """Part of a list, and where the next part begins."""

    items: tuple[T, ...]
    next: str | None = Field(
        default=None, description="Pass it as `cursor` for the next part; None if this is the last."
    )


def examples(*bodies: dict[str, Any]) -> ConfigDict:
    """The configuration of a model whose description shows these."""
    return ConfigDict(json_schema_extra={"examples": list(bodies)})


class Fault(BaseModel):
    """One thing that is wrong with a request."""

    field: str = Field(examples=["facts.amount"])
    message: str = Field(examples=["expected a number, a flag or text"])


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    model_config = examples(
        {
            "type": "urn:acefraud:problem:conflict",
            "title": "Conflict",
            "status": 409,
            "detail": "transaction 't1' was decided with other content",
            "instance": "urn:acefraud:request:4f0c",
            "errors": [],
        }
    )

    type: str = Field(description="A URI that names the kind of problem.")
    title: str
    status: int
    detail: str
    instance: str = Field(description="Names the request, as its log lines do.")
    errors: list[Fault] = Field(default_factory=list)
    bullet_id: str | None = Field(default=None, description="The bullet that says already what a new rule says.")


class ReasonAnswer(Answer):
    """One reason for a decision."""

    bullet_id: str | None
    """The bullet; None for general knowledge and for what a model said."""
    content: str
    """The bullet, or what else it rests on."""
    weight: float | None
    """What it adds to the log-odds of fraud; None if that is not known."""


class UnfamiliarFactAnswer(Answer):
    """A fact or an entity that the playbook does not know."""

    name: str
    nearest: str | None
    """The known name that is written most like it; None if none is."""


class _Verdict(Answer):
    """What was decided about which transaction."""

    decision_id: str
    transaction_id: str
    verdict: Verdict
    probability: float = Field(ge=0, le=1)
    """The probability of fraud."""


class _Decided(Answer):
    """With which playbook, and when."""

    playbook_revision: int
    time: datetime
    """When it was decided."""


class _WithReasons(_Verdict):
    """Why it was decided so."""

    reasons: tuple[ReasonAnswer, ...]


class ListedDecision(_Decided, _Verdict):
    """A recorded decision as lists show it: without its reasons."""


class _Made(_Decided, _WithReasons):
    """What is told of a decision when it is made."""

    familiarity: float | None = None
    """The share of what the playbook relies on that is known of the transaction; None if nothing was learnt."""
    unfamiliar: bool = False
    """Whether none of the facts that the playbook relies on is known."""
    unfamiliar_facts: tuple[UnfamiliarFactAnswer, ...] = ()
    """The facts and entities that the playbook does not know."""
    warnings: tuple[str, ...] = ()
    """What is unusual about the request, in words."""


class DecisionAnswer(_Made, ListedDecision):
    """A decision that was made and recorded."""

    model_config = examples(
        {
            "decision_id": "d-0f3c5e7a9b1d2f40",
            "transaction_id": "order-17",
            "verdict": "DECLINE",
            "probability": 0.91,
            "reasons": [{"bullet_id": "b-1f2e3d4c", "content": "VPN and a new device", "weight": 1.3}],
            "playbook_revision": 120,
            "time": "2026-03-01T02:14:01Z",
            "familiarity": 0.85,
            "unfamiliar": False,
            "unfamiliar_facts": [],
            "warnings": [],
        }
    )


class ScoreAnswer(_Made):
    """How a transaction would be decided now. Nothing was recorded."""

    decision_id: str = ""
    """No recorded decision has this id."""


class BatchAnswer(Answer):
    """The decisions on a batch, in the same order."""

    decisions: tuple[DecisionAnswer, ...]


class StageAnswer(Answer):
    """How many bullets were left after a stage of the selection."""

    stage: str
    left: int


class BulletScoreAnswer(BulletScore, Answer):
    """Every component of a selected bullet's score, including the random draw."""


class ExplainedDecision(DecisionAnswer):
    """A recorded decision with everything that explains it."""

    threshold: float
    """The probability from which on transactions were declined."""
    base: float
    """Log-odds before any reason is added."""
    facts: dict[str, Fact]
    """All facts that were used, given or read. Sensitive ones are masked."""
    unread: tuple[str, ...]
    """Parts of the text in which no fact was found."""
    stages: tuple[StageAnswer, ...]
    scores: tuple[BulletScoreAnswer, ...]
    """The scores of the selected bullets."""
    model: str
    """What decided: a language model by name, or the embedded engine."""
    probability_from: str
    fallback: str
    """Why the configured model did not decide; empty if it did."""
    explained: bool
    """Whether stages and reasons could be computed again on that revision."""
    outcome: Literal["fraud", "legitimate"] | None
    """What it turned out to be, as known so far. A judge's opinion is not an outcome."""
    outcome_source: OutcomeSource | None
    """Who said so."""
    outcome_time: datetime | None
    """When it became known; None if the report did not say."""
    outcome_author: str = ""
    """The person or system that found out, masked."""
    outcome_note: str = ""
    """What they noted about it, masked."""
    outcome_details: dict[str, str] = Field(default_factory=dict)
    """What else the report said, masked."""
    correct: bool | None
    """Whether the verdict was right; None if it was not judged."""
    decided_by: DecidingRule | SkipJsonSchema[None] = None
    """Which rule gave the verdict, with its figures. Older services do not tell."""


class Receipt(Answer):
    """That an outcome is kept, and will be learnt from."""

    id: str
    status: Literal["received", "known"]
    """`known` if the same outcome was received before."""


class ReceiptsAnswer(Answer):
    """A receipt for each outcome, in the same order."""

    outcomes: tuple[Receipt, ...]
    warnings: tuple[str, ...] = ()
    """What is odd about them; they are kept all the same."""


class ContextBullet(Answer):
    """A bullet that matters for a transaction."""

    bullet_id: str
    content: str
    argues: Verdict | None
    weight: float | None
    """Log-odds of fraud that it adds where it applies; None before the first fit."""
    evidence: str
    """What was measured of it, in words; empty if nothing was."""
    claim: str
    """A figure in its words that nobody measured; empty if there is none."""
    applies: bool
    """Whether its condition holds, or only its words are like the transaction's."""


class ContextAnswer(Answer):
    """The bullets that matter for a transaction, best first, for an agent of your own."""

    transaction_id: str
    bullets: tuple[ContextBullet, ...]
    policy: str | None
    """The policy that would decide it whatever the bullets say; None if there is none."""
    prompt: str
    """A text for the prompt of your agent. Words of bullets stand in it as data."""
    stages: tuple[StageAnswer, ...]
    playbook_revision: int


class TraceAnswer(Answer):
    """What became of the decision of an agent of your own."""

    decision: DecisionAnswer
    status: Literal["recorded", "known"]
    """`known` if the same trace was recorded before."""
    outcome: Literal["received", "known"] | None
    """What became of the truth; None if it was not given."""


_BULLET: Final[dict[str, Any]] = {
    "id": "b-cd2445bf",
    "content": "VPN: decline",
    "condition": "vpn is true",
    "english": "VPN",
    "status": "active",
    "source": "manual",
    "node": DEFAULT_NODE,
    "argues": "DECLINE",
    "weight": 1.3,
    "policy": None,
    "evidence": {
        "support": 50,
        "frauds": 47,
        "precision": 0.94,
        "low": 0.84,
        "high": 0.98,
        "base_rate": 0.2,
        "words": "47 of 50 past cases were fraud (94%, 84-98%)",
    },
    "claim": None,
    "counters": {"helpful": 12, "harmful": 1, "selected": 13, "fired": 13, "fired_frauds": 12},
    "snoozes": [],
    "contradicts": [],
    "added_at": "2026-03-01T02:14:00Z",
}


def _rounded(share: float) -> float:
    """Without what is only left over from computing, such as 2.8e-17 in place of 0."""
    return round(share, 12)


Share = Annotated[float, AfterValidator(_rounded)]
"""A share that was computed."""


class EvidenceAnswer(Answer):
    """What was measured of a rule on labelled cases."""

    support: int
    """Cases on which it held."""
    frauds: int
    precision: float | None
    """The share of fraud among them; None if it never held."""
    low: Share
    """Where the share of fraud in as many future cases lies with 95 % probability: from here to `high`."""
    high: Share
    base_rate: float
    """The share of fraud among all cases of that time."""
    words: str


class ClaimAnswer(Answer):
    """A figure in the words of a rule that nobody measured."""

    fraud_share: float
    words: str
    measured: Literal[False] = False


class CountersAnswer(Answer):
    """How often a bullet was used, and how that turned out."""

    helpful: int
    """Right decisions that used it."""
    harmful: int
    """Wrong decisions that used it."""
    selected: int
    """Judged decisions that used it."""
    fired: int
    """Outcomes since it was added where its condition held."""
    fired_frauds: int


class SnoozeAnswer(Answer):
    """Whom a policy does not apply to for now."""

    key: str
    value: str
    until: datetime


class BulletAnswer(Answer):
    """A bullet of the playbook: a rule or a note. Personal data is masked if your key may not change it."""

    model_config = examples(_BULLET)

    id: str
    content: str
    condition: str | None
    """In the formal syntax; None for a note, which never moves a decision."""
    english: str | None
    """The condition, said in English."""
    status: Status
    source: Source
    node: str
    argues: Verdict | None
    weight: float | None
    """Log-odds of fraud that it adds where it fires; None before the first fit."""
    policy: str | None
    """What it decides by itself, in words; None if it is weighed with others."""
    evidence: EvidenceAnswer | None
    claim: ClaimAnswer | None
    counters: CountersAnswer
    snoozes: tuple[SnoozeAnswer, ...]
    contradicts: tuple[str, ...]
    """Older bullets that argue for the opposite."""
    added_at: datetime | None


class ChangeAnswer(Answer):
    """A change of the playbook, with its author and reason."""

    model_config = examples(
        {
            "revision": 41,
            "at": "2026-03-01T02:14:00Z",
            "who": "ana",
            "reason": "the pattern has faded",
            "kind": "status_changed",
            "subject": "b-cd2445bf",
            "what": "now retired",
            "content": "",
        }
    )

    revision: int
    """The revision after it, to which a rollback can go back."""
    at: datetime
    who: str
    """The name of the key, or the person at the command line."""
    reason: str
    kind: str
    subject: str
    """The bullet, node or list that changed, or the playbook."""
    what: str
    """What happened to it, in words."""
    content: str
    """What a bullet says from then on, if that is what changed."""


class WholeBullet(BulletAnswer):
    """A bullet with what happened to it, and where it fired last."""

    model_config = examples({**_BULLET, "history": [], "history_next": None, "last_firings": []})

    history: tuple[ChangeAnswer, ...]
    """What happened to it, newest first: the latest 100 events."""
    history_next: str | None = None
    """The cursor of its history for what happened before these; None if that is all."""
    last_firings: tuple[ListedDecision, ...] = ()
    """The latest decisions that rest on it, among the latest 10,000. The list of decisions has more."""


class FlipAnswer(Answer):
    """A transaction that would be decided differently."""

    transaction_id: str
    before: Verdict
    after: Verdict
    probability_before: float
    probability_after: float
    amount: float | None
    is_fraud: bool | None
    """None if the truth is not known."""


class MoneyAnswer(Answer):
    """Amounts of labelled cases that would be declined, or no longer declined."""

    declined_rightly: float
    declined_wrongly: float
    released_rightly: float
    released_wrongly: float


class PreviewAnswer(Answer):
    """What a change would do to labelled cases and past decisions. Each is decided twice, with the same draws."""

    cases: int
    """Labelled cases that were looked at, the latest."""
    decisions: int
    """Decisions that were looked at, the latest."""
    fires_on_cases: int
    frauds_among_them: int
    fraud_share: float | None
    low: Share
    high: Share
    unknown_on_cases: int
    """Labelled cases on which an unknown fact leaves the rule open."""
    fires_on_decisions: int
    flips: int
    """How many cases and decisions would be decided differently."""
    sample: tuple[FlipAnswer, ...]
    """The first of them."""
    money: MoneyAnswer
    overlaps: dict[str, float]
    """The share of what it fires on that other bullets fire on too, by their ids, the largest first."""
    contradicts: tuple[str, ...]


class SuggestedRule(Answer):
    """A rule that can be said, near to one that was not understood."""

    text: str
    without: tuple[str, ...]
    """The words that it leaves out."""
    fires_on: str
    """What it would fire on; empty if no case is remembered."""


class RuleReading(Answer):
    """How the words of a rule are understood."""

    understood: bool
    condition: str | None
    """In the formal syntax; None if a part is not understood."""
    english: str | None
    argues: Verdict | None
    action: Literal["note", "evidence", "always decline", "always approve", "always review"]
    assumed: tuple[str, ...]
    """What was taken although the words do not say it."""
    not_understood: tuple[str, ...]
    did_you_mean: tuple[str, ...]
    """The facts nearest to the words that are not understood."""
    readings: tuple[str, ...]
    """The conditions that the words may mean, if there are several."""
    read: tuple[str, ...]
    """Of words that are not understood as a whole: the parts that are."""
    not_read: tuple[str, ...]
    """The parts that are not."""
    missing: tuple[str, ...]
    """What would be needed: a fact, a list, a window of time."""
    suggestions: tuple[SuggestedRule, ...]
    """What can be said instead, the nearest first."""
    problem: str
    """Why no condition was read, in words; empty if one was."""
    remarks: tuple[str, ...]


class FactAnswer(Answer):
    """A fact that rules can be about. Personal and sensitive values are left out."""

    model_config = examples(
        {
            "name": "amount",
            "english": "amount",
            "type": "number",
            "low": 1.5,
            "middle": 60,
            "high": 9800,
            "true_share": None,
            "examples": [],
            "values": None,
            "coverage": 1,
        }
    )

    name: str
    english: str
    type: Literal["number", "flag", "category"]
    low: float | None = None
    """Of a number: the least value."""
    middle: float | None = None
    """Of a number: half of the values are below it."""
    high: float | None = None
    """Of a number: the greatest value."""
    true_share: float | None = None
    """Of a flag: how often it is true."""
    examples: tuple[str, ...] = ()
    """Of a category: the most frequent values."""
    values: int | None = None
    """Of a category: how many different values there are."""
    coverage: float
    """The share of the cases that know it."""


class PreviewedRule(Answer):
    """What a new rule, or a change of one, would do. Nothing was stored."""

    reading: RuleReading | None
    """How the words are understood; None if none were given."""
    bullet: BulletAnswer | None
    """As it would be; None if a part of the words is not understood."""
    preview: PreviewAnswer | None
    """What it would do; None if a part of the words is not understood."""


class AdmittedRule(Answer):
    """A rule as it is now, and what its author should know."""

    bullet: BulletAnswer
    remarks: tuple[str, ...]
    preview: PreviewAnswer | None
    """What its words do to the past; None if they have not changed."""


class FeedAnswer(Answer):
    """Outcomes feed a list: the value of a key of every transaction that turns out to be fraud."""

    key: str
    """The entity or the fact whose value is listed."""
    days: float | None
    """For how long; None means for good."""


class ListAnswer(Answer):
    """A list of values that rules can refer to, without the values."""

    name: str
    about: str
    """What it is for."""
    feed: FeedAnswer | None
    count: int
    """How many values are on it."""


class ListValue(Answer):
    """A value on a list. Personal data is masked if your key may not change lists."""

    value: str
    reason: str
    who: str
    until: datetime | None
    """Until when it counts; None means for good."""
    transaction_id: str | None
    """The transaction whose outcome put it there; None if a person did."""


class ListPage(Page[ListValue]):
    """A list with a part of its values, in the order in which they were added."""

    list: ListAnswer


class RollbackAnswer(Answer):
    """What went back to an earlier revision, or would."""

    revision: int
    """The revision that was gone back to."""
    retired: tuple[str, ...]
    """Bullets that were not there then."""
    edited: tuple[str, ...]
    """Bullets with their former words."""
    moved: tuple[str, ...]
    """Bullets with their former status."""
    weights: int
    """How many bullets got their former weight."""
    also: tuple[str, ...]
    """What else went back, such as the calibration."""
    changes_nothing: bool
    preview: PreviewAnswer | None
    """What that would do to the past; None unless only a preview was asked for."""


class OutcomeFeedAnswer(Answer):
    """How outcomes arrive, what silence means, and where the level of fraud is."""

    kind: FeedKind
    declared: bool
    """Whether somebody said so; otherwise it was recognised."""
    silence_days: float | None
    """Days without a report that count as legitimate; None for never."""
    declines_pass: bool
    """Whether declined transactions go through all the same."""
    follow_level: bool
    """Whether the level of fraud follows the outcomes."""
    silent_until: datetime | None
    """Silence counts for decisions made until then."""
    level: float
    """What the latest outcomes add to the log-odds of fraud."""
    held: str | None
    """A step of the level that waits for a person, in words; None if there is none."""
    words: str


class ThresholdAnswer(Answer):
    """How probabilities become verdicts at present."""

    threshold: float
    """Transactions are declined from this probability of fraud on."""
    base_rate: float | None
    """The share of fraud that was learnt from; None before anything was."""
    cases: int
    """Labelled cases that it rests on; 0 for general knowledge alone."""
    review: ReviewRule | None
    """Which cases go to a person, by a band or by costs; None for none, except by policies."""
    reviews_today: int | None = None
    """Cases sent to people today (UTC); None unless a day has a limit."""
    review_cut: float | None = None
    """What a review has to save now; None unless a day has a limit."""
    words: str


class PlaybookPage(Page[BulletAnswer]):
    """A part of the playbook."""

    playbook_revision: int
    calibration: ThresholdAnswer
