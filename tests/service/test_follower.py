"""A new revision reaches every worker, also one that nobody asks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.postgres import database_for

from acefraud.service.threads import Follower
from acefraud.storage import open_playbook

pytestmark = pytest.mark.wide


@pytest.mark.enable_socket
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_a_worker_learns_of_what_another_has_changed(store: str, tmp_path: Path) -> None:
    address = tmp_path / "book.db" if store == "sqlite" else database_for(tmp_path)
    with open_playbook(address) as mine, open_playbook(address) as theirs:
        follower = Follower(mine)
        follower.start()
        try:
            for count in range(1, 4):
                theirs.add_bullet(f"Amount above {count}: decline")
                deadline = time.monotonic() + 10
                while len(mine.snapshot().bullets) < count and time.monotonic() < deadline:
                    time.sleep(0.01)
                assert mine.snapshot().revision == theirs.snapshot().revision
        finally:
            follower.stop()
            mine.close()
            follower.join()


def test_it_goes_on_after_the_store_failed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with open_playbook(tmp_path / "book.db") as mine:
        follower = Follower(mine)
        mine.close()
        follower.start()
        deadline = time.monotonic() + 10
        while "following the playbook failed" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)
        follower.stop()
        follower.join()

    assert "following the playbook failed" in caplog.text
