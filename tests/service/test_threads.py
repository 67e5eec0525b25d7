"""Work that takes long never keeps other work waiting."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from acefraud.errors import DuplicateRule
from acefraud.service.routes import bullets
from acefraud.service.routes import bullets as rules
from acefraud.service.threads import Threads

MANY = 45
"""More than any pool of threads has."""


def test_decisions_and_probes_do_not_wait_for_rules_that_are_admitted_or_previewed(
    admin: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, go_on = threading.Semaphore(0), threading.Event()

    def slow(*_: Any, **__: Any) -> Any:
        started.release()
        assert go_on.wait(60)
        raise DuplicateRule("the playbook already says this", bullet_id="")

    monkeypatch.setattr(bullets, "admit_rule", slow)
    monkeypatch.setattr(rules, "preview_rule", slow)
    order = {"id": "t1", "facts": {"amount": 3}}
    with ThreadPoolExecutor(2 * MANY + 4) as pool:
        curating = [pool.submit(admin.post, "/v1/bullets", json={"content": "VPN: decline"}) for _ in range(MANY)]
        previews = [pool.submit(admin.post, "/v1/rules:preview", json={"content": "VPN: decline"}) for _ in range(MANY)]
        try:
            assert started.acquire(timeout=20)
            answers = [
                pool.submit(admin.get, "/readyz"),
                pool.submit(admin.post, "/v1/score", json=order),
                pool.submit(admin.post, "/v1/decisions", json=order),
                pool.submit(admin.post, "/v1/decisions:batch", json={"transactions": [order]}),
            ]
            statuses = [answer.result(20).status_code for answer in answers]
            unanswered = sum(not each.done() for each in (*curating, *previews))
        finally:
            go_on.set()
        assert {each.result(20).status_code for each in (*curating, *previews)} == {409}

    assert statuses == [200] * 4
    assert unanswered == 2 * MANY


def test_a_caller_who_has_gone_leaves_the_thread_busy_until_it_is_done() -> None:
    threads, running, go_on = Threads("test", 1), threading.Event(), threading.Event()

    def work() -> None:
        running.set()
        go_on.wait(10)

    async def run() -> bool:
        gone = asyncio.create_task(threads.run(work))
        await asyncio.to_thread(running.wait, 10)
        gone.cancel()
        after = asyncio.create_task(threads.run(lambda: None))
        await asyncio.wait([gone, after], timeout=0.05)
        waited = not after.done()
        go_on.set()
        await after
        threads.close()
        return waited

    assert asyncio.run(run())
