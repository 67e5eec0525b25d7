"""Made-up card payments with a few planted patterns, as data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def payments(rows: int = 2_000, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Payments with numbers, words, flags and gaps, and whether each was fraud."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "amount": np.exp(random.normal(4, 1, rows)).round(2),
            "distance": np.where(random.random(rows) < 0.15, np.nan, random.exponential(20, rows)),
            "country": random.choice(["FR", "DE", "ES", "NG"], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "channel": random.choice(["web", "app", "branch"], rows),
            "vpn": random.random(rows) < 0.2,
            "items": random.integers(1, 9, rows),
        }
    )
    risk = (
        -4.0
        + 2.5 * (frame["amount"] > 150) * frame["vpn"]
        + 2.0 * (frame["country"] == "NG")
        + 1.5 * frame["distance"].isna()
        + 1.0 * (frame["items"] > 6)
    )
    return frame, (random.random(rows) < 1 / (1 + np.exp(-risk))).astype(int).to_numpy()
