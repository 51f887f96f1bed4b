"""Pairing of the calls and results of tools that the Anthropic API runs itself, and of the calls that these tools make.

A call and its result are usually in one answer. If the answer also called the caller's tools, or was paused, the result begins
the next answer. The user's own words in between end the turn: a call without a result then never gets one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..pairing import Finding
from ..wire import fields_of, kind_of, string
from .fields import THINKING, blocks_of, is_server_call, is_server_result, result_id


def caller_id(block: Any) -> str:
    """Return the id of the provider's call that made this call; empty if the model made it itself."""
    return string((fields_of((fields_of(block) or {}).get("caller")) or {}).get("tool_id"))


def block_links(blocks: Sequence[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of the provider's calls an answer leaves open, and of the earlier calls it continues; O(blocks)."""
    open: dict[str, None] = {}
    made: set[str] = set()
    earlier: dict[str, None] = {}
    for block in blocks:
        kind = kind_of(block)
        if kind == "text" or kind in THINKING:
            continue
        needed = caller_id(block) or (_field(block, "tool_use_id") if is_server_result(kind) else "")
        if needed and needed not in made:
            earlier[needed] = None
        if is_server_call(kind):
            made.add(_field(block, "id"))
            open[_field(block, "id")] = None
        elif is_server_result(kind):
            open.pop(needed, None)
    return tuple(open), tuple(earlier)


def unpaired(contents: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Finding]]:
    """Yield every block whose call, result or caller is missing, with the place of its message; O(blocks).

    Args:
        contents: The fields of the messages.
    """
    waiting: dict[str, list[tuple[int, str]]] = {}
    made: set[str] = set()
    for index, fields in enumerate(contents):
        blocks = blocks_of(fields)
        if fields.get("role") == "user" and any(result_id(block) is None for block in blocks):
            for identifier, places in waiting.items():
                text = f"the call {identifier!r} has no result when the user speaks again"
                yield from [(place, (where, "server-call-without-result", text)) for place, where in places]
            made -= waiting.keys()
            waiting.clear()
        for position, block in enumerate(blocks if fields.get("role") == "assistant" else ()):
            where, kind = f".content[{position}]", kind_of(block)
            if (caller := caller_id(block)) and caller not in made:
                yield index, (where, "call-without-caller", f"the call {caller!r} that made it is not before it")
            if is_server_call(kind):
                made.add(identifier := _field(block, "id"))
                waiting.setdefault(identifier, []).append((index, where))
            elif is_server_result(kind):
                if (identifier := _field(block, "tool_use_id")) not in made:
                    yield index, (where, "server-result-without-call", "the call it answers is not before it")
                _answer(waiting, identifier)


def _answer(waiting: dict[str, list[tuple[int, str]]], identifier: str) -> None:
    """Take the latest call with this id from those that wait for a result."""
    if identifier in waiting:
        waiting[identifier].pop()
        if not waiting[identifier]:
            del waiting[identifier]


def _field(block: Any, name: str) -> str:
    return string((fields_of(block) or {}).get(name))
