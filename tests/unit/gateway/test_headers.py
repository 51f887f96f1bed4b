"""Headers: which are sent on, and which name a conversation and its owner."""

from __future__ import annotations

import base64
import json

import pytest

from compaction.gateway.headers import answer_headers, as_mapping, request_headers, session_of, tenant_of

GIVEN = [
    (b"host", b"h"),
    (b"content-encoding", b"gzip"),
    (b"te", b"trailers"),
    (b"accept-encoding", b"br;q=1.0, GZIP;q=0.5 , identity"),
    (b"connection", b"X-Drop , close"),
    (b"x-a", b"1"),
    (b"x-drop", b"1"),
    (b"x-compaction-token", b"t"),
    (b"x-a", b"2"),
]


@pytest.mark.parametrize(
    ("readable", "rewritten", "expected"),
    [
        ("gzip, identity", True, [(b"accept-encoding", b"GZIP;q=0.5, identity")]),
        ("deflate", False, [(b"content-encoding", b"gzip"), (b"accept-encoding", b"identity")]),
        ("", False, [GIVEN[1], GIVEN[3]]),
    ],
)
def test_a_request_keeps_what_is_not_for_this_connection(
    readable: str, rewritten: bool, expected: list[tuple[bytes, bytes]]
) -> None:
    """Headers keep their order and repetitions. Only encodings that the gateway can read are offered."""
    found = request_headers(GIVEN, readable=readable, rewritten=rewritten)
    assert found == [*expected, (b"x-a", b"1"), (b"x-a", b"2")]


def test_an_answer_keeps_what_is_not_for_this_connection() -> None:
    """The length and the encoding of an answer are those of the upstream's bytes."""
    given = [(b"Transfer-Encoding", b"chunked"), (b"Content-Encoding", b"gzip"), (b"Connection", b"x-drop"), (b"X-Drop", b"1")]
    assert answer_headers([*given, (b"X-A", b"1")]) == [(b"content-encoding", b"gzip"), (b"x-a", b"1")]
    assert as_mapping([(b"A", b"1"), (b"a", b"2"), (b"b", b"\xe9")]) == {"a": "1", "b": "é"}


def test_an_agent_names_its_session() -> None:
    """The first header that is not blank counts, up to 200 characters."""
    assert session_of({"x-session-id": " ", "session_id": f" {'s' * 300} ", "thread-id": "t"}) == "s" * 200
    assert session_of({"x-other": "s"}) is None


def web_token(**claims: object) -> dict[str, str]:
    return {"authorization": f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.x"}


NESTED = {"x-api-key": f"a.{base64.urlsafe_b64encode(b'[' * 20_000).decode()}.c"}


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ((web_token(sub="me", exp=1), b""), (web_token(sub="me", exp=22), b""), True),
        ((web_token(sub="me", exp=1), b""), (web_token(sub="you", exp=1), b""), False),
        ((web_token(sub="me", iss="a"), b""), (web_token(sub="me", iss="b"), b""), False),
        ((web_token(exp=1), b""), (web_token(exp=2), b""), False),
        (({"api-key": "a.b"}, b""), ({"api-key": "a.c"}, b""), False),
        (({"api-key": "a.!.b"}, b""), ({"api-key": "a.!.c"}, b""), False),
        ((NESTED, b""), (web_token(), b""), False),
        ((NESTED, b""), (NESTED, b""), True),
        (({"x-api-key": "a"}, b""), ({"x-goog-api-key": "a"}, b""), True),
        (({}, b"key=a&other=1"), ({}, b"key=a&other=2"), True),
        (({}, b"key=a"), ({}, b"key=b"), False),
        (({"authorization": "a"}, b"key=b"), ({"authorization": "a"}, b""), False),
    ],
)
def test_keys_tell_tenants_apart(one: tuple[dict[str, str], bytes], other: tuple[dict[str, str], bytes], is_same: bool) -> None:
    """A key in a header or in the address names a tenant. A renewed token that names its user is the same tenant's."""
    found = [tenant_of(*each) for each in (one, other)]
    assert (found[0] == found[1]) is is_same
    assert all(len(each) == 32 for each in found)
    assert tenant_of({"x-other": "a"}, b"other=1") == ""
