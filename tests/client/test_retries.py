"""When a request is sent again, and when it is not."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.conftest import Time
from tests.client.loopback_service import BULLET, DROP, DROP_AFTER_WORK, HANG, ROLLED_BACK, Failure, LoopbackService

from acefraud.client import Retries
from acefraud.errors import ConfigurationError, ServiceError, ServiceUnavailable

pytestmark = pytest.mark.enable_socket
PAYMENT = {"id": "t1", "facts": {"amount": 900}}
BUSY = Failure(503, {"Retry-After": "2"}, json.dumps({"title": "Busy", "detail": "the store is away"}).encode())


@pytest.mark.parametrize(
    "failure",
    [DROP, DROP_AFTER_WORK, Failure(429), Failure(502), Failure(503), Failure(504), Failure(503, after_work=True)],
    ids=["drop", "drop after work", "429", "502", "503", "504", "503 after work"],
)
def test_an_outage_is_survived_and_decides_once(client: Any, service: LoopbackService, failure: Failure) -> None:
    for number, key in enumerate((None, "k1"), start=1):
        service.failures, service.received = [failure, failure], []
        assert client.decide(PAYMENT, idempotency_key=key).decision_id == f"d-{number}"
        assert [request.headers.get("Idempotency-Key") for request in service.received] == [key] * 3
        assert len(service.decided) == number


def test_outcomes_are_sent_again_with_the_same_ids(client: Any, service: LoopbackService) -> None:
    service.failures = [DROP_AFTER_WORK]
    (receipt,) = client.report({"transaction_id": "t1", "label": "fraud"})
    assert receipt.status == "known"
    assert service.received[0].body == service.received[1].body
    assert len(service.outcomes) == 1


def test_a_page_in_the_middle_is_asked_for_again(client: Any, service: LoopbackService) -> None:
    client.decide_batch([{**PAYMENT, "id": f"t{n}"} for n in range(5)])
    service.failures = [Failure(503), DROP]
    assert [decision.transaction_id for decision in client.decisions()] == ["t0", "t1", "t2", "t3", "t4"]


def test_no_answer_in_time_is_an_outage(connect: Callable[..., Any], service: LoopbackService) -> None:
    client = connect(timeout=0.2)
    service.failures = [HANG]
    assert client.decide(PAYMENT).decision_id == "d-1"
    service.failures = [HANG] * 2
    with pytest.raises(ServiceUnavailable, match=r"no answer to POST /v1/score after 2 attempts \(ReadTimeout\)"):
        connect(timeout=0.2, retries=Retries(attempts=2)).score(PAYMENT)


def test_pauses_grow_and_are_jittered(connect: Callable[..., Any], service: LoopbackService, time: Time) -> None:
    client = connect(retries=Retries(attempts=6, first_pause=1.0, longest_pause=4.0))
    service.failures = [DROP] * 5
    client.decide(PAYMENT)
    assert len(time.pauses) == 5
    for pause, longest in zip(time.pauses, (1, 2, 4, 4, 4), strict=True):
        assert longest / 2 <= pause <= longest
    assert len({round(pause / longest, 6) for pause, longest in zip(time.pauses, (1, 2, 4, 4, 4), strict=True)}) == 5


def test_a_pause_is_as_long_as_the_service_asks(client: Any, service: LoopbackService, time: Time) -> None:
    date = {"Retry-After": "Mon, 06 Jan 2025 09:30:07 GMT", "Date": "Mon, 06 Jan 2025 09:30:00 GMT"}
    service.failures = [BUSY, Failure(429, {"Retry-After": "3.5"}), Failure(503, date)]
    client.decide(PAYMENT)
    assert time.pauses == [2.0, 3.5, 7.0]


@pytest.mark.parametrize("asked", ["soon", "-5", "nan", "inf", "", "Mon, 06 Jan 2025 09:30:07 GMT"])
def test_a_wait_that_cannot_be_read_is_no_wait(client: Any, service: LoopbackService, time: Time, asked: str) -> None:
    service.failures = [Failure(503, {"Retry-After": asked})]
    client.decide(PAYMENT)
    (pause,) = time.pauses
    assert 0.1 <= pause <= 0.2


def test_the_last_failure_is_raised(connect: Callable[..., Any], service: LoopbackService, time: Time) -> None:
    client = connect(retries=Retries(attempts=3))
    service.failures = [DROP, DROP, BUSY, DROP]
    with pytest.raises(ServiceUnavailable, match="HTTP 503, Busy: the store is away") as caught:
        client.decide(PAYMENT)
    assert (caught.value.status, caught.value.retry_after) == (503, 2.0)
    assert len(service.received) == 3
    assert len(time.pauses) == 2


def test_no_attempt_begins_after_the_last_second(
    connect: Callable[..., Any], service: LoopbackService, time: Time
) -> None:
    client = connect(retries=Retries(attempts=100, seconds=7))
    service.failures = [BUSY] * 100
    with pytest.raises(ServiceUnavailable):
        client.decide(PAYMENT)
    assert time.pauses == [2.0, 2.0, 2.0]
    service.failures = [Failure(503, {"Retry-After": "3600"})]
    time.pauses.clear()
    with pytest.raises(ServiceUnavailable) as caught:
        client.decide(PAYMENT)
    assert (time.pauses, caught.value.retry_after) == ([], 3600.0)


def test_a_service_that_cannot_be_reached(connect: Callable[..., Any], time: Time) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(
            ServiceUnavailable, match=rf"^{url}: no answer to POST /v1/decisions after 4 attempts"
        ) as caught:
            connect(url=url, retries=Retries(attempts=4)).decide(PAYMENT)
        assert caught.value.status is None
        assert len(time.pauses) == 3
        with pytest.raises(
            ServiceUnavailable, match=r"\(ConnectError\)$"
        ):  # nothing was sent, so any call is tried again
            connect(url=url, retries=Retries(attempts=4)).add_rule("VPN: decline")
        assert len(time.pauses) == 6


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 500])
def test_what_would_fail_again_is_not_sent_again(
    client: Any, service: LoopbackService, time: Time, status: int
) -> None:
    service.failures = [Failure(status)]
    with pytest.raises(ServiceError, match=f"HTTP {status}") as caught:
        client.decide(PAYMENT)
    assert not isinstance(caught.value, ServiceUnavailable)
    assert len(service.received) == 1
    assert not time.pauses


# --- changes of the playbook --------------------------------------------------------------------------------------

CHANGES = {
    "add_rule": lambda client: client.add_rule("VPN: decline"),
    "edit_rule": lambda client: client.edit_rule("b-1", "VPN: decline", reason="w"),
    "set_status": lambda client: client.set_status("b-1", "pinned", reason="w"),
    "change_list": lambda client: client.change_list("watched", add=["A"], reason="w"),
    "put_list": lambda client: client.put_list("watched", reason="w"),
    "rollback": lambda client: client.rollback(2, reason="w"),
    "set_threshold": lambda client: client.set_threshold(0.6, reason="w"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_that_may_have_arrived_is_not_sent_again(client: Any, service: LoopbackService, change: Any) -> None:
    service.failures = [DROP]
    with pytest.raises(ServiceUnavailable, match="it may have been done, so look before you send it again"):
        change(client)
    service.failures = [Failure(504)]
    with pytest.raises(ServiceUnavailable, match="HTTP 504"):
        change(client)
    assert len(service.received) == 2


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_that_was_turned_away_is_sent_again(client: Any, service: LoopbackService, change: Any) -> None:
    watched = {"name": "watched", "about": "", "feed": None, "count": 1}
    threshold = {"threshold": 0.6, "base_rate": None, "cases": 0, "review": None, "words": ""}
    service.answer = {"bullet": BULLET, "remarks": [], **watched, **threshold, **ROLLED_BACK, "revision": 2}
    service.failures = [Failure(429, {"Retry-After": "1"})]
    change(client)
    assert len(service.received) == 2


@pytest.mark.parametrize(
    "options", [{"attempts": 0}, {"seconds": -1}, {"first_pause": -1}, {"longest_pause": float("nan")}]
)
def test_limits_that_are_none(options: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(options))}: expected at least"):
        Retries(**options)
