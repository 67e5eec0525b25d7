"""How hard a case is for somebody who knows only what everybody knows about fraud."""

from __future__ import annotations

from collections.abc import Mapping

from acefraud.core.transaction import FactValue

_LOUD_FLAGS = (
    "night", "new_device", "location_change", "vpn", "velocity", "password_reset", "high_risk_country",
    "impossible_travel", "address_mismatch", "crypto", "kyc_missing",
)  # fmt: skip


def loud_signs(facts: Mapping[str, FactValue]) -> int:
    """How many of the signs that general suspicion looks for are present.

    >>> loud_signs({"night": True, "account_age_days": 12.0, "amount_to_usual": 1.1})
    2
    """

    def number(name: str, otherwise: float) -> float:
        return float(facts.get(name, otherwise))

    signs = sum(facts.get(name) is True for name in _LOUD_FLAGS)
    signs += number("amount_to_usual", 1.0) >= 3
    signs += number("account_age_days", 365.0) < 60
    signs += number("failed_attempts", 0.0) >= 2
    signs += number("fraud_reports", 0.0) >= 2
    return signs


def difficulty(facts: Mapping[str, FactValue], is_fraud: bool, ambiguous: bool) -> str:
    """A fraud is hard when it is quiet, an honest payment when it is loud, and anything drawn at the boundary."""
    if ambiguous:
        return "very_hard"
    signs = loud_signs(facts)
    steps = ("hard", "medium", "medium", "easy") if is_fraud else ("easy", "easy", "medium", "hard")
    return steps[min(signs, 3)]
