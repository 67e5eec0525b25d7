"""Honest conduct: ordinary shopping, and the look-alikes that general suspicion would stop.

A look-alike shares the loud signs of a fraud (night, distance, new device, large amount) and differs from it in quiet
ones that have to be seen together: the age of the device, strong authentication, a known merchant, a long file.
"""

from __future__ import annotations

from collections.abc import Mapping

from acefraud.datasets.world.profiles import PartOfDay, Profile, Spread

DAYTIME: Mapping[PartOfDay, float] = {"night": 0.05, "morning": 0.25, "day": 0.4, "evening": 0.3}
ALL_HOURS: Mapping[PartOfDay, float] = {"night": 0.3, "morning": 0.2, "day": 0.22, "evening": 0.28}
NIGHTLY: Mapping[PartOfDay, float] = {"night": 0.75, "morning": 0.12, "day": 0.03, "evening": 0.1}

DAILY = Profile(
    spreads={
        "usual_amount": Spread(70, 0.6),
        "ratio": Spread(0.9, 0.65),
        "range": Spread(2.6, 0.3),
        "account_age_days": Spread(750, 0.7),
        "transactions_per_month": Spread(14, 0.55),
        "device_age_days": Spread(280, 0.8),
        "payment_method_age_days": Spread(400, 0.8),
        "days_since_last": Spread(3, 0.8),
        "rating_gap": Spread(0.6, 0.5),
        "recent_window_minutes": Spread(60, 0.7),
    },
    counts={
        "larger_purchases": 2.5,
        "purchases_at_merchant": 5.0,
        "chargebacks": 0.07,
        "fraud_reports": 0.7,
        "failed_attempts": 0.25,
        "declined_before": 0.2,
        "recent_transactions": 3.0,
    },
    flags={
        "velocity": 0.05, "escalating_amounts": 0.02,
        "location_change": 0.08, "high_risk_country": 0.02, "sanctioned": 0.001, "impossible_travel": 0.005,
        "travel": 0.05, "abroad": 0.3,
        "vpn": 0.08, "emulator": 0.01, "new_device": 0.07, "password_reset": 0.04, "contact_changed": 0.03,
        "remote_access": 0.01,
        "kyc_missing": 0.04, "verified": 0.55, "strong_authentication": 0.45, "step_up": 0.9, "vip": 0.03,
        "business_account": 0.04,
        "address_mismatch": 0.07, "new_payee": 0.2, "funds_forwarded": 0.03, "gift_cards": 0.03,
        "disputes_before": 0.05, "round_amount": 0.1,
    },
    settings={
        ("groceries", "in store"): 6, ("restaurant", "in store"): 4, ("fuel", "in store"): 3,
        ("pharmacy", "in store"): 2, ("fashion", "in store"): 2, ("", "cash machine"): 1,
        ("groceries", "online"): 1, ("electronics", "in store"): 1,
    },
    methods={"card": 9, "wallet": 2, "prepaid card": 0.3},
    hours=DAYTIME,
)  # fmt: skip
"""The common round of purchases; every other conduct is told as a departure from it."""

ONLINE = DAILY.but(
    spreads={"ratio": (1.2, 0.7), "device_age_days": (240, 0.8)},
    counts={"purchases_at_merchant": 2.5, "failed_attempts": 0.4, "declined_before": 0.3},
    flags={"vpn": 0.16, "new_device": 0.12, "address_mismatch": 0.12, "strong_authentication": 0.6,
           "gift_cards": 0.06, "location_change": 0.1},
    settings={("marketplace", "online"): 4, ("fashion", "online"): 3, ("electronics", "online"): 3,
              ("gaming", "online"): 2, ("pharmacy", "online"): 1, ("travel", "online"): 1, ("gift cards", "online"): 1},
    hours={"night": 0.14, "morning": 0.2, "day": 0.26, "evening": 0.4},
)  # fmt: skip

