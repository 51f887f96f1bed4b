"""Access to the fields of raw Responses items; used for reading and by the rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from ..wire import fields_of, string

ROLES: Final = frozenset({"user", "assistant", "system", "developer"})


@attrs.frozen
class CallKind:
    """A kind of item that is a call.

    Args:
        key: The field whose value its result names.
        arguments: The field with its arguments.
        answered: Whether the provider requires a result.
    """

    key: str = "call_id"
    arguments: str = "arguments"
    answered: bool = True


@attrs.frozen
class ResultKind:
    """A kind of item that is a result.

    Args:
        text: The field with the output of the tool, if it is text that can be shortened.
        key: The field that names the call, where there is no ``call_id``.
        chunked: Whether that field is a list of chunks of ``stdout`` and ``stderr``.
        hosted: Whether the provider may have written it for its own call; it then names no call.
    """

    text: str = ""
    key: str = "call_id"
    chunked: bool = False
    hosted: bool = False


CALLS: Final[Mapping[str, CallKind]] = {
    "function_call": CallKind(),
    "custom_tool_call": CallKind(arguments="input"),
    "computer_call": CallKind(arguments="action"),
    "local_shell_call": CallKind(arguments="action"),
    "shell_call": CallKind(arguments="action"),
    "apply_patch_call": CallKind(arguments="operation"),
    "program": CallKind(arguments="code"),
    "tool_search_call": CallKind(answered=False),
    "mcp_approval_request": CallKind(key="id", answered=False),
}
RESULTS: Final[Mapping[str, ResultKind]] = {
    "function_call_output": ResultKind("output"),
    "custom_tool_call_output": ResultKind("output"),
    "computer_call_output": ResultKind(),
    "local_shell_call_output": ResultKind("output", key="id"),
    "shell_call_output": ResultKind("output", chunked=True),
    "apply_patch_call_output": ResultKind("output"),
    "program_output": ResultKind("result"),
    "tool_search_output": ResultKind(hosted=True),
    "mcp_approval_response": ResultKind(key="approval_request_id"),
}
ANY_CALL: Final = ""
"""The id that an item reference opens: it stands for items that are not in the list, which any later item may continue."""
_OF_THE_CALLER: Final = frozenset({"compaction", "compaction_trigger", "additional_tools", "configuration_update"})


def item_type(fields: Mapping[str, Any]) -> str:
    """Return the type of an item; without one, a role makes it a message, an id alone a reference. Empty for neither."""
    kind = fields.get("type")
    if kind is None and "role" in fields:
        return "message"
    if kind is None and "id" in fields and fields.keys() <= {"id", "type"}:
        return "item_reference"
    return string(kind)


def is_answer(fields: Mapping[str, Any]) -> bool:
    """Whether the item is part of an answer: a message of the assistant, a call, reasoning, a hosted tool."""
    kind = item_type(fields)
    if kind == "message":
        return fields.get("role") == "assistant"
    return kind not in _OF_THE_CALLER and result_of(fields) is None


def item_links(fields: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids that an item of an answer opens for later items, and the ids that it continues."""
    kind = item_type(fields)
    if kind == "item_reference":
        return (ANY_CALL,), ()
    if kind == "program" or kind == "mcp_approval_request":
        return (string(fields.get(CALLS[kind].key)),), ()
    earlier = caller_of(fields) or string(fields.get("approval_request_id"))
    return (), (earlier,) if earlier else ()


def caller_of(fields: Mapping[str, Any]) -> str | None:
    """Return the ``call_id`` of the program that made this call; ``None`` if the model made it itself."""
    caller = fields_of(fields.get("caller"))
    return string(caller.get("caller_id")) if caller is not None and caller.get("type") == "program" else None


def call_of(fields: Mapping[str, Any]) -> str | None:
    """Return the id that a result of this call names, empty if it has none; ``None`` if the item is not such a call."""
    kind = CALLS.get(item_type(fields))
    if kind is None:
        return None
    key = string(fields.get(kind.key))
    return None if not key and not kind.answered else key


def result_of(fields: Mapping[str, Any]) -> str | None:
    """Return the id of the call that this result answers, empty if it has none; ``None`` if the item is not a result."""
    kind = RESULTS.get(item_type(fields))
    if kind is None:
        return None
    identifier = string(fields.get(call_id_field(fields)))
    return None if kind.hosted and not identifier else identifier


def call_id_field(fields: Mapping[str, Any]) -> str:
    """Return the field in which this result names its call."""
    return "call_id" if fields.get("call_id") is not None else RESULTS[item_type(fields)].key
