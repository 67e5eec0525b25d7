"""A server that is killed under load: nothing acknowledged is lost, and nothing is done twice."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from tests.effort import rounds
from tests.postgres import database_for
from tests.service.on_server import start
from tests.service.workload import check_kept, take_in_all, working

from acefraud.storage import open_playbook

KILLS = rounds(30)
pytestmark = [pytest.mark.long, pytest.mark.enable_socket]


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_nothing_acknowledged_is_lost_or_doubled(store: str, tmp_path: Path) -> None:
    address = tmp_path / "book.db" if store == "sqlite" else database_for(tmp_path)
    with open_playbook(address) as book:
        for rule in ("VPN and a new device: decline", "Amount below 10: approve", "VPN: decline"):
            book.add_bullet(rule)
    where, log, dice = _where(address), tmp_path / "server.log", random.Random(18)
    server = start([*where, "--workers", "2"], log)
    with working(server.url) as seen:
        for _ in range(KILLS):
            served = len(seen.decisions)
            while len(seen.decisions) <= served + 5 and not seen.problems:
                time.sleep(0.01)
            time.sleep(dice.uniform(0.0, 1.0))
            server.kill()
            server = start([*where, "--workers", "2"], log, port=server.port)
        time.sleep(1)
    assert server.stop() == 0
    with open_playbook(address) as book:
        take_in_all(book)
        check_kept(book, seen)


def _where(address: str | Path) -> list[str]:
    return ["--database", str(address)] if "://" in str(address) else ["--playbook", str(address)]
