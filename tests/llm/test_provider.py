"""Calls over real HTTP: what is sent, what is read, and which error each failure becomes."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from acefraud.errors import (
    ConfigurationError,
    ModelError,
    ModelMalformed,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from acefraud.llm.call import Call, Message, Reply, ReplyFormat, Role
from acefraud.llm.provider import ProviderCaller, translated

pytestmark = [pytest.mark.wide, pytest.mark.enable_socket]

Answer = Callable[["Handler"], None]
SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "number"}}, "required": ["b", "a"]}


class Handler(BaseHTTPRequestHandler):
    """Records each request and answers as its server is told to."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, body, dict(self.headers)))
        self.server.answer(self)

    def reply(self, status: int, body: bytes, *, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.answer: Answer = plain("yes")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def server(running: Server) -> Server:
    running.requests.clear()
    running.answer = plain("yes")
    return running


class Sender:
    """Sends over one loop and the connections it keeps."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._caller = ProviderCaller(10.0)

    def __call__(self, call: Call) -> Reply:
        return self._runner.run(self._caller.send(call))

    def error(self, call: Call) -> ModelError:
        with pytest.raises(ModelError) as raised:
            self(call)
        return raised.value

    def close(self) -> None:
        self._runner.run(self._caller.close())


@pytest.fixture(scope="module")
def send(running: Server) -> Iterator[Sender]:
    with asyncio.Runner() as runner:
        sender = Sender(runner)
        yield sender
        sender.close()


def said(status: int, body: object, **headers: str) -> Answer:
    return lambda handler: handler.reply(status, json.dumps(body).encode(), **headers)


def completion(message: dict[str, Any], finish: str = "stop", **choice: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}, **choice}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def plain(text: str | None, finish: str = "stop", **choice: Any) -> Answer:
    return said(200, completion({"content": text}, finish, **choice))


def vectors(*some: list[float]) -> Answer:
    data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(some)]
    usage = {"prompt_tokens": 5, "total_tokens": 5}
    return said(200, {"object": "list", "model": "m", "data": data, "usage": usage})


def error(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "some_error", "code": code, "param": None}}


def chat(server: Server, **given: Any) -> Call:
    given = {"role": Role.JUDGE, "model": "openai:m", "base_url": server.url, **given}
    return Call(messages=(Message(role="user", content="Is it?"),), **given)


def embedding(server: Server, *texts: str) -> Call:
    return Call(role=Role.EMBEDDING, model="openai:m", base_url=server.url, texts=texts)


def test_what_is_sent(send: Sender, server: Server) -> None:
    turns = (Message(role="user", content="Is it?"), Message(role="user", content="Yes or no?"))
    call = Call(role=Role.JUDGE, model="openai:m", base_url=server.url, system="Judge.", messages=turns, max_tokens=77)
    assert send(call) == Reply(text="yes", input_tokens=11, output_tokens=7)
    ((path, body, _),) = server.requests
    assert path == "/v1/chat/completions"
    assert body.pop("max_completion_tokens") == 77
    assert body.pop("stream") is False
    assert body == {
        "model": "m",
        "max_tokens": 77,  # for servers that know the older name only
        "temperature": 0.0,
        "messages": [
            {"role": "system", "content": "Judge."},
            {"role": "user", "content": "Is it?"},
            {"role": "user", "content": "Yes or no?"},
        ],
    }


def test_the_form_that_is_asked_for(send: Sender, server: Server) -> None:
    for form in ReplyFormat:
        send(chat(server, format=form, json_schema=SCHEMA))
    schema, loose, text = (body for _, body, _ in server.requests)
    assert schema["response_format"]["type"] == "json_schema"
    assert list(schema["response_format"]["json_schema"]["schema"]["properties"]) == ["b", "a"]
    assert loose["response_format"] == {"type": "json_object"}
    assert "response_format" not in text
    assert schema["messages"] == loose["messages"] == text["messages"]  # nothing is added to the prompt


def test_a_reasoning_model_gets_no_sampling_parameters(send: Sender, server: Server) -> None:
    for model in ("openai:gpt-5", "openai:o3-mini", "openai:gpt-5.1"):  # warnings would fail this test
        send(chat(server, model=model, top_logprobs=5))
    assert ["temperature" in body for _, body, _ in server.requests] == [False, False, True]


def test_log_probabilities_are_read(send: Sender, server: Server) -> None:
    top = [{"token": "DEC", "logprob": -0.2, "bytes": None}, {"token": "APP", "logprob": -1.7, "bytes": None}]
    content = [
        {"token": "DEC", "logprob": -0.2, "bytes": None, "top_logprobs": top},
        {"token": "LINE", "logprob": 0.0, "bytes": None, "top_logprobs": []},
    ]
    server.answer = plain("DECLINE", logprobs={"content": content, "refusal": None})
    reply = send(chat(server, top_logprobs=5))
    ((_, body, _),) = server.requests
    assert (body["logprobs"], body["top_logprobs"]) == (True, 5)
    assert [(each.token, each.logprob, each.others) for each in reply.logprobs] == [
        ("DEC", -0.2, {"APP": -1.7}),
        ("LINE", 0.0, {}),
    ]
    server.answer = plain("DECLINE")
    assert send(chat(server, top_logprobs=5)).logprobs == ()


def test_lone_surrogates_are_replaced(send: Sender, server: Server) -> None:
    content = [{"token": "\ud83d", "logprob": 0.0, "top_logprobs": [{"token": "no", "logprob": float("-inf")}]}]
    server.answer = plain("half \ud83d", logprobs={"content": content})
    reply = send(chat(server, top_logprobs=2))
    assert (reply.text, reply.logprobs[0].token, reply.logprobs[0].others) == ("half ?", "?", {"no": -9999.0})
    assert Reply.model_validate_json(reply.model_dump_json()) == reply


def test_a_reply_that_ran_out_of_tokens_says_so(send: Sender, server: Server) -> None:
    server.answer = plain('{"a": 1, "b"', "length")
    assert send(chat(server)).cut_short


def test_a_server_that_reports_no_tokens(send: Sender, server: Server) -> None:
    body = completion({"content": [{"type": "text", "text": "yes"}]})
    del body["usage"], body["choices"][0]["finish_reason"]
    server.answer = said(200, body)
    assert send(chat(server)) == Reply(text="yes")
    server.answer = said(200, {"object": "list", "model": "m", "data": [{"index": 0, "embedding": [0.5, 1.0]}]})
    assert send(embedding(server, "one")) == Reply(vectors=((0.5, 1.0),))


def test_texts_become_vectors(send: Sender, server: Server) -> None:
    server.answer = vectors([0.5, 1.0], [0.25, -1.0])
    reply = send(embedding(server, "one", "two"))
    assert reply == Reply(vectors=((0.5, 1.0), (0.25, -1.0)), input_tokens=5)
    ((path, body, _),) = server.requests
    assert (path, body["input"]) == ("/v1/embeddings", ["one", "two"])


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (said(400, error("bad field")), ModelRefused, "bad field"),
        (said(400, error("too long", "context_length_exceeded")), ModelRefused, "too long"),
        (said(401, error("wrong key")), ModelRefused, "wrong key"),
        (said(402, error("no credit")), ModelRefused, "no credit"),
        (said(403, error("not yours")), ModelRefused, "not yours"),
        (said(404, error("no such model")), ModelRefused, "no such model"),
        (said(408, error("too slow")), ModelTimeout, "too slow"),
        (said(413, error("too large")), ModelRefused, "too large"),
        (said(422, error("cannot do")), ModelRefused, "cannot do"),
        (said(429, error("pay first", "insufficient_quota")), ModelRefused, "pay first"),
        (said(429, error("slow down")), ModelRateLimited, "slow down"),
        (said(500, error("broken")), ModelUnavailable, "broken"),
        (said(502, "<html>"), ModelUnavailable, "502"),
        (said(503, error("overloaded")), ModelUnavailable, "overloaded"),
        (lambda handler: handler.reply(200, b'{"choices": ['), ModelUnavailable, "openai:m"),
        (lambda handler: handler.reply(200, b"\xff\xfe"), ModelUnavailable, "openai:m"),
        (lambda handler: handler.reply(200, b"", kind="text/plain"), ModelUnavailable, "openai:m"),
        (lambda handler: handler.reply(200, b"<html>", kind="text/html"), ModelUnavailable, "openai:m"),
        (said(200, []), ModelUnavailable, "openai:m"),
        (said(200, None), ModelUnavailable, "openai:m"),
        (said(200, error("in disguise")), ModelUnavailable, "openai:m"),
    ],
)
@pytest.mark.parametrize("make", [chat, lambda server: embedding(server, "one")], ids=["chat", "embedding"])
def test_each_failure_has_its_error_and_one_request(
    *, send: Sender, server: Server, answer: Answer, kind: type[ModelError], says: str, make: Callable[[Server], Call]
) -> None:
    server.answer = answer
    raised = send.error(make(server))
    assert type(raised) is kind
    assert says in str(raised)
    assert "openai:m" in str(raised)
    assert len(server.requests) == 1


def test_errors_without_a_response_are_translated_too() -> None:
    theirs, http = pytest.importorskip("pydantic_ai.exceptions"), pytest.importorskip("httpx2")
    openai = pytest.importorskip("openai")
    for raised, kind in (
        (theirs.ContentFilterError("no"), ModelRefused),
        (theirs.ModelContextWindowExceededError("m", "too long"), ModelRefused),
        (theirs.ModelQuotaExceededError("m", "pay first"), ModelRefused),
        (theirs.UserError("not with this model"), ModelRefused),
        (theirs.ModelRequestTimeout("m", 1.0), ModelTimeout),
        (theirs.ModelRateLimitError("m", "slow down"), ModelRateLimited),
        (theirs.UnexpectedModelBehavior("eh"), ModelUnavailable),
        (http.ReadError("reset"), ModelUnavailable),
        (http.InvalidURL("eh"), ModelUnavailable),
        (openai.OpenAIError("eh"), ModelUnavailable),
    ):
        with pytest.raises(ModelError) as ours, translated("openai:m"):
            raise raised
        assert type(ours.value) is kind
        assert ours.value.__cause__ is raised


def test_own_errors_pass_unchanged() -> None:
    for own in (ModelMalformed("eh"), ConfigurationError("no key"), RuntimeError("a mistake of ours")):
        with pytest.raises(type(own)) as passed, translated("openai:m"):
            raise own
        assert passed.value is own


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"Retry_After": "7"}, 7.0), ({"retry_after_ms": "250"}, 0.25), ({}, None), ({"Retry_After": "soon"}, None)],
)
@pytest.mark.parametrize(("status", "kind"), [(429, ModelRateLimited), (503, ModelUnavailable)])
def test_how_long_the_server_asks_to_wait(
    *, send: Sender, server: Server, headers: dict[str, str], seconds: float | None, status: int, kind: type[ModelError]
) -> None:
    server.answer = said(status, error("later"), **headers)
    raised = send.error(chat(server))
    assert isinstance(raised, ModelRateLimited | ModelUnavailable)
    assert type(raised) is kind
    assert raised.retry_after == seconds


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (plain(""), ModelMalformed, "the reply is empty"),
        (plain(None), ModelMalformed, "the reply is empty"),
        (plain(" \n"), ModelMalformed, "the reply is empty"),
        (plain("", "length"), ModelMalformed, "used up all of its 512 tokens"),
        (plain("half a", "content_filter"), ModelRefused, "content filter"),
        (said(200, completion({"content": None, "refusal": "I will not"})), ModelRefused, "I will not"),
        (said(200, {**completion({}), "choices": []}), ModelMalformed, "cannot be read"),
        (said(200, {**completion({}), "choices": None}), ModelMalformed, "cannot be read"),
        (said(200, completion({"content": {"not": "text"}})), ModelMalformed, "cannot be read"),
    ],
)
def test_an_unusable_reply_still_reports_its_tokens(
    send: Sender, server: Server, answer: Answer, kind: type[ModelError], says: str
) -> None:
    server.answer = answer
    raised = send.error(chat(server))
    assert type(raised) is kind
    assert says in str(raised)
    assert raised.tokens == (11, 7)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (vectors([0.5, 1.0]), "expected 2 vectors, got 1"),
        (vectors([0.5, 1.0], [0.5, 1.0], [0.5, 1.0]), "expected 2 vectors, got 3"),
        (vectors([0.5, 1.0], [0.5]), "differ in length"),
        (vectors([], []), "differ in length"),
        (vectors([0.5, 1.0], [float("nan"), 1.0]), "NaN or infinity"),
        (vectors([0.5, 1.0], [float("inf"), 1.0]), "NaN or infinity"),
        (vectors(), "openai:m"),
    ],
)
def test_vectors_that_do_not_fit_the_texts(send: Sender, server: Server, answer: Answer, says: str) -> None:
    server.answer = answer
    raised = send.error(embedding(server, "one", "two"))
    assert type(raised) is ModelMalformed
    assert says in str(raised)
    assert raised.tokens == (5, 0)


def test_a_server_that_is_not_there(send: Sender, server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    call = chat(server, base_url=f"http://127.0.0.1:{port}/v1")
    assert type(send.error(call)) is ModelUnavailable


def test_a_connection_that_is_cut(send: Sender, server: Server) -> None:
    def cut(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"choices"')
        handler.close_connection = True

    def drop(handler: Handler) -> None:
        handler.close_connection = True

    for answer in (cut, drop):
        server.answer = answer
        assert type(send.error(chat(server))) is ModelUnavailable


@contextmanager
def dawdling(server: Server) -> Iterator[None]:
    """A server that sends a space now and then, and would for a minute."""
    enough = threading.Event()

    def trickle(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "600")
        handler.end_headers()
        handler.close_connection = True
        while not enough.wait(0.02):
            try:
                handler.wfile.write(b" ")
            except OSError:
                return

    server.answer = trickle
    try:
        yield
    finally:
        enough.set()


@pytest.mark.parametrize("make", [chat, lambda server: embedding(server, "one")], ids=["chat", "embedding"])
def test_the_time_allowed_is_for_the_whole_reply(send: Sender, server: Server, make: Callable[[Server], Call]) -> None:
    send(chat(server))  # packages are loaded by now

    async def play() -> None:
        hasty = ProviderCaller(0.2)
        try:
            await hasty.send(make(server))
        finally:
            await hasty.close()

    with dawdling(server):
        start = time.perf_counter()
        with pytest.raises(ModelTimeout, match=r"within 0\.2 s"):
            asyncio.run(play())
        took = time.perf_counter() - start
    assert took < 10.0  # the whole reply would take 12 s


def test_it_outlives_the_loop_it_was_used_on(send: Sender, server: Server) -> None:
    caller = ProviderCaller()

    async def play() -> None:
        replies = await asyncio.gather(*(caller.send(chat(server, system=str(n))) for n in range(5)))
        assert all(reply.text == "yes" for reply in replies)

    for _ in range(3):  # whatever a loop left open would be warned of here
        asyncio.run(play())
        gc.collect()

    async def finish() -> None:
        await play()
        await caller.close()
        await caller.close()

    asyncio.run(finish())
    gc.collect()
    assert len(server.requests) == 20


def test_it_is_closed_while_a_loop_in_another_thread_still_runs(server: Server) -> None:
    caller = ProviderCaller()
    sent, enough = threading.Event(), threading.Event()

    async def elsewhere() -> None:
        await caller.send(chat(server))
        sent.set()
        await asyncio.to_thread(enough.wait)

    thread = threading.Thread(target=asyncio.run, args=(elsewhere(),))
    thread.start()
    try:
        assert sent.wait(30)
        asyncio.run(caller.close())
    finally:
        enough.set()
        thread.join()
    assert len(server.requests) == 1


def test_connections_are_used_again(send: Sender, server: Server) -> None:
    peers: list[int] = []

    def note(handler: Handler) -> None:
        peers.append(handler.client_address[1])
        plain("yes")(handler)

    server.answer = note
    for n in range(3):
        send(chat(server, system=str(n)))
    assert len(set(peers)) == 1


def test_keys_and_addresses_come_from_the_environment(
    send: Sender, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    send(chat(server, model="openai:from-the-environment", base_url=""))
    ((_, _, headers),) = server.requests
    assert headers["authorization" if "authorization" in headers else "Authorization"] == "Bearer sk-mine"


@pytest.mark.parametrize("model", ["ollama:llama3", "vllm:llama3", "litellm:openai/gpt-4o", "openai-chat:m"])
def test_other_providers_of_the_same_protocol_take_an_address(send: Sender, server: Server, model: str) -> None:
    assert send(chat(server, model=model)).text == "yes"


def test_a_provider_of_another_protocol(send: Sender, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-mine")
    message = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "claude-3-haiku",
        "content": [{"type": "text", "text": "yes"}],
        "stop_reason": "max_tokens",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }
    call = chat(server, model="anthropic:claude-3-haiku", base_url=server.url.removesuffix("/v1"), top_logprobs=5)
    for form in ReplyFormat:
        server.answer = said(200, message)
        reply = send(call.model_copy(update={"format": form, "json_schema": SCHEMA}))
        assert reply == Reply(text="yes", input_tokens=11, output_tokens=7, cut_short=True)
    assert {path for path, _, _ in server.requests} == {"/v1/messages"}
    server.requests.clear()
    server.answer = said(200, {**message, "content": []})
    assert send.error(call).tokens == (11, 7)
    trouble = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    server.answer = said(529, trouble, Retry_After="9")
    overloaded = send.error(call)
    assert isinstance(overloaded, ModelUnavailable)
    assert overloaded.retry_after == 9.0
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("model", "base_url", "says"),
    [
        ("openai:m", "", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-5", "", "ANTHROPIC_API_KEY"),
        ("gpt-4o-mini", "", "openai:gpt-4o-mini"),
        ("openai:", "", "openai:gpt-4o-mini"),
        ("nobody:m", "", "no provider is called 'nobody'"),
        ("openai:m", "localhost:8000/v1", "http://localhost:8000/v1"),
        ("deepseek:m", "http://localhost:8000/v1", "takes no address"),
    ],
)
@pytest.mark.parametrize("role", [Role.JUDGE, Role.EMBEDDING])
def test_a_mistake_in_the_configuration_is_explained(
    *, send: Sender, monkeypatch: pytest.MonkeyPatch, model: str, base_url: str, says: str, role: Role
) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    call = Call(role=role, model=model, base_url=base_url, texts=("one",))
    with pytest.raises(ConfigurationError) as raised:
        send(call)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("model", "missing", "command"),
    [
        ("openai:m", "openai", "pip install 'acefraud[openai]'"),
        ("openai:m", "pydantic_ai.models", "pip install 'acefraud[openai]'"),
        ("ollama:m", "openai", "pip install 'acefraud[openai]'"),
        ("anthropic:m", "anthropic", "pip install 'acefraud[anthropic]'"),
        ("anthropic:m", "pydantic_ai.models", "pip install 'acefraud[anthropic]'"),
        ("groq:m", "groq", "pip install 'acefraud[groq]'"),
        ("xai:m", "xai_sdk", "pip install 'pydantic-ai-slim[xai]'"),
    ],
)
def test_a_missing_package_is_named_with_the_command(
    send: Sender, monkeypatch: pytest.MonkeyPatch, model: str, missing: str, command: str
) -> None:
    provider = model.partition(":")[0]
    monkeypatch.delitem(sys.modules, f"pydantic_ai.providers.{provider}", raising=False)  # to be loaded again
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigurationError) as raised:
        send(Call(role=Role.JUDGE, model=model))
    assert command in str(raised.value)
