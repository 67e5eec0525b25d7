"""Measures, for each embedder, the cosine from which a bullet counts as related to a transaction.

Twenty bullets, written by hand for twenty facts as an analyst would, are compared with texts of the synthetic world. A
pair is *related* if the fact is true of the transaction, *unrelated* if it is known to be false, and *foreign* if the
sentence is not about payments at all. The threshold maximises the share of related pairs kept minus the share of
unrelated pairs kept.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from acefraud import HybridSelector, load_dataset

EMBEDDERS = ("wordllama", "hashing")
BULLETS = {
    "vpn": "Be careful when the customer hides behind a VPN or proxy",
    "new_device": "A device that was never seen before deserves a second look",
    "night": "Purchases in the middle of the night are riskier than by day",
    "location_change": "Watch for purchases far from where the customer usually shops",
    "velocity": "Many transactions in a few minutes point to card testing",
    "password_reset": "A password reset shortly before a payment suggests account takeover",
    "contact_changed": "A changed e-mail or phone number before a purchase is a warning",
    "remote_access": "Remote access software on the device means somebody else may be in control",
    "funds_forwarded": "Money that is moved on right after it arrives is typical of mules",
    "new_payee": "A first transfer to a new beneficiary should be checked",
    "crypto": "Purchases at crypto exchanges are hard to reverse",
    "gift_cards": "Gift cards are a favourite of fraudsters",
    "prepaid_card": "Prepaid cards make it harder to know who pays",
    "kyc_missing": "Do not trust accounts whose identity checks are missing",
    "verified": "A verified customer with a long history is usually fine",
    "strong_authentication": "Strong authentication that was passed speaks for the customer",
    "business_account": "Business accounts make larger purchases without meaning harm",
    "travel": "A customer with known travel plans may pay from abroad",
    "address_mismatch": "Billing and delivery addresses that do not match are suspicious",
    "disputes_before": "Customers who disputed payments before may do so again",
}
FOREIGN = (
    "The orchestra plays Brahms on Thursday evening",
    "Water the tomatoes twice a week in summer",
    "The bridge was closed to cyclists after the storm",
    "Knead the dough until it is smooth and elastic",
    "The committee postponed its vote on the library roof",
    "Penguins can dive deeper than most other birds",
)


def measure(name: str, seed: int, cases: int) -> dict[str, float]:
    """Median cosine of the three kinds of pairs, area under the curve, and the best threshold."""
    embedder = HybridSelector(embedding_model=name).embedder
    rows = load_dataset("complex_fraud_detection", seed=seed).train[:cases]
    texts = embedder.embed([case.transaction.text for case in rows])
    bullets = embedder.embed(list(BULLETS.values()))
    cosines = texts @ bullets.T
    truth = np.array([[case.transaction.facts.get(fact) for fact in BULLETS] for case in rows], dtype=object)
    related, unrelated = cosines[truth == True], cosines[truth == False]  # noqa: E712  # None is neither
    foreign = (texts @ embedder.embed(list(FOREIGN)).T).ravel()
    grid = np.arange(0.02, 0.8, 0.01)
    gains = [float(np.mean(related >= t)) - float(np.mean(unrelated >= t)) for t in grid]
    sample = np.random.default_rng(0).choice(unrelated, len(related))
    return {
        "related": round(float(np.median(related)), 3),
        "unrelated": round(float(np.median(unrelated)), 3),
        "foreign": round(float(np.median(foreign)), 3),
        "auc_related_unrelated": round(float(np.mean(related > sample)), 3),
        "threshold": round(float(grid[int(np.argmax(gains))]), 2),
        "shipped": embedder.threshold,
    }


def main() -> None:
    """Print a line for each embedder, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("embedders", nargs="*", default=EMBEDDERS, help="their names")
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--cases", type=int, default=600)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {name: measure(name, options.seed, options.cases) for name in options.embedders}
    if options.json:
        print(json.dumps(found))
        return
    for name, figures in found.items():
        print(f"{name:>10}  " + "  ".join(f"{key} {value}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
