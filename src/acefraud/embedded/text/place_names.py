"""Place names with a meaning for risk, and the regions that a town may be named with.

The two risk lists are a default to start from. Sanctions change by the month and "high-risk" is a matter of a
team's own losses and rules: a team should replace both with its own.
"""

from __future__ import annotations

SANCTIONED = ("iran", "north korea", "dprk", "cuba", "syria", "crimea", "donetsk", "luhansk")
"""Places under comprehensive sanctions of at least one large jurisdiction."""

HIGH_RISK = (
    "nigeria", "lagos", "romania", "bucharest", "ghana", "accra", "ivory coast", "belarus", "russia", "ukraine",
    "moldova", "venezuela", "myanmar", "yemen", "south sudan", "somalia", "haiti", "democratic republic of the congo",
    "afghanistan", "iraq", "libya", "pakistan", "cambodia", "laos", "cameroon", "benin",
)  # fmt: skip
"""Countries (and their best-known cities) that fraud teams commonly list as high-risk."""

STATES = {
    "al": "alabama", "ak": "alaska", "az": "arizona", "ar": "arkansas", "ca": "california", "co": "colorado",
    "ct": "connecticut", "de": "delaware", "dc": "district of columbia", "fl": "florida", "ga": "georgia",
    "hi": "hawaii", "id": "idaho", "il": "illinois", "in": "indiana", "ia": "iowa", "ks": "kansas", "ky": "kentucky",
    "la": "louisiana", "me": "maine", "md": "maryland", "ma": "massachusetts", "mi": "michigan", "mn": "minnesota",
    "ms": "mississippi", "mo": "missouri", "mt": "montana", "ne": "nebraska", "nv": "nevada", "nh": "new hampshire",
    "nj": "new jersey", "nm": "new mexico", "nc": "north carolina", "nd": "north dakota", "oh": "ohio",
    "ok": "oklahoma", "or": "oregon", "pa": "pennsylvania", "ri": "rhode island", "sc": "south carolina",
    "sd": "south dakota", "tn": "tennessee", "tx": "texas", "ut": "utah", "vt": "vermont", "va": "virginia",
    "wa": "washington", "wv": "west virginia", "wi": "wisconsin", "wy": "wyoming",
}  # fmt: skip

COUNTRIES = frozenset(
    ("united states", "usa", "uk", "united kingdom", "england", "scotland", "ireland", "france", "germany", "spain",
     "portugal", "italy", "austria", "switzerland", "belgium", "netherlands", "poland", "sweden", "norway", "denmark",
     "finland", "greece", "turkey", "brazil", "argentina", "chile", "colombia", "peru", "mexico", "canada", "india",
     "china", "japan", "singapore", "thailand", "vietnam", "indonesia", "philippines", "malaysia", "australia",
     "new zealand", "south africa", "kenya", "egypt", "morocco", "israel", "uae", "saudi arabia", "nigeria", "romania",
     "ghana", "belarus", "russia", "ukraine", "moldova", "venezuela", "iran", "north korea", "cuba", "syria",
     "pakistan", "cambodia")
)  # fmt: skip

# "washington", "georgia" and "new york" name a town or a country too; only their two-letter code tells.
REGIONS = COUNTRIES | (frozenset(STATES.values()) - {"washington", "georgia", "new york"})

NOT_PLACES = frozenset(
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "usd",
        "eur",
        "gbp",
        "person",
        "store",
        "app",
        "cash",
        "total",
        "full",
        "q1",
        "q2",
        "q3",
        "q4",
        "the",
        "transaction",
        "user",
        "merchant",
        "customer",
        "account",
        "usual",
        "his",
        "her",
        "their",
        "vpn",
        "kyc",
        "atm",
    ]
)
