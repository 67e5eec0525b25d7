"""A load generator on loopback: as many clients as wanted, each with one request at a time, and little else to do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Load:
    """What clients saw."""

    requests: int
    failed: int
    """Answers other than 2xx."""
    seconds: float
    latencies: Sequence[float]
    """In seconds, of the requests that succeeded."""

    @property
    def per_second(self) -> float:
        """Requests answered with success per second."""
        return (self.requests - self.failed) / self.seconds

    def milliseconds(self, share: float) -> float:
        """The latency that a share of the requests stayed below."""
        return 1000 * float(np.quantile(np.array(self.latencies), share))


def post(path: str, body: bytes, headers: str = "") -> bytes:
    """A request as it goes over the wire."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class _Client(asyncio.Protocol):
    """Sends the next request once the last is answered."""

    def __init__(self, requests: Iterator[bytes], done: asyncio.Future[None]) -> None:
        self._requests = requests
        self._done = done
        self._buffer = b""
        self._sent = 0.0
        self.latencies: list[float] = []
        self.failed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)
            return
        self._sent = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        lowered = head.lower()
        start = lowered.index(b"content-length:") + len(b"content-length:")
        if len(body) < int(lowered[start:].split(b"\r\n", 1)[0]):
            return
        if head.startswith(b"HTTP/1.1 2"):
            self.latencies.append(time.perf_counter() - self._sent)
        else:
            self.failed += 1
        self._buffer = b""
        self._send()

    def connection_lost(self, problem: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(problem or ConnectionError("the server closed the connection"))


async def _run(host: str, port: int, requests: Sequence[bytes], clients: int) -> Load:
    loop, queue = asyncio.get_running_loop(), iter(requests)
    started = time.perf_counter()
    protocols = []
    waiting = []
    for _ in range(clients):
        done = loop.create_future()
        _, protocol = await loop.create_connection(lambda done=done: _Client(queue, done), host, port)  # type: ignore[misc]
        protocols.append(protocol)
        waiting.append(done)
    await asyncio.gather(*waiting)
    seconds = time.perf_counter() - started
    latencies = [latency for protocol in protocols for latency in protocol.latencies]
    return Load(len(requests), sum(each.failed for each in protocols), seconds, latencies)


def send_all(host: str, port: int, requests: Sequence[bytes], clients: int) -> Load:
    """Send requests from some clients at once, and wait for all answers."""
    return asyncio.run(_run(host, port, requests, clients))
