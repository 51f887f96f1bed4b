"""Pairing of the calls and results of tools that the Anthropic API runs itself, and of the calls that these tools make.

A call and its result are usually in one answer. If the answer also called the caller's tools, or was paused, the result begins
the next answer. The user's own words in between end the turn: a call without a result then never gets one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..pairing import Finding, HostedStep, Path, hosted_links
from ..wire import fields_of, kind_of, string
from .fields import THINKING, blocks_of, is_server_call, is_server_result, result_id


def block_links(blocks: Sequence[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of the provider's calls an answer leaves open, and of the earlier calls it continues; O(blocks)."""
    return hosted_links(step for block in blocks for step in _steps(block))


def _steps(block: Any) -> Iterator[HostedStep]:
    """Yield the call that made this block, and the call of the provider that it is or answers."""
    kind, fields = kind_of(block), fields_of(block) or {}
    if kind == "text" or kind in THINKING:
        return
    if caller := string((fields_of(fields.get("caller")) or {}).get("tool_id")):
        yield "caller", caller
    if is_server_call(kind):
        yield "call", string(fields.get("id"))
    elif is_server_result(kind):
        yield "result", string(fields.get("tool_use_id"))


def unpaired(contents: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Finding]]:
    """Yield every block whose call, result or caller is missing, with the place of its message; O(blocks).

    Args:
        contents: The fields of the messages.
    """
    waiting: dict[str, list[tuple[int, Path]]] = {}
    made: set[str] = set()
    for index, fields in enumerate(contents):
        blocks = blocks_of(fields)
        if fields.get("role") == "user" and any(result_id(block) is None for block in blocks):
            for identifier, places in waiting.items():
                text = f"the call {identifier!r} has no result when the user speaks again"
                yield from [(place, (where, "server-call-without-result", text)) for place, where in places]
            made -= {identifier for identifier, places in waiting.items() if places}
            waiting.clear()
        for position, block in enumerate(blocks if fields.get("role") == "assistant" else ()):
            where = ("content", position)
            for kind, identifier in _steps(block):
                if kind == "call":
                    made.add(identifier)
                    waiting.setdefault(identifier, []).append((index, where))
                elif kind == "caller" and identifier not in made:
                    yield index, (where, "call-without-caller", f"the call {identifier!r} that made it is not before it")
                elif kind == "result":
                    if identifier not in made:
                        yield index, (where, "server-result-without-call", "the call it answers is not before it")
                    waiting[identifier] = waiting.get(identifier, [])[:-1]  # it answers the latest call with this id
