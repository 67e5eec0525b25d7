"""A small decision service on loopback, which speaks the protocol and fails on purpose."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

KEY = "ace_0123456789ab_" + "k" * 43
TIME = "2025-01-06T09:30:00+00:00"
PAGE = 2
EXPLANATION: dict[str, Any] = {
    "threshold": 0.5,
    "base": -1.0,
    "facts": {"vpn": True},
    "unread": [],
    "stages": [{"stage": "quality", "left": 3}],
    "scores": [],
    "model": "embedded",
    "probability_from": "odds",
    "fallback": "",
    "explained": True,
    "outcome": None,
    "outcome_source": None,
    "outcome_time": None,
    "correct": None,
}
BULLET: dict[str, Any] = {
    "id": "b-1",
    "content": "VPN: decline",
    "condition": "vpn is true",
    "english": "VPN",
    "status": "active",
    "source": "manual",
    "node": "fraud_detection",
    "argues": "DECLINE",
    "weight": None,
    "policy": None,
    "evidence": None,
    "claim": None,
    "counters": {"helpful": 0, "harmful": 0, "selected": 0, "fired": 0, "fired_frauds": 0},
    "snoozes": [],
    "contradicts": [],
    "added_at": TIME,
}
CHANGE: dict[str, Any] = {
    "revision": 1,
    "at": TIME,
    "who": "ana",
    "reason": "",
    "kind": "bullet_added",
    "subject": "b-1",
    "what": "added",
    "content": "VPN: decline",
}
ROLLED_BACK: dict[str, Any] = {
    "retired": [],
    "edited": [],
    "moved": [],
    "weights": 0,
    "also": [],
    "changes_nothing": True,
    "preview": None,
}


@dataclass(frozen=True)
class Failure:
    """What to do in place of an answer."""

    status: int = 0
    """0 drops the connection."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    after_work: bool = False
    """Whether the request is carried out all the same."""
    hang: bool = False
    """Wait until the server is closed, and answer nothing."""


DROP, DROP_AFTER_WORK, HANG = Failure(), Failure(after_work=True), Failure(hang=True)


@dataclass(frozen=True)
class Received:
    """A request as it arrived."""

    method: str
    path: str
    params: dict[str, str]
    headers: Mapping[str, str]
    body: Any


class Refused(Exception):
    """A problem to answer with."""

    def __init__(self, status: int, title: str, detail: str = "", errors: Sequence[dict[str, str]] = ()) -> None:
        self.status = status
        self.problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
        if errors:
            self.problem["errors"] = list(errors)


