"""The stories of the world: how common each is, what it resembles, and what becomes of it over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from acefraud.datasets.world import dishonest, honest
from acefraud.datasets.world.profiles import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One recurring kind of transaction."""

    name: str
    is_fraud: bool
    weight: float
    """How common it is among the stories of its side."""
    profile: Profile
    twin: str
    """The story of the other side that it is most easily taken for."""
    trend: float = 0.0
    """Change of the logarithm of its weight over the period, at drift 1."""
    variant: Profile | None = None
    """A new way of doing it, seen only from about the middle of the period."""
    tendency: Profile | None = None
    """Where its details move, little by little."""


def _fraud(name: str, weight: float, profile: Profile, twin: str, trend: float = 0.0, **later: Profile) -> Story:
    return Story(name=name, is_fraud=True, weight=weight, profile=profile, twin=twin, trend=trend, **later)


def _honest(name: str, weight: float, profile: Profile, twin: str, trend: float = 0.0, **later: Profile) -> Story:
    return Story(name=name, is_fraud=False, weight=weight, profile=profile, twin=twin, trend=trend, **later)


_ALL = (
    _fraud("account takeover", 9, dishonest.ACCOUNT_TAKEOVER, "travellers", 0.3, variant=dishonest.GUIDED_TAKEOVER),
    _fraud("card testing", 7, dishonest.CARD_TESTING, "small digital purchases", -1.0,
           variant=dishonest.SLOW_CARD_TESTING),
    _fraud("synthetic identity", 7, dishonest.SYNTHETIC_IDENTITY, "big-ticket shopping", 0.5,
           tendency=dishonest.PATIENT_SYNTHETIC),
    _fraud("friendly fraud", 7, dishonest.FRIENDLY_FRAUD, "gift season"),
    _fraud("money mule", 6, dishonest.MONEY_MULE, "family transfers", 0.6, tendency=dishonest.CRYPTO_MULE),
    _fraud("merchant collusion", 5, dishonest.MERCHANT_COLLUSION, "new customers"),
    _honest("daily shopping", 10, honest.DAILY, "card testing", tendency=honest.ONLINE),
    _honest("online shopping", 11, honest.ONLINE, "friendly fraud", 0.2),
    _honest("big-ticket shopping", 5, honest.BIG_TICKET, "synthetic identity"),
    _honest("small digital purchases", 5, honest.SMALL_DIGITAL, "card testing", 0.4),
    _honest("family transfers", 5, honest.FAMILY_TRANSFER, "money mule"),
    _honest("travellers", 6, honest.TRAVELLER, "account takeover", 0.5),
    _honest("gift season", 5, honest.GIFT_SEASON, "friendly fraud", -1.0),
    _honest("new parents", 4, honest.NEW_PARENTS, "account takeover"),
    _honest("night-shift workers", 5, honest.NIGHT_SHIFT, "account takeover"),
    _honest("business purchases", 5, honest.BUSINESS, "merchant collusion"),
    _honest("new customers", 7, honest.NEW_CUSTOMER, "merchant collusion", 0.4),
    _honest("VIPs", 3, honest.VIP, "account takeover"),
    _honest("remote workers", 4, honest.REMOTE_WORKER, "account takeover", 0.5),
)  # fmt: skip

STORIES: Mapping[str, Story] = {story.name: story for story in _ALL}
