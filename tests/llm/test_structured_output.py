"""One repair round, then an error; and the strictest format that a server takes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from acefraud.errors import ModelError, ModelMalformed, ModelRefused, ModelUnavailable
from acefraud.llm.call import Call, Message, Reply, ReplyFormat, Role
from acefraud.llm.client import ClientOptions, ModelClient
from acefraud.roles.model.model_role import MAX_PROBLEM, CachedCaller, ModelRole, usage_of
from acefraud.roles.model.replies import JudgeReply

GOOD = json.dumps({"is_correct": True, "confidence": 0.9, "reasoning": "It fits."})
BAD = "I would say that it is right."
OWN, KNOWN = "openai:mine", "openai:gpt-4o-mini"
NO_FORMAT = "status 400, response_format of type json_schema is not supported"


def call(model: str = OWN, base_url: str = "http://localhost:1/v1") -> Call:
    messages = (Message(role="user", content="Is it right?"),)
    return Call(role=Role.JUDGE, model=model, base_url=base_url, system="Judge.", messages=messages)


class Server:
    """Says what it is told to, one reply after another; the last one again and again."""

    def __init__(self, *said: str | ModelError, takes: Sequence[ReplyFormat] = tuple(ReplyFormat)) -> None:
        self.said = list(said)
        self.takes = takes
        self.sent: list[Call] = []
        self.forgotten: list[Call] = []

    async def send(self, call: Call) -> Reply:
        self.sent.append(call)
        if call.format not in self.takes:
            raise ModelRefused(NO_FORMAT)
        said = self.said.pop(0) if len(self.said) > 1 else self.said[0]
        if isinstance(said, ModelError):
            raise said
        return Reply(text=said, input_tokens=100, output_tokens=10, cost=0.25)

    def forget(self, call: Call) -> None:
        self.forgotten.append(call)

    async def close(self) -> None:
        pass

    @property
    def formats(self) -> list[str]:
        return [call.format.value for call in self.sent]


def unchanged(reply: JudgeReply, _: bool) -> JudgeReply:
    return reply


def role(client: CachedCaller, asked: Call) -> ModelRole:
    return ModelRole(client, asked.model, base_url=asked.base_url)


def ask(server: Server, asked: Call | None = None) -> tuple[JudgeReply, list[Reply]]:
    asked = asked or call()
    return asyncio.run(role(server, asked).ask(asked, JudgeReply, unchanged))


def failing(server: Server, read: Callable[[JudgeReply, bool], object] = unchanged) -> str:
    with pytest.raises(ModelMalformed) as raised:
        asyncio.run(role(server, call()).ask(call(), JudgeReply, read))
    return str(raised.value)


def test_a_good_reply_takes_one_call() -> None:
    server = Server(GOOD)
    answer, replies = ask(server)
    assert answer.is_correct
    assert len(server.sent) == 1
    assert (usage_of(replies).input_tokens, usage_of(replies).cost) == (100, 0.25)


def test_a_bad_reply_is_asked_for_once_more_with_what_was_wrong() -> None:
    server = Server(BAD, GOOD)
    _, replies = ask(server)
    first, second = server.sent
    ((asked,), (repair,)) = (first.messages, second.messages)
    assert repair.role == "user"
    assert repair.content.startswith(f"{asked.content}\n\nYour last reply cannot be used.")
    assert f"<reply>\n{BAD}\n</reply>\n<problem>\nthe reply is not a JSON object" in repair.content
    assert (second.system, second.model, second.base_url) == (first.system, first.model, first.base_url)
    assert server.forgotten == []
    usage = usage_of(replies)
    assert (usage.input_tokens, usage.output_tokens, usage.cost) == (200, 20, 0.5)


def test_two_bad_replies_are_an_error_and_both_are_forgotten() -> None:
    server = Server(BAD)
    said = failing(server)
    assert OWN in said
    assert "judge" in said
    assert "the reply is not a JSON object" in said
    assert len(server.sent) == 2
    assert server.forgotten == server.sent


def test_a_reply_that_makes_no_sense_is_repaired_too() -> None:
    def check(reply: JudgeReply, _: bool) -> None:
        raise ValueError("reasoning: <b>too\nshort</b>")

    server = Server(GOOD)
    assert failing(server, check).endswith("reasoning: ‹b›too short‹/b›")
    assert "reasoning: ‹b›too short‹/b›" in server.sent[1].messages[-1].content


def test_the_problem_is_cut_to_length() -> None:
    def check(reply: JudgeReply, _: bool) -> None:
        raise ValueError("\ud800" * 100_000)

    server = Server(GOOD)
    assert len(failing(server, check)) < MAX_PROBLEM + 200
    assert len(server.sent[1].messages[-1].content) < MAX_PROBLEM + 500
    assert failing(server, check).encode()


@pytest.mark.parametrize("error", [ModelUnavailable("down"), ModelMalformed("empty"), ModelRefused("no")])
def test_an_error_of_the_call_is_not_repaired(error: ModelError) -> None:
    server = Server(error)
    with pytest.raises(type(error), match=str(error)):
        ask(server)
    assert len(server.sent) == 1


def options(path: Path) -> ClientOptions:
    return ClientOptions(cache=path / "replies.db", attempts=1)


async def _through_a_cache(server: Server, path: Path) -> tuple[JudgeReply, list[Reply]]:
    async with ModelClient(options(path), caller=server) as client:
        return await role(client, call()).ask(call(), JudgeReply, unchanged)


def test_after_two_bad_replies_another_run_asks_again(tmp_path: Path) -> None:
    server = Server(BAD, BAD, GOOD)
    with pytest.raises(ModelMalformed):
        asyncio.run(_through_a_cache(server, tmp_path))
    answer, replies = asyncio.run(_through_a_cache(server, tmp_path))
    assert answer.is_correct
    assert not usage_of(replies).cached
    assert len(server.sent) == 3


def test_a_repaired_answer_is_kept(tmp_path: Path) -> None:
    server = Server(BAD, GOOD, BAD)
    first, _ = asyncio.run(_through_a_cache(server, tmp_path))
    again, replies = asyncio.run(_through_a_cache(server, tmp_path))
    assert len(server.sent) == 2
    assert again == first
    usage = usage_of(replies)
    assert (usage.cached, usage.cost) == (True, 0.0)


def test_known_models_get_a_schema_and_others_are_asked_for_json() -> None:
    known, own = Server(GOOD), Server(GOOD)
    ask(known, call(KNOWN, ""))
    ask(own)
    assert (known.formats, own.formats) == (["schema"], ["json"])
    assert list((known.sent[0].json_schema or {})["properties"]) == ["is_correct", "confidence", "reasoning"]
    assert own.sent[0].json_schema is None
    own_server = Server(GOOD)
    ask(own_server, call(KNOWN))
    assert own_server.formats == ["json"]


def test_a_server_that_takes_no_format_is_asked_without_and_that_is_remembered() -> None:
    async def play(server: Server) -> None:
        judge = role(server, call(KNOWN, ""))
        for _ in range(2):
            answer, _replies = await judge.ask(call(KNOWN, ""), JudgeReply, unchanged)
            assert answer.is_correct

    server = Server(GOOD, takes=[ReplyFormat.TEXT])
    asyncio.run(play(server))
    assert server.formats == ["schema", "json", "text", "text"]
    half = Server(GOOD, takes=[ReplyFormat.JSON, ReplyFormat.TEXT])
    asyncio.run(play(half))
    assert half.formats == ["schema", "json", "json"]


def test_the_repair_is_asked_for_in_the_format_that_worked() -> None:
    server = Server(BAD, GOOD, takes=[ReplyFormat.TEXT])
    assert ask(server)[0].is_correct
    assert server.formats == ["json", "text", "text"]
    assert [len(sent.messages) for sent in server.sent] == [1, 1, 1]


def test_a_server_that_takes_nothing_at_all() -> None:
    server = Server(GOOD, takes=[])
    with pytest.raises(ModelRefused, match="response_format"):
        ask(server, call(KNOWN, ""))
    assert server.formats == ["schema", "json", "text"]


@pytest.mark.parametrize("said", ["status 401, Incorrect API key provided", "status 404, The model does not exist"])
def test_other_refusals_do_not_step_down(said: str) -> None:
    server = Server(ModelRefused(said))
    with pytest.raises(ModelRefused, match=said):
        ask(server, call(KNOWN, ""))
    assert server.formats == ["schema"]


def test_the_cost_is_known_where_all_costs_are() -> None:
    paid, free, unknown = Reply(cost=0.5), Reply(cost=0.0, cached=True), Reply()
    assert usage_of([paid, free]).cost == 0.5
    assert not usage_of([paid, free]).cached
    assert usage_of([free, free]).cached
    assert usage_of([paid, unknown]).cost is None
