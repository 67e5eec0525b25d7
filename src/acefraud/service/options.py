"""How a service is run."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from acefraud.errors import ConfigurationError
from acefraud.settings import Durability, ModelSettings
from acefraud.support.arguments import check_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """Where the playbook is, where to listen, and what callers may do.

    >>> ServiceOptions(store=Path("book.db"), host="0.0.0.0", insecure_local=True)
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: --insecure-local lets everybody write: it needs a loopback address, not 0.0.0.0
    """

    store: Path | str
    """The playbook: the path of a file, or the address of a PostgreSQL database."""
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    """Processes that answer requests. One more learns."""
    insecure_local: bool = False
    """Whether callers without a key may do everything. Only on a loopback address."""
    most_bytes: int = 1_000_000
    """The largest body of a request."""
    rate: float = 2_000.0
    """Requests that each key may send per second to one worker, on average; 0 for no limit."""
    burst: int | None = None
    """Requests that each key may send at once; those of two seconds if not given."""
    most_waiting: int = 2_000
    """Decisions that may be under way in one worker, those of batches included; and as many reports of outcomes. More
    are turned away."""
    idempotency_days: int = 30
    """Days that idempotency keys are kept; 0 for ever."""
    deadline: int = 30
    """Seconds after which a request that has no answer yet is told to try again."""
    grace: int = 30
    """Seconds that a worker gets to finish what it accepted."""
    strict: bool = False
    """Whether transactions with facts that the playbook does not know, or with times that cannot be, are refused."""
    days_ahead: float = 1.0
    """How many days after now a transaction may be dated. One dated later counts in no history."""
    durability: Durability = Durability.POWER
    models: ModelSettings = field(default_factory=ModelSettings)

    def __post_init__(self) -> None:
        for name in ("workers", "most_bytes", "burst", "most_waiting", "deadline"):
            value = getattr(self, name)
            if value is not None:
                check_whole(name, value, least=1)
        for name in ("port", "idempotency_days"):
            check_whole(name, getattr(self, name), least=0)
        if self.insecure_local and not is_loopback(self.host):
            wrong = f"it needs a loopback address, not {self.host}"
            raise ConfigurationError(f"--insecure-local lets everybody write: {wrong}")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, and can only be reached from it.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
