"""PostgreSQL stops under load and comes back: requests fail cleanly, then go on."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest
from tests.service.on_server import Server, running
from tests.service.own_postgres import own_postgres
from tests.service.workload import check_kept, take_in_all, working

from acefraud.storage import open_playbook

pytestmark = [pytest.mark.long, pytest.mark.enable_socket]


def test_requests_fail_with_503_while_the_store_is_down_and_then_go_on(tmp_path: Path) -> None:
    with own_postgres() as postgres:
        with open_playbook(postgres.address) as book:
            book.add_bullet("VPN: decline")
        with running(["--database", postgres.address, "--workers", "2"], tmp_path / "server.log") as server:
            statuses: Counter[tuple[int, bool]] = Counter()
            with working(server.url, clients=4) as seen, _asking(server, statuses):
                for _ in range(3):
                    time.sleep(1.5)
                    postgres.stop()
                    time.sleep(1.5)
                    postgres.start()
                time.sleep(3)
                before = len(seen.decisions)
                time.sleep(2)
                assert len(seen.decisions) > before, "decisions did not go on"
        with open_playbook(postgres.address) as book:
            take_in_all(book)
            check_kept(book, seen)
    assert {status for status, _ in statuses} == {200, 503}
    assert statuses[503, True] > 0
    assert statuses[503, False] == 0, "a 503 without Retry-After"


class _asking:  # noqa: N801  # a context manager that reads like one
    """Somebody who does not retry, and notes every status with whether Retry-After came with it."""

    def __init__(self, server: Server, statuses: Counter[tuple[int, bool]]) -> None:
        self._server, self._statuses = server, statuses
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def _ask(self) -> None:
        with httpx.Client(base_url=self._server.url, timeout=30) as client:
            turn = 0
            while not self._ending.wait(0.02):
                turn += 1
                answer = client.post("/v1/decisions", json={"id": f"asked-{turn}", "facts": {"amount": turn}})
                self._statuses[answer.status_code, "retry-after" in answer.headers] += 1

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(60)
