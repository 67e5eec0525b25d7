"""How facts that are numbers and categories are put into words.

A fact has clauses, which can stand as a sentence, and notes, which are fragments for lists and log lines. In both,
``{v}`` is the figure, ``{who}`` and ``{whose}`` the customer, ``{w}`` a stretch of time that belongs to the figure.
"""

from __future__ import annotations

from typing import NamedTuple


class Phrases(NamedTuple):
    """The ways to say one thing."""

    clauses: tuple[str, ...]
    notes: tuple[str, ...]


NUMBERS: dict[str, Phrases] = {
    "account_age_days": Phrases(
        ("the account is {v} old", "the account was opened {v} ago", "{who} opened the account {v} ago",
         "{who} has held this account for {v}", "{who} has been a customer for {v}", "the account has existed for {v}",
         "{whose} account goes back {v}", "this is a {v:adj} account"),
        ("account age {v}", "{v:adj} account", "account opened {v} ago", "customer for {v}", "account: {v} old"),
    ),
    "account_transactions": Phrases(
        ("the account shows {v:transaction} in total", "{who} has made {v:transaction} so far",
         "{v:transaction} went through this account to date", "the history holds {v:transaction}",
         "there is a history of {v:transaction}", "{whose} file counts {v:transaction} altogether"),
        ("{v:total transaction}", "{v:transaction} to date", "history of {v:transaction}", "{v:transaction} on file"),
    ),
    "transactions_per_month": Phrases(
        ("{who} makes about {v:transaction} a month", "activity runs at roughly {v:transaction} per month",
         "{who} averages {v:payment} a month", "the account sees around {v:transaction} each month",
         "a normal month brings {v:transaction}", "{whose} pace is {v:transaction} per month"),
        ("~{v:transaction}/month", "{v:transaction} per month", "monthly volume {v:transaction}",
         "about {v:payment} a month"),
    ),
    "usual_amount": Phrases(
        ("{who} usually spends about {v}", "{whose} typical purchase is around {v}", "the average purchase is {v}",
         "{who} spends {v} on average", "a normal payment for {who} is near {v}", "{whose} payments average {v}",
         "the usual amount is {v}", "purchases on this account tend to be about {v}"),
        ("usual spend {v}", "avg {v}", "typical purchase {v}", "average transaction {v}", "normally around {v}"),
    ),
    "usual_amount_max": Phrases(
        ("{who} rarely goes above {v}", "{whose} usual payments reach {v} at most", "normal spending tops out at {v}",
         "the upper end of {whose} usual range is {v}", "earlier payments seldom exceeded {v}",
         "{who} normally stays under {v}"),
        ("usual range up to {v}", "usual maximum {v}", "normally no more than {v}", "upper end of usual spend {v}"),
    ),
    "amount_to_usual": Phrases(
        ("this is {v} times the usual amount", "the amount is {v}x what {who} usually spends",
         "that comes to {v} times {whose} average", "the payment is {v} times the normal spend",
         "measured against the usual amount this is a factor of {v}"),
        ("{v}x usual", "{v} times the usual amount", "{v}x average spend", "ratio to usual {v}"),
    ),
    "amount_to_usual_max": Phrases(
        ("it is {v} times the top of the usual range", "against {whose} usual maximum that is a factor of {v}",
         "the amount is {v}x the largest usual amount", "it stands at {v} times the usual maximum",
         "compared with the upper end of the usual range this is {v} times as much"),
        ("{v}x usual maximum", "{v} times the top of the usual range", "{v}x the largest usual amount"),
    ),
    "larger_purchases": Phrases(
        ("{who} has made {v:purchase} of this size before",
         "the history shows {v:earlier purchase} of this size or more",
         "the history contains {v:comparable purchase}", "we see {v:purchase} of similar size earlier on",
         "{who} has {v:earlier purchase} of this size on record"),
        ("{v:earlier purchase} of this size", "{v:similar-size purchase} before", "{v:purchase} this large before"),
    ),
    "purchases_at_merchant": Phrases(
        ("{who} has bought here {v:time} before", "the file has {v:earlier purchase} at this merchant",
         "{who} has {v:previous order} with this merchant", "the merchant has served {who} {v:time} before",
         "the history lists {v:purchase} at the same merchant"),
        ("{v:prior purchase} at merchant", "{v:previous order} with this merchant", "{v:earlier purchase} here"),
    ),
    "days_since_last": Phrases(
        ("the last activity was {v} ago", "the previous transaction dates from {v} ago",
         "{who} was last active {v} ago",
         "nothing had happened on the account for {v}", "{who} last used the account {v} ago",
         "the account had been quiet for {v}"),
        ("last activity {v} ago", "last active {v} ago", "inactive for {v}", "previous transaction {v} ago"),
    ),
    "chargebacks": Phrases(
        ("the account has {v:earlier chargeback}", "{who} has had {v:chargeback} so far",
         "the file shows {v:chargeback}", "we count {v:previous chargeback} on this account",
         "earlier on {who} filed {v:chargeback}", "{whose} record includes {v:past chargeback}"),
        ("{v:chargeback} on file", "{v:prior chargeback}", "{v:past chargeback}", "chargeback history: {v:case}"),
    ),
    "payment_method_age_days": Phrases(
        ("the payment method was added {v} ago", "the payment method on file is {v} old",
         "{who} added this payment method {v} ago", "the payment method has been on the account for {v}",
         "this payment method was registered {v} ago"),
        ("payment method added {v} ago", "payment method age {v}", "{v:adj} payment method",
         "payment method on file for {v}"),
    ),
    "device_age_days": Phrases(
        ("the device was first seen {v} ago", "the device has been linked to the account for {v}",
         "{who} has used this device for {v}", "the device has been known for {v}", "the device was registered {v} ago",
         "we have known the device for {v}"),
        ("device first seen {v} ago", "device age {v}", "device known for {v}", "device registered {v} ago"),
    ),
    "merchant_rating": Phrases(
        ("the merchant is rated {v} out of 5", "the merchant holds a {v}/5 rating", "customers rate the merchant {v}/5",
         "the seller has a rating of {v}", "the merchant rating stands at {v}/5",
         "reviews put the merchant at {v} of 5"),
        ("merchant rating {v}/5", "merchant rated {v}", "rating {v}/5", "merchant {v} out of 5 stars"),
    ),
    "fraud_reports": Phrases(
        ("the merchant has {v:fraud report}", "customers filed {v:fraud report} against the merchant",
         "we hold {v:fraud report} on this merchant", "the merchant's record shows {v:fraud report}",
         "the seller has drawn {v:fraud report}"),
        ("{v:fraud report} on merchant", "{v:fraud report} against the seller", "merchant with {v:fraud report}"),
    ),
    "fraud_reports_within": Phrases(
        ("the merchant has {v:fraud report} in the last {w}", "the merchant drew {v:fraud report} in the past {w}",
         "over the last {w} the merchant received {v:fraud report}",
         "we hold {v:fraud report} on the merchant from the last {w}"),
        ("{v:fraud report} on merchant in last {w}", "{v:fraud report} in the past {w}",
         "merchant: {v:fraud report} in {w}"),
    ),
    "failed_attempts": Phrases(
        ("{v:failed attempt} came before this", "beforehand the system counted {v:failed attempt}",
         "the log shows {v:failed attempt}",
         "the session had {v:failed login attempt}", "{who} had {v:failed attempt} before getting through",
         "we saw {v:unsuccessful attempt} beforehand"),
        ("{v:failed attempt}", "{v:failed attempt} beforehand", "{v:unsuccessful attempt}", "{v:failed login attempt}"),
    ),
    "declined_before": Phrases(
        ("{v:declined payment} came just before", "the issuer turned down {v:payment} before this one",
         "the card log has {v:declined payment} before this one", "we see {v:decline} ahead of this payment",
         "{v:earlier attempt} had been declined"),
        ("{v:prior decline}", "{v:declined payment} before this", "{v:decline} just before", "{v:earlier decline}"),
    ),
    "recent_transactions": Phrases(
        ("it is part of a run of {v:transaction}", "{v:transaction} went through in quick succession",
         "{v:payment} came in one burst", "the account made {v:transaction} in short order"),
        ("burst of {v:transaction}", "{v:transaction} in quick succession", "run of {v:payment}"),
    ),
    "recent_transactions_within": Phrases(
        ("{v:transaction} came within {w}", "the account made {v:transaction} in {w}",
         "we logged {v:payment} in the last {w}",
         "{who} put through {v:transaction} in the space of {w}", "we count {v:transaction} over {w}"),
        ("{v:transaction} in {w}", "{v:payment} within {w}", "{v:transaction} over the last {w}"),
    ),
    "distance_km": Phrases(
        ("that is {v} from {whose} usual area", "the distance from home is {v}",
         "the place lies {v} from the usual one",
         "it is about {v} away from where {who} normally pays", "the payment comes from {v} away"),
        ("{v} from usual area", "{v} from home", "distance {v}", "{v} away from usual location"),
    ),
}  # fmt: skip

CATEGORIES: dict[str, Phrases] = {
    "payment_method": Phrases(
        ("the payment method is a {v}", "{who} pays by {v}", "payment is by {v}", "a {v} is being used"),
        ("by {v}", "payment method: {v}", "paid with {v}", "{v} payment"),
    ),
}  # fmt: skip
