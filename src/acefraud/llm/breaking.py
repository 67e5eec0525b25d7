"""Not asking a server that is down, until some time has passed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from acefraud.errors import ConfigurationError, ModelMalformed, ModelRefused, ModelUnavailable
from acefraud.llm.calling import Call, Caller, Reply
from acefraud.llm.retrying import OUTAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerOptions:
    """After how many failures in a row to stop asking, and for how many seconds."""

    failures: int = 5
    pause: float = 30.0

    def __post_init__(self) -> None:
        if self.failures < 1 or self.pause < 0:
            raise ConfigurationError("a breaker opens after at least one failure, for a time that is not negative")


@dataclass(slots=True)
class _Line:
    """What is known of one model on one server."""

    failures: int = 0
    closed_until: float | None = None
    """When it may be tried again; None while it works."""
    probing: bool = False


class Breaker:
    """Fails calls at once while their model is down, then lets a single one find out whether it is back."""

    def __init__(
        self,
        caller: Caller,
        options: BreakerOptions | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._caller = caller
        self._options = options or BreakerOptions()
        self._clock = clock
        self._lines: dict[tuple[str, str], _Line] = {}

    async def send(self, call: Call) -> Reply:
        """The reply, or ModelUnavailable without asking where the model has just failed too often."""
        line = self._lines.setdefault((call.model, call.base_url), _Line())
        probe = self._admit(call, line)
        try:
            reply = await self._caller.send(call)
        except OUTAGES:
            self._note_outage(line, probe=probe)
            raise
        except (ModelRefused, ModelMalformed):
            self._note_answer(line)  # somebody is there, whatever he says
            raise
        finally:
            if probe:
                line.probing = False
        self._note_answer(line)
        return reply

    def _admit(self, call: Call, line: _Line) -> bool:
        """Whether this call is the one that probes."""
        if line.closed_until is None:
            return False
        left = line.closed_until - self._clock()
        if left > 0 or line.probing:
            when = f"next try in {math.ceil(left)} s" if left > 0 else "one call is finding out whether it is back"
            raise ModelUnavailable(
                f"{call.model} was not tried: {line.failures} calls in a row failed; {when}",
                retry_after=max(left, 0.0),
            )
        line.probing = True
        return True

    def _note_outage(self, line: _Line, *, probe: bool) -> None:
        line.failures += 1
        # Calls that were under way when the line was closed do not lengthen the pause.
        if probe or (line.closed_until is None and line.failures >= self._options.failures):
            line.closed_until = self._clock() + self._options.pause

    @staticmethod
    def _note_answer(line: _Line) -> None:
        line.failures = 0
        line.closed_until = None

    async def close(self) -> None:
        """Close what it stands before."""
        await self._caller.close()
