"""Fraud: six patterns, and the newer variants that some of them turn into.

Each is told as a departure from the honest conduct it hides behind, so that what gives it away is a combination. Some
are quiet by general suspicion: a friendly fraud comes from the known device in the usual place, a synthetic identity is
verified, a colluding merchant is well rated.
"""

from __future__ import annotations

from acefraud.datasets.world.honest import ALL_HOURS, BIG_TICKET, DAYTIME, FAMILY_TRANSFER, ONLINE

ACCOUNT_TAKEOVER = ONLINE.but(
    spreads={"ratio": (4.2, 0.65), "days_since_last": (18, 0.7), "device_age_days": (25, 1.0)},
    counts={"purchases_at_merchant": 0.3, "failed_attempts": 2.2, "larger_purchases": 0.8, "declined_before": 0.7},
    flags={"new_device": 0.88, "location_change": 0.6, "abroad": 0.5, "password_reset": 0.5, "contact_changed": 0.4,
           "strong_authentication": 0.05, "step_up": 0.04, "vpn": 0.38, "impossible_travel": 0.14,
           "high_risk_country": 0.12,
           "address_mismatch": 0.4, "gift_cards": 0.2, "velocity": 0.2, "new_payee": 0.7},
    settings={("electronics", "online"): 4, ("gift cards", "online"): 2, ("jewellery", "online"): 1,
              ("fashion", "online"): 2, ("crypto exchange", "online"): 1, ("marketplace", "online"): 2,
              ("money transfer", "transfer"): 1, ("travel", "online"): 1},
    hours=ALL_HOURS,
)  # fmt: skip

GUIDED_TAKEOVER = FAMILY_TRANSFER.but(
    spreads={"ratio": (6.0, 0.5), "account_age_days": (1100, 0.6), "days_since_last": (5, 0.8)},
    counts={"recent_transactions": 3.5, "failed_attempts": 0.4, "larger_purchases": 0.5},
    flags={"remote_access": 0.8, "new_device": 0.06, "location_change": 0.05, "strong_authentication": 0.8,
           "new_payee": 0.95, "round_amount": 0.6, "escalating_amounts": 0.25},
    settings={("money transfer", "transfer"): 6, ("crypto exchange", "online"): 3, ("gift cards", "online"): 1},
    hours=DAYTIME,
)  # fmt: skip
"""The owner is talked through the payment, so the device, the place and the authentication are all in order."""

CARD_TESTING = ONLINE.but(
    spreads={"ratio": (0.1, 0.7), "recent_window_minutes": (14, 0.7), "payment_method_age_days": (9, 1.0),
             "device_age_days": (30, 1.1)},
    counts={"declined_before": 3.4, "failed_attempts": 2.2, "recent_transactions": 8.0, "purchases_at_merchant": 0.4,
            "fraud_reports": 1.2},
    flags={"velocity": 0.6, "escalating_amounts": 0.3, "vpn": 0.3, "new_device": 0.3, "emulator": 0.1,
           "step_up": 0.15, "strong_authentication": 0.08, "verified": 0.35},
    settings={("gaming", "online"): 3, ("marketplace", "online"): 3, ("restaurant", "online"): 1,
              ("fuel", "in store"): 1, ("gift cards", "online"): 1, ("pharmacy", "online"): 1},
    hours=ALL_HOURS,
)  # fmt: skip

SLOW_CARD_TESTING = CARD_TESTING.but(
    spreads={"ratio": (0.22, 0.5), "payment_method_age_days": (9, 0.9), "recent_window_minutes": (240, 0.6)},
    counts={"declined_before": 0.9, "failed_attempts": 0.6, "recent_transactions": 3.0},
    flags={"velocity": 0.08, "escalating_amounts": 0.1, "emulator": 0.3, "vpn": 0.5},
    hours=DAYTIME,
)
"""The same stolen cards, tried one at a time so that no burst is seen."""