BIG_TICKET = ONLINE.but(
    spreads={"ratio": (5.0, 0.6), "account_age_days": (900, 0.6)},
    counts={"larger_purchases": 2.5, "purchases_at_merchant": 1.0},
    flags={"verified": 0.7, "strong_authentication": 0.65},
    settings={("furniture", "in store"): 3, ("furniture", "online"): 2, ("electronics", "in store"): 2,
              ("electronics", "online"): 2, ("jewellery", "in store"): 1, ("travel", "phone order"): 1},
    hours=DAYTIME,
)  # fmt: skip

SMALL_DIGITAL = ONLINE.but(
    spreads={"ratio": (0.14, 0.7), "recent_window_minutes": (50, 0.7), "payment_method_age_days": (330, 0.7)},
    counts={"purchases_at_merchant": 11.0, "recent_transactions": 6.0, "declined_before": 0.4, "failed_attempts": 0.5},
    flags={"velocity": 0.35, "vpn": 0.25, "strong_authentication": 0.25},
    settings={("gaming", "online"): 6, ("marketplace", "online"): 2, ("gift cards", "online"): 1},
    hours=ALL_HOURS,
)

FAMILY_TRANSFER = DAILY.but(
    spreads={"usual_amount": (160, 0.7), "ratio": (1.6, 0.6)},
    counts={"recent_transactions": 3.0},
    flags={"new_payee": 0.35, "funds_forwarded": 0.06, "strong_authentication": 0.7, "verified": 0.65,
           "round_amount": 0.6, "location_change": 0.12},
    settings={("money transfer", "transfer"): 8, ("", "cash machine"): 1, ("crypto exchange", "online"): 1},
)  # fmt: skip

TRAVELLER = DAILY.but(
    spreads={"usual_amount": (95, 0.6), "ratio": (2.6, 0.75), "device_age_days": (260, 0.9),
             "days_since_last": (2, 0.8)},
    counts={"purchases_at_merchant": 0.3, "failed_attempts": 0.7, "declined_before": 0.6},
    flags={"location_change": 0.95, "abroad": 0.7, "travel": 0.5, "high_risk_country": 0.1, "impossible_travel": 0.03,
           "strong_authentication": 0.75, "new_device": 0.1, "vpn": 0.25, "velocity": 0.12, "address_mismatch": 0.1},
    settings={("travel", "online"): 3, ("restaurant", "in store"): 3, ("fashion", "in store"): 1,
              ("jewellery", "in store"): 1, ("", "cash machine"): 2, ("electronics", "in store"): 1,
              ("fuel", "in store"): 1},
    hours=ALL_HOURS,
)  # fmt: skip

GIFT_SEASON = ONLINE.but(
    spreads={"ratio": (3.6, 0.7), "account_age_days": (650, 0.8), "recent_window_minutes": (90, 0.6)},
    counts={"purchases_at_merchant": 0.7, "recent_transactions": 5.0, "larger_purchases": 1.8, "chargebacks": 0.12},
    flags={"address_mismatch": 0.55, "velocity": 0.35, "gift_cards": 0.3, "escalating_amounts": 0.08,
           "disputes_before": 0.1, "strong_authentication": 0.7},
    settings={("gift cards", "online"): 3, ("electronics", "online"): 3, ("jewellery", "in store"): 2,
              ("fashion", "online"): 2, ("marketplace", "online"): 2, ("gaming", "online"): 1},
    hours={"night": 0.18, "morning": 0.18, "day": 0.24, "evening": 0.4},
)  # fmt: skip

NEW_PARENTS = ONLINE.but(
    spreads={"ratio": (2.8, 0.6), "account_age_days": (800, 0.7), "days_since_last": (1, 0.6)},
    counts={"purchases_at_merchant": 0.8, "recent_transactions": 4.0},
    flags={"contact_changed": 0.25, "address_mismatch": 0.3, "velocity": 0.3, "verified": 0.65, "new_device": 0.15},
    settings={("pharmacy", "online"): 4, ("furniture", "online"): 3, ("marketplace", "online"): 3,
              ("groceries", "online"): 3, ("fashion", "online"): 1},
    hours={"night": 0.45, "morning": 0.2, "day": 0.2, "evening": 0.15},
)  # fmt: skip

