"""Recall: the model may read what left a request, with tools that the gateway offers and answers itself, unseen by the agent.

The tools are offered only in requests that were compacted and that have tools of their own. If the model calls one, the gateway
sends the request again with the call and its result, and the client gets the answer to that. An answer to such a request is
therefore held until it is complete.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..formats import ModelAPI, items_of, may_choose_tools
from ..messages import ToolCallPart, ToolResultPart
from ..stores import SQLiteStore, handle_tool_call, tool_schemas
from .bodies import ModelRequest, read_request

_NAMES: Final = ("compaction_grep", "compaction_expand")
RECALL_FUNCTIONS: Final = [each["function"] for each in tool_schemas() if each["function"]["name"] in _NAMES]
_MOST_CHARS: Final = 16_000
_TOO_LONG: Final = json.dumps({"error": f"the result has more than {_MOST_CHARS:,} characters: ask for less with 'limit'"})
_NOT_RUN: Final = "Not run: it was called together with a tool of the gateway. Call it again."


def may_offer(api: ModelAPI, fields: Mapping[str, Any]) -> bool:
    """Return whether the tools of recall can be offered in a conversation: answers of its API can be read, and it has tools."""
    return api.answer is not None and bool(items_of(fields.get("tools")))


def offered(body: bytes, asked: ModelRequest, api: ModelAPI) -> bytes:
    """Return the body of a compacted request with the tools of recall; the same body if they cannot be offered."""
    if api.tool is None or not may_offer(api, asked.fields) or not may_choose_tools(asked.fields):
        return body
    agents_own = json.dumps(items_of(asked.fields["tools"]))
    if any(name in agents_own for name in _NAMES):
        return body
    request = read_request(body, "tools")  # it replaces one list of a body: here the tools
    return request.with_messages([*request.messages, *map(api.tool, RECALL_FUNCTIONS)])


def recall_calls(api: ModelAPI, answer: bytes, kind: str) -> list[Any]:
    """Return the messages of a decoded answer that calls a tool of recall; none if it is meant for the client."""
    if not any(name.encode() in answer for name in _NAMES):
        return []
    said = api.messages_of(answer, kind)
    return said if any(call.name in _NAMES for call in _calls_of(api, said)) else []


def next_request(
    api: ModelAPI, body: bytes, said: Sequence[Any], *, store: SQLiteStore, session: str, bare: bytes | None = None
) -> bytes:
    """Return the next request: the one that was answered, the messages of the answer, and the results of its calls.

    The calls may read the records of this session. ``bare`` is the first request without the tools of recall; if it is given,
    the next one does not offer them.
    """
    asked = read_request(body, api.key)
    results = [ToolResultPart(call.id, _result(call, store, session)) for call in _calls_of(api, said)]
    added = [*said, *[each.raw for each in api.format.compose("user", results)]]
    if bare is None:
        return asked.with_messages([*asked.messages, *added])
    first = read_request(bare, api.key)
    earlier = asked.messages[len(first.messages) :]  # the calls and results of the requests since the first
    return first.with_messages([*first.messages, *earlier, *added])


def _calls_of(api: ModelAPI, said: Sequence[Any]) -> list[ToolCallPart]:
    return [part for message in said for part in api.format.read(message).parts if isinstance(part, ToolCallPart)]


def _result(call: ToolCallPart, store: SQLiteStore, session: str) -> str:
    if call.name not in _NAMES:
        return _NOT_RUN
    found = handle_tool_call(call.name, call.arguments, store=store, session=session)
    return found if len(found) <= _MOST_CHARS else _TOO_LONG
