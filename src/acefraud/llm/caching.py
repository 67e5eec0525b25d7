"""Replies on disk: a call that was answered once is not sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from acefraud.llm.answers import AnswerFile
from acefraud.llm.calling import Call, Caller, Reply, Role
from acefraud.llm.metering import Meter

__all__ = ["AnswerFile", "Cached", "filed", "keys_of"]

_LOOK_AGAIN_SECONDS = 0.05


class Cached:
    """Answers from the file what is in it, and files what is not before it hands it on.

    Vectors are filed one by one, so of many texts only those never seen before are sent, in one call.
    """

    def __init__(self, caller: Caller, answers: AnswerFile, meter: Meter | None = None) -> None:
        self._caller = caller
        self._answers = answers
        self._meter = meter

    async def send(self, call: Call) -> Reply:
        """The reply, from the file where it can be."""
        if call.role is Role.EMBEDDING:
            return await self._embed(call)
        key = call.key
        await self._wait_for_others([key])
        known = self._answers.get([key]).get(key)
        if known is not None:
            return self._paid_before(call, known)
        reply = await self._caller.send(call)
        self._answers.put({key: reply})
        return reply

    async def _embed(self, call: Call) -> Reply:
        keys = {text: _one_text(call, text).key for text in call.texts}
        await self._wait_for_others(list(keys.values()))
        # Off the loop: unlike a single reply, thousands of vectors take their time.
        known = await asyncio.to_thread(self._answers.get, list(keys.values()))
        unseen = tuple(text for text, key in keys.items() if key not in known)
        if not unseen:
            return self._paid_before(call, _in_order(call, keys, known))
        reply = await self._caller.send(call.model_copy(update={"texts": unseen}))
        fresh = filed(call.model_copy(update={"texts": unseen}), reply)
        await asyncio.to_thread(self._answers.put, fresh)
        return reply.model_copy(update={"vectors": _in_order(call, keys, {**known, **fresh}).vectors})

    async def _wait_for_others(self, keys: Sequence[str]) -> None:
        """Wait for replies that another run has under way, or that a run which was killed left under way."""
        while self._answers.under_way(keys):
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    def _paid_before(self, call: Call, reply: Reply) -> Reply:
        if self._meter is not None:
            self._meter.note_cached(call.role)
        return reply.model_copy(update={"cached": True, "cost": 0.0})

    def forget(self, call: Call) -> None:
        """Drop a reply that turned out to be of no use, so that the call is sent again the next time."""
        self._answers.forget(*keys_of(call))

    async def close(self) -> None:
        """Close the file and what it stands before."""
        await self._caller.close()
        self._answers.close()


def keys_of(call: Call) -> list[str]:
    """What the reply to a call is filed under; of several texts, each vector has a key of its own."""
    embedding = call.role is Role.EMBEDDING
    return [_one_text(call, text).key for text in call.texts] if embedding else [call.key]


def filed(call: Call, reply: Reply) -> dict[str, Reply]:
    """The reply as it is filed."""
    if call.role is not Role.EMBEDDING:
        return {call.key: reply}
    return {key: Reply(vectors=(vector,)) for key, vector in zip(keys_of(call), reply.vectors, strict=True)}


def _one_text(call: Call, text: str) -> Call:
    return call.model_copy(update={"texts": (text,)})


def _in_order(call: Call, keys: Mapping[str, str], known: Mapping[str, Reply]) -> Reply:
    return Reply(vectors=tuple(known[keys[text]].vectors[0] for text in call.texts))
