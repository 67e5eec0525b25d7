"""The kinds of problem that a condition is about, by the facts it tests."""

from __future__ import annotations

from acefraud.core.condition import Condition

_FACTS: dict[str, tuple[str, ...]] = {
    "spending_anomaly": ("amount", "amount_to_usual", "amount_to_usual_max", "usual_amount", "usual_amount_max"),
    "account_history": ("account_age_days", "account_transactions", "transactions_per_month", "larger_purchases"),
    "suspicious_time": ("hour", "night"),
    "location_fraud": (
        "location_change", "high_risk_country", "sanctioned", "impossible_travel", "distance_km", "travel",
    ),
    "merchant_risk": (
        "merchant_rating", "fraud_reports", "fraud_report_window_days", "merchant_category", "crypto", "gift_cards",
        "first_time_merchant", "purchases_at_merchant", "prepaid_card",
    ),
    "device_risk": ("vpn", "emulator", "new_device", "device_age_days", "remote_access"),
    "account_takeover": ("password_reset", "contact_changed", "failed_attempts", "days_since_last"),
    "velocity": (
        "velocity", "recent_transactions", "recent_window_minutes", "declined_before", "escalating_amounts",
    ),
    "identity": ("kyc_missing", "verified", "strong_authentication", "vip", "business_account", "address_mismatch"),
    "payment_route": ("new_payee", "funds_forwarded", "channel", "payment_method", "payment_method_age_days"),
    "dispute_history": ("chargebacks", "disputes_before"),
}  # fmt: skip
_TYPE_OF = {fact: kind for kind, facts in _FACTS.items() for fact in facts}


def problem_types(condition: Condition) -> list[str]:
    """Categories of a bullet, in alphabetical order; "other" for columns that are no named facts.

    >>> problem_types(Condition.parse("vpn is true and high_risk_country is true"))
    ['device_risk', 'location_fraud']
    """
    return sorted({_TYPE_OF.get(fact, "other") for fact in condition.facts})
