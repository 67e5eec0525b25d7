"""`python -m benchmarks stream`: how soon `acefraud decide -` answers a steady stream of lines, and its memory.

The latency of a line counts from the moment it was due, not from when it could be written. So a stream that is too slow
and makes its writer wait does not look quick.
"""

from __future__ import annotations

import json as jsonlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path
from threading import Thread
from typing import IO, Annotated, Any

import numpy as np
import typer

from acefraud import Learner, Transaction, load_dataset, open_playbook
from acefraud.errors import AcefraudError
from benchmarks.console import JsonOption, line, print_json

EARLY = 10.0
"""Seconds after which memory is measured for the first time."""


def stream(
    rate: Annotated[float, typer.Option(min=1, help="Lines per second.")] = 500,
    seconds: Annotated[float, typer.Option(min=1, help="How long to send them.")] = 60,
    batch_ms: Annotated[int, typer.Option(min=0, help="Passed on to `acefraud decide`.")] = 0,
    texts: Annotated[bool, typer.Option("--texts", help="Send texts in place of records with facts.")] = False,
    json: JsonOption = False,
) -> None:
    """Measure the **latency** of `acefraud decide -` on a steady stream of lines, and its memory.

    python -m benchmarks stream --rate 500 --seconds 60
    """
    with tempfile.TemporaryDirectory(prefix="acefraud-stream-") as folder:
        book = Path(folder) / "book.db"
        world = load_dataset("complex_fraud_detection")
        with open_playbook(book) as opened:
            Learner(opened).study(world)
        cases = [case.transaction for case in world.test]
        found = measure(book, lines_of(cases, texts=texts), rate=rate, seconds=seconds, batch_ms=batch_ms)
    if json:
        print_json(found)
        return
    latency = found["milliseconds"]
    line(f"{found['sent']:,} lines sent at {rate:g} per second, {found['answered']:,} answered, {found['bad']:,} bad")
    line(f"the last answer came {found['behind_seconds']:.2f} s after the last line was due")
    line("latency " + ", ".join(f"{name} {value:,.1f} ms" for name, value in latency.items()))
    line(f"processor time {found['processor_milliseconds_per_line']:.2f} ms per line")
    line(f"memory {_megabytes(found['memory_early'])} after {EARLY:g} s, {_megabytes(found['memory_end'])} at the end")


def lines_of(transactions: list[Transaction], *, texts: bool) -> Iterator[bytes]:
    """Endless lines of JSON, each with an id of its own."""
    for number, each in zip(count(), cycle(transactions), strict=False):
        content: dict[str, Any] = {"text": each.text} if texts else {"facts": each.facts}
        time = each.time and each.time.isoformat()
        yield jsonlib.dumps({"id": f"s{number}", "time": time, **content}).encode() + b"\n"


def measure(book: Path, lines: Iterator[bytes], *, rate: float, seconds: float, batch_ms: int = 0) -> dict[str, Any]:
    """Send lines to a process at a steady rate and time its answers. The first line is sent before, to warm up."""
    arguments = ["decide", "-", "--json", "--playbook", str(book), "--batch-ms", str(batch_ms)]
    command = [sys.executable, "-c", "from acefraud.cli import main; main()", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(next(lines))
        process.stdin.flush()
        _answer(process.stdout)
        processor = processor_seconds(process.pid)
        began = time.perf_counter()
        sent = round(rate * seconds)
        writer = Thread(target=_send, args=(process.stdin, lines, sent, rate, began), daemon=True)
        writer.start()
        latencies: list[float] = []
        bad = 0
        memory_early: int | None = None
        for index in range(sent):
            bad += _answer(process.stdout).startswith(b'{"line"')
            now = time.perf_counter() - began
            latencies.append(now - index / rate)
            if memory_early is None and now >= EARLY:
                memory_early = memory_of(process.pid)
        processor = processor_seconds(process.pid) - processor
        memory_end = memory_of(process.pid)
        writer.join()
        process.stdin.close()
    low, high, most = (float(1000 * figure) for figure in np.quantile(latencies, [0.5, 0.99, 1.0]))
    return {
        "sent": sent,
        "answered": len(latencies),
        "bad": bad,
        "behind_seconds": latencies[-1],
        "milliseconds": {"p50": low, "p99": high, "max": most},
        "processor_milliseconds_per_line": 1000 * processor / sent,
        "memory_early": memory_early,
        "memory_end": memory_end,
    }


def _answer(pipe: IO[bytes]) -> bytes:
    answer = pipe.readline()
    if not answer:
        raise AcefraudError("`acefraud decide` ended early")
    return answer


def _send(pipe: IO[bytes], lines: Iterator[bytes], number: int, rate: float, began: float) -> None:
    for index in range(number):
        time.sleep(max(0.0, began + index / rate - time.perf_counter()))
        pipe.write(next(lines))
        pipe.flush()


def memory_of(process_id: int) -> int:
    """The memory of a process in bytes, as Linux tells it."""
    told = Path(f"/proc/{process_id}/status").read_text()
    return next(1024 * int(row.split()[1]) for row in told.splitlines() if row.startswith("VmRSS:"))


def processor_seconds(process_id: int) -> float:
    """The processor time of a process so far, as Linux tells it."""
    user, system = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _megabytes(size: int | None) -> str:
    return "not known" if size is None else f"{size / 1_000_000:,.0f} MB"
