"""Convert a conversation to another wire format, and report what it cannot express.

Every loss is in ``lost`` with its place, such as reasoning signed for one provider, a name, or an item of a hosted tool. Ids of
calls are kept, unless a call has none, another call has the same id, or the other format refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from compaction.formats.anthropic.fields import is_id
from compaction.formats.base import MessageFormat, Problem
from compaction.formats.bedrock.fields import is_tool_use_id
from compaction.formats.detect import candidates, resolve

from .steps import steps_of
from .write import write_steps


@attrs.frozen
class Conversion:
    """A conversation in another wire format.

    Args:
        messages: The new list.
        lost: The content that is missing or changed in it, with places in the original list.
    """

    messages: list[Any]
    lost: tuple[Problem, ...]


def convert(messages: Iterable[Any], *, to: MessageFormat | str, format: MessageFormat | str | None = None) -> Conversion:
    """Return a conversation in another wire format, and what was lost; O(parts).

    Args:
        messages: The conversation, oldest first; not changed.
        to: The target format.
        format: The format it is in; ``None`` to detect it. A list that several formats fit reads the same in all of them.

    Returns:
        The new list, plain dictionaries; the same objects if it is in that format already.

    Raises:
        UnknownFormat: If a format's name is unknown, the messages fit no or several formats, or ``to`` is a custom format.
        InvalidMessage: If a message cannot be read.

    >>> thought = {"type": "thinking", "thinking": "A greeting.", "signature": "c2ln"}
    >>> said = {"role": "assistant", "content": [thought, {"type": "text", "text": "Hello!"}]}
    >>> conversion = convert([{"role": "user", "content": "hi"}, said], to="openai-chat")
    >>> conversion.messages
    [{'role': 'user', 'content': 'hi'}, {'role': 'assistant', 'content': 'Hello!'}]
    >>> [(problem.where, problem.rule) for problem in conversion.lost]
    [('messages[1]', 'reasoning')]
    """
    given = list(messages)
    target = resolve(to)
    possible = candidates(given) if format is None else [resolve(format)]
    if target in possible:
        return Conversion(given, ())
    read = [possible[0].read(raw, position) for position, raw in enumerate(given)]
    steps = steps_of(read, allowed=_IDS.get(target.name, bool))
    made, lost = write_steps(steps, target)
    names = [
        Problem(
            f"messages[{index}].name", "name", f"the participant's name {message.name!r} has no place", "say it in the text"
        )
        for index, message in enumerate(read)
        if message.name and message.role != "tool"
    ]
    return Conversion(made, tuple(sorted([*names, *lost], key=_place)))


_IDS: Final[Mapping[str, Callable[[str], bool]]] = {"anthropic": is_id, "bedrock": is_tool_use_id}
"""For formats that do not accept every id: whether the format accepts the id of a call."""


def _place(problem: Problem) -> int:
    return int(problem.where.partition("[")[2].partition("]")[0])
