"""A circuit breaker: stops calling a server that is down until some time has passed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from acefraud.errors import ModelMalformed, ModelRefused, ModelUnavailable
from acefraud.llm.call import Call, Caller, Reply, Wrapper
from acefraud.llm.retry import OUTAGES


@dataclass(slots=True)
class _Circuit:
    """The state of one model on one server."""

    failures: int = 0
    open_until: float | None = None
    """When the model may be tried again; None while it works."""
    probing: bool = False


class CircuitBreaker(Wrapper):
    """Fails calls at once while their model is down, then lets a single call test whether it is back."""

    def __init__(
        self, caller: Caller, *, failures: int = 5, pause: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(caller)
        self._failures = failures
        self._pause = pause
        self._clock = clock
        self._circuits: dict[tuple[str, str], _Circuit] = {}

    async def send(self, call: Call) -> Reply:
        """The reply, or ModelUnavailable without sending anything if the model has failed too often."""
        circuit = self._circuits.setdefault((call.model, call.base_url), _Circuit())
        probe = self._admit(call, circuit)
        try:
            reply = await self._caller.send(call)
        except OUTAGES:
            self._note_outage(circuit, probe=probe)
            raise
        except (ModelRefused, ModelMalformed):
            self._note_answer(circuit)  # the server is up: it answered, even if with an error
            raise
        finally:
            if probe:
                circuit.probing = False
        self._note_answer(circuit)
        return reply

    def _admit(self, call: Call, circuit: _Circuit) -> bool:
        """Whether this call is the probe."""
        if circuit.open_until is None:
            return False
        left = circuit.open_until - self._clock()
        if left > 0 or circuit.probing:
            when = f"next try in {math.ceil(left)} s" if left > 0 else "a trial call is in flight"
            raise ModelUnavailable(
                f"{call.model} was not called: the last {circuit.failures} calls failed; {when}",
                retry_after=max(left, 0.0),
            )
        circuit.probing = True
        return True

    def _note_outage(self, circuit: _Circuit, *, probe: bool) -> None:
        circuit.failures += 1
        # Calls that were in flight when the circuit opened do not prolong the pause.
        if probe or (circuit.open_until is None and circuit.failures >= self._failures):
            circuit.open_until = self._clock() + self._pause

    @staticmethod
    def _note_answer(circuit: _Circuit) -> None:
        circuit.failures = 0
        circuit.open_until = None