NIGHT_SHIFT = DAILY.but(
    spreads={"usual_amount": (45, 0.5), "ratio": (0.9, 0.5), "account_age_days": (800, 0.7)},
    counts={"purchases_at_merchant": 9.0, "failed_attempts": 0.5},
    flags={"new_device": 0.08, "vpn": 0.12},
    settings={("fuel", "in store"): 3, ("restaurant", "in store"): 3, ("groceries", "in store"): 2,
              ("pharmacy", "in store"): 1, ("", "cash machine"): 1, ("marketplace", "online"): 2,
              ("gaming", "online"): 1, ("electronics", "online"): 1},
    hours=NIGHTLY,
)  # fmt: skip

BUSINESS = ONLINE.but(
    spreads={"usual_amount": (260, 0.7), "ratio": (4.5, 0.8), "transactions_per_month": (30, 0.6)},
    counts={"larger_purchases": 2.2, "purchases_at_merchant": 1.8, "recent_transactions": 4.0},
    flags={"business_account": 0.75, "vpn": 0.45, "new_payee": 0.5, "funds_forwarded": 0.08, "new_device": 0.2,
           "address_mismatch": 0.3, "verified": 0.7, "velocity": 0.15, "location_change": 0.2, "round_amount": 0.3},
    settings={("office supplies", "online"): 4, ("electronics", "online"): 2, ("furniture", "phone order"): 1,
              ("office supplies", "phone order"): 1, ("travel", "online"): 1, ("money transfer", "transfer"): 2},
    hours={"night": 0.1, "morning": 0.35, "day": 0.4, "evening": 0.15},
)  # fmt: skip

NEW_CUSTOMER = ONLINE.but(
    spreads={"account_age_days": (28, 0.8), "device_age_days": (200, 0.8), "payment_method_age_days": (90, 0.9),
             "ratio": (1.7, 0.7), "transactions_per_month": (10, 0.6)},
    counts={"purchases_at_merchant": 0.7, "failed_attempts": 0.7, "larger_purchases": 0.7},
    flags={"new_device": 0.3, "kyc_missing": 0.25, "verified": 0.4, "strong_authentication": 0.8},
    settings={("marketplace", "online"): 3, ("fashion", "online"): 2, ("groceries", "in store"): 2,
              ("electronics", "online"): 2, ("furniture", "online"): 1, ("travel", "online"): 0.5,
              ("restaurant", "in store"): 2, ("jewellery", "in store"): 0.5},
)  # fmt: skip

VIP = TRAVELLER.but(
    spreads={"usual_amount": (400, 0.7), "ratio": (5.0, 0.8), "account_age_days": (1400, 0.6)},
    counts={"larger_purchases": 3.5, "chargebacks": 0.4},
    flags={"vip": 0.8, "location_change": 0.5, "verified": 0.8, "disputes_before": 0.15, "vpn": 0.2},
    settings={
        ("jewellery", "in store"): 3,
        ("travel", "phone order"): 3,
        ("fashion", "in store"): 2,
        ("furniture", "phone order"): 1,
        ("crypto exchange", "online"): 1,
    },
)

REMOTE_WORKER = ONLINE.but(
    spreads={"ratio": (1.8, 0.7), "device_age_days": (180, 1.0)},
    flags={"vpn": 0.85, "location_change": 0.45, "remote_access": 0.2, "strong_authentication": 0.7,
           "impossible_travel": 0.15, "password_reset": 0.12, "high_risk_country": 0.08},
    settings={("office supplies", "online"): 2, ("electronics", "online"): 3, ("marketplace", "online"): 2,
              ("crypto exchange", "online"): 1, ("travel", "online"): 1},
    hours=ALL_HOURS,
)  # fmt: skip
