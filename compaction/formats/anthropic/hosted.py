"""Calls of tools that the Anthropic API runs itself: their results, and the calls that these tools make.

A call and its result usually stand in one answer. Where the answer also called the caller's tools, or was paused, the result
begins the next answer; the user's own words in between end the turn, and what has no result then never gets one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from ..wire import fields_of, kind_of, string
from .fields import THINKING, blocks_of, is_server_call, is_server_result, result_id


@attrs.frozen
class Unpaired:
    """A block whose call, result or caller is missing.

    Args:
        index: The place of its message.
        position: Its place in the message.
        rule: The rule it breaks.
        id: The id it names.
        message: What is wrong, in one sentence.
    """

    index: int
    position: int
    rule: str
    id: str
    message: str


def caller_id(block: Any) -> str:
    """Return the id of the provider's call that made this call; empty if the model made it itself."""
    return string((fields_of((fields_of(block) or {}).get("caller")) or {}).get("tool_id"))


def block_links(blocks: Sequence[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of the provider's calls without a result in an answer, and of earlier ones it continues; O(blocks)."""
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


def unpaired(contents: Sequence[Mapping[str, Any] | None]) -> Iterator[Unpaired]:
    """Yield every block whose call, result or caller is missing; O(blocks).

    Args:
        contents: The fields of the messages.
    """
    waiting: dict[str, list[tuple[int, int]]] = {}
    made: set[str] = set()
    for index, fields in enumerate(contents):
        role, blocks = string((fields or {}).get("role")), blocks_of(fields or {})
        if role == "user" and any(result_id(block) is None for block in blocks):
            for identifier, places in waiting.items():
                text = f"the call {identifier!r} has no result when the user goes on"
                yield from [Unpaired(*place, "server-call-without-result", identifier, text) for place in places]
            made -= waiting.keys()
            waiting.clear()
        for position, block in enumerate(blocks if role == "assistant" else ()):
            yield from _noted(index, position, block, made, waiting)


def _noted(
    index: int, position: int, block: Any, made: set[str], waiting: dict[str, list[tuple[int, int]]]
) -> Iterator[Unpaired]:
    """Note a block of an answer among the calls made and waiting; what it misses."""
    kind = kind_of(block)
    if (caller := caller_id(block)) and caller not in made:
        text = f"the call {caller!r} that made it does not stand before it"
        yield Unpaired(index, position, "call-without-caller", caller, text)
    if is_server_call(kind):
        identifier = _field(block, "id")
        made.add(identifier)
        waiting.setdefault(identifier, []).append((index, position))
    elif is_server_result(kind):
        identifier = _field(block, "tool_use_id")
        if identifier not in made:
            text = "the call it answers does not stand before it"
            yield Unpaired(index, position, "server-result-without-call", identifier, text)
        elif places := waiting.get(identifier):
            places.pop()
            if not places:
                del waiting[identifier]


def _field(block: Any, name: str) -> str:
    return string((fields_of(block) or {}).get(name))
