"""A client's connection: its body, its address, and the errors that it is sent."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from compaction.gateway.exchange import ClientConnection
from compaction.gateway.headers import send_error
from compaction.gateway.upstream import AnswerStopped, is_worth_a_log


def part(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": data, "more_body": more}


def connection(*messages: dict[str, Any], **scope: Any) -> tuple[ClientConnection, list[Any]]:
    """A connection that receives these messages, and what it is sent."""
    left, sent = list(messages), list[Any]()

    async def receive() -> dict[str, Any]:
        return left.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    return ClientConnection({"method": "POST", "path": "/x", "headers": [], **scope}, receive, send), sent


@pytest.mark.parametrize(
    ("length", "messages", "body"),
    [
        (None, [part(b"ab", more=True), part(b"cd")], b"abcd"),
        (None, [part(b"ab", more=True), part(b"cde")], None),
        (None, [{"type": "http.request"}], b""),
        (b"4", [part(b"abcd")], b"abcd"),
        (b"5", [], None),
        (b"four", [part(b"abcd")], b"abcd"),
    ],
)
async def test_a_body_has_a_limit(length: bytes | None, messages: list[Any], body: bytes | None) -> None:
    """A body is too large by its stated length or by what arrives. One of exactly the limit is read."""
    headers = [] if length is None else [(b"content-length", length)]
    client, _ = connection(*messages, headers=headers)
    assert await client.read_body(4, 9.0) == body


def test_an_address_keeps_its_encoding() -> None:
    """The address is sent as the client encoded it if the server passes that on. Repeated slashes and versions become one."""
    client, _ = connection(path="//v1/v1//a b", raw_path=b"//v1/v1//a%20b")
    assert (client.path, client.raw_path, client.query, client.status) == ("/v1/a b", b"/v1/a%20b", b"", 0)
    client, _ = connection(path="//v1/\u00e9", query_string=b"a=1")
    assert (client.raw_path.decode(), client.query) == ("/v1/\u00e9", b"a=1")


async def test_an_error_has_the_shape_of_a_provider() -> None:
    """It has a length, and may have more headers."""
    client, sent = connection()
    await send_error(client.send, 408, "slow")
    await send_error(client._send, 401, "no", headers=[(b"x-a", b"1")])
    head, body, other, _ = sent
    assert client.status == head["status"] == 408
    assert json.loads(body["body"])["error"] == {"type": "gateway_error", "code": 408, "message": "compaction gateway: slow"}
    assert head["headers"] == [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body["body"]))]
    assert (other["status"], other["headers"][1]) == (401, (b"x-a", b"1"))


@pytest.mark.parametrize(("error", "is_worth"), [(None, True), (ValueError(), True), (AnswerStopped(), False)])
def test_a_stopped_answer_needs_no_traceback(error: Exception | None, is_worth: bool) -> None:
    """The gateway has logged it in its own line."""
    about: Any = error and (type(error), error, None)
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "x", None, about)
    assert is_worth_a_log(record) is is_worth