class LoopbackService:
    """The service: what it was sent, what it keeps, and the failures still to come."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.failures: list[Failure] = []
        self.answers: dict[str, tuple[Any, dict[str, Any]]] = {}
        self.decided: list[dict[str, Any]] = []
        self.outcomes: dict[str, Any] = {}
        self.bullets: dict[str, dict[str, Any]] = {}
        self.answer: Any = None
        """Answered to anything, if it is not None."""
        self.closing = threading.Event()
        service = self

        class Handler(_Handler):
            loopback = service

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def respond(self, request: Received) -> tuple[int, Any]:
        """The status and the content of an answer."""
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused(401, "Unauthorized", f"no such key: {request.headers.get('Authorization', 'none')}")
        if self.answer is not None:
            return 200, self.answer
        match request.method, request.path.removeprefix("/v1/").split("/"):
            case "POST", ["decisions"]:
                content = self._decide(request)
            case "POST", ["decisions:batch"]:
                content = {"decisions": [self._decision(each) for each in request.body["transactions"]]}
            case "POST", ["score"]:
                content = _scored(request.body)
            case "GET", ["decisions"]:
                content = _page(self.decided, request.params)
            case "GET", ["decisions", name]:
                (found,) = (each for each in self.decided if each["decision_id"] == name)
                content = {**found, **EXPLANATION}
            case "POST", ["outcomes"]:
                content = {"outcomes": [self._hear(each) for each in request.body["outcomes"]]}
            case "GET", ["outcomes", "pending"]:
                content = _page(self.decided, request.params)
            case "GET", ["bullets", name, "history"]:
                events = [{**CHANGE, "subject": unquote(name), "revision": n} for n in range(3)]
                content = _page(events, request.params)
            case _, ["bullets", *_] | ["playbook", *_] | ["playbook:rollback"]:
                content = self._curate(request)
            case _:
                raise Refused(404, "Not Found", f"there is no route {request.method} {request.path}")
        return 202 if request.path == "/v1/outcomes" else 200, content

    def _decide(self, request: Received) -> dict[str, Any]:
        key = request.headers.get("Idempotency-Key", f"transaction {request.body['id']}")
        if key in self.answers:
            body, answer = self.answers[key]
            if body != request.body:
                raise Refused(409, "Conflict", "this key came with another transaction")
            return answer
        answer = self._decision(request.body)
        self.answers[key] = request.body, answer
        return answer

    def _decision(self, transaction: dict[str, Any]) -> dict[str, Any]:
        if "amount" in transaction.get("facts", {}) and transaction["facts"]["amount"] < 0:
            fault = {"field": "facts.amount", "message": "expected a positive number"}
            raise Refused(422, "Unprocessable Content", "the transaction cannot be read", [fault])
        decision = {**_scored(transaction), "decision_id": f"d-{len(self.decided) + 1}"}
        self.decided.append(decision)
        return decision

    def _hear(self, outcome: dict[str, Any]) -> dict[str, str]:
        known = outcome["id"] in self.outcomes
        self.outcomes[outcome["id"]] = outcome
        return {"id": outcome["id"], "status": "known" if known else "received"}

    def _curate(self, request: Received) -> Any:
        match request.method, request.path.removeprefix("/v1/").split("/"):
            case "POST", ["bullets"]:
                name = f"b {len(self.bullets) + 1}/x"
                self.bullets[name] = {**BULLET, "id": name, "content": request.body["content"]}
                return _admitted(self.bullets[name])
            case "PATCH", ["bullets", name]:
                self.bullets[unquote(name)] |= {key: request.body[key] for key in request.body if key != "reason"}
                return _admitted(self.bullets[unquote(name)])
            case "GET", ["bullets", name]:
                return {**self.bullets[unquote(name)], "history": [CHANGE], "history_next": None}
            case "GET", ["playbook"]:
                return _page(list(self.bullets.values()), request.params)
            case "GET", ["playbook", "changes"]:
                return _page([{**CHANGE, "revision": n} for n in range(5)], request.params)
        return {**ROLLED_BACK, "revision": request.body["revision"]}


def _scored(transaction: dict[str, Any]) -> dict[str, Any]:
    reasons = [{"bullet_id": "b-1", "content": "VPN: decline", "weight": 1.5}]
    return {
        "transaction_id": transaction["id"],
        "verdict": "DECLINE",
        "probability": 0.75,
        "reasons": reasons,
        "playbook_revision": 3,
        "time": TIME,
    }


def _admitted(bullet: dict[str, Any]) -> dict[str, Any]:
    return {"bullet": bullet, "remarks": [], "preview": None}


def _page(items: list[Any], params: Mapping[str, str]) -> dict[str, Any]:
    start = int(params.get("cursor", "0"))
    more = start + PAGE < len(items)
    return {"items": items[start : start + PAGE], "next": str(start + PAGE) if more else None}


class _Handler(BaseHTTPRequestHandler):
    loopback: LoopbackService
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        service, request = self.loopback, self._request()
        service.received.append(request)
        failure = service.failures.pop(0) if service.failures else None
        if failure is not None and failure.hang:
            service.closing.wait(30)
        if failure is None or failure.after_work:
            try:
                status, content = service.respond(request)
            except Refused as refused:
                status, content = refused.status, refused.problem
        if failure is None:
            self._send(status, json.dumps(content).encode(), {})
        elif failure.status:
            self._send(failure.status, failure.body, failure.headers)
        else:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = handle_any  # noqa: N815  # names of the standard library

    def _request(self) -> Received:
        split = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        content = json.loads(body) if body else None
        return Received(self.command, split.path, dict(parse_qsl(split.query)), dict(self.headers), content)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response_only(status)  # without a date of its own
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