SYNTHETIC_IDENTITY = BIG_TICKET.but(
    spreads={"account_age_days": (150, 0.45), "device_age_days": (110, 0.6), "payment_method_age_days": (110, 0.7),
             "transactions_per_month": (2.8, 0.45), "usual_amount": (40, 0.4), "ratio": (9.0, 0.45)},
    counts={"larger_purchases": 0.1, "purchases_at_merchant": 0.5, "chargebacks": 0.05},
    flags={"verified": 0.75, "kyc_missing": 0.06, "strong_authentication": 0.5, "contact_changed": 0.12,
           "new_device": 0.08, "location_change": 0.07},
    settings={("electronics", "online"): 4, ("jewellery", "online"): 2, ("furniture", "online"): 2,
              ("electronics", "in store"): 1, ("jewellery", "in store"): 1, ("gift cards", "online"): 1,
              ("travel", "phone order"): 1},
)  # fmt: skip

PATIENT_SYNTHETIC = SYNTHETIC_IDENTITY.but(
    spreads={"account_age_days": (330, 0.5), "device_age_days": (240, 0.6), "usual_amount": (65, 0.5)},
)
"""Files are left to ripen for longer before the limit is drawn."""

FRIENDLY_FRAUD = ONLINE.but(
    spreads={"account_age_days": (420, 0.5), "ratio": (2.6, 0.5), "device_age_days": (220, 0.8)},
    counts={"chargebacks": 5.0, "purchases_at_merchant": 1.8, "larger_purchases": 2.2},
    flags={"disputes_before": 0.7, "new_device": 0.05, "location_change": 0.05, "strong_authentication": 0.08,
           "step_up": 0.3,
           "verified": 0.6, "address_mismatch": 0.1, "vpn": 0.08},
    settings={("electronics", "online"): 5, ("gift cards", "online"): 2, ("fashion", "online"): 3,
              ("gaming", "online"): 3, ("marketplace", "online"): 2, ("jewellery", "online"): 1},
    hours={"night": 0.1, "morning": 0.2, "day": 0.3, "evening": 0.4},
)  # fmt: skip

MONEY_MULE = FAMILY_TRANSFER.but(
    spreads={"account_age_days": (140, 0.6), "device_age_days": (90, 0.8), "payment_method_age_days": (120, 0.9),
             "ratio": (3.2, 0.5), "days_since_last": (2, 1.0), "transactions_per_month": (6, 0.5),
             "recent_window_minutes": (60, 0.8)},
    counts={"recent_transactions": 4.0},
    flags={"new_payee": 0.88, "funds_forwarded": 0.8, "velocity": 0.25, "verified": 0.5, "strong_authentication": 0.65,
           "round_amount": 0.6, "contact_changed": 0.12},
    settings={("money transfer", "transfer"): 6, ("", "cash machine"): 1.5, ("crypto exchange", "online"): 1.5},
)  # fmt: skip

CRYPTO_MULE = MONEY_MULE.but(
    spreads={"ratio": (4.0, 0.6), "account_age_days": (260, 0.6)},
    flags={"funds_forwarded": 0.6, "velocity": 0.12},
    settings={("money transfer", "transfer"): 4, ("crypto exchange", "online"): 4, ("crypto exchange", "transfer"): 2},
)
"""The money leaves by way of crypto exchanges, and the accounts lent for it are older."""

MERCHANT_COLLUSION = ONLINE.but(
    spreads={"account_age_days": (80, 0.4), "device_age_days": (7, 0.5), "payment_method_age_days": (25, 0.9),
             "rating_gap": (0.28, 0.4), "ratio": (1.5, 0.45), "usual_amount": (180, 0.6)},
    counts={"purchases_at_merchant": 3.0, "fraud_reports": 0.4, "larger_purchases": 1.8, "failed_attempts": 0.1},
    flags={"strong_authentication": 0.1, "step_up": 0.2, "new_device": 0.1, "verified": 0.5, "round_amount": 0.8,
           "address_mismatch": 0.1},
    settings={("furniture", "phone order"): 3, ("travel", "phone order"): 3, ("jewellery", "phone order"): 2,
              ("marketplace", "online"): 2, ("office supplies", "phone order"): 1, ("fashion", "online"): 1},
    hours=DAYTIME,
)  # fmt: skip
