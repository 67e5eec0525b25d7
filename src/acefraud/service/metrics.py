"""What Prometheus reads. The workers of a server count into files that they share."""

from __future__ import annotations

from typing import Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from prometheus_client.values import ValueClass

REQUESTS: Final = Counter("acefraud_requests_total", "Requests answered.", ["method", "route", "status"])
SECONDS: Final = Histogram(
    "acefraud_request_seconds",
    "Seconds until a request was answered.",
    ["route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
)
DECISIONS: Final = Counter("acefraud_decisions_total", "Decisions made.", ["verdict"])
UNFAMILIAR: Final = Counter(
    "acefraud_decisions_unfamiliar_total", "Decisions on transactions of which nothing relevant was known."
)
OUTCOMES: Final = Counter("acefraud_outcomes_total", "Outcomes received.", ["label"])
REVISION: Final = Gauge("acefraud_playbook_revision", "The revision that decides.", multiprocess_mode="mostrecent")
WAITING: Final = Gauge(
    "acefraud_outcomes_waiting", "Outcomes received and not judged yet, up to 1,000.", multiprocess_mode="mostrecent"
)
LEVEL: Final = Gauge(
    "acefraud_level_shift", "What latest outcomes add to the log-odds of fraud.", multiprocess_mode="mostrecent"
)
LEVEL_HELD: Final = Gauge(
    "acefraud_level_held", "1 if a step of the level waits for a person.", multiprocess_mode="mostrecent"
)
MEDIA_TYPE: Final = CONTENT_TYPE_LATEST


def exposition() -> bytes:
    """The metrics of all workers, in Prometheus' text format."""
    if ValueClass.__name__ == "MmapedValue":  # of a process that was started with a folder to share
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
    return generate_latest()
