"""A message, read once: who says it, what it is made of, and the caller's own object.

The rest of the package never looks inside a caller's message. A wire format reads it into a `Message` (role, parts, name),
keeps the original in ``raw``, and a message that no edit touches leaves as that same object: unknown fields survive because
they were never unpacked. ``message.evolve(...)`` makes a changed copy in the same format.

    >>> from compaction.formats import openai_chat
    >>> hello = openai_chat.read({"role": "user", "content": "hello", "x_trace": 7})
    >>> hello.text
    'hello'
    >>> hello.evolve(text="bye").raw
    {'role': 'user', 'content': 'bye', 'x_trace': 7}
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import attrs

__all__ = [
    "CallOutline",
    "MediaPart",
    "Message",
    "OtherPart",
    "Outline",
    "Part",
    "ReasoningPart",
    "TextPart",
    "ToolCallPart",
    "ToolResultPart",
    "Writer",
]


@attrs.frozen(weakref_slot=False)
class TextPart:
    """Words for a reader.

    Args:
        text: The words; may be empty.
        raw: The wire part it was read from; ``None`` where the whole content is one string.
    """

    text: str
    raw: Any = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class ReasoningPart:
    """What the model thought before it spoke; providers differ on whether it may be resent.

    Args:
        text: The visible thought; empty where the provider sends only an opaque block.
        raw: The wire part, or a mark of the field it was read from.
    """

    text: str
    raw: Any = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen(weakref_slot=False)
class ToolCallPart:
    """A request to run a tool.

    Args:
        id: What its result will name; empty if the message has none.
        name: The tool.
        arguments: As sent, usually JSON text, not necessarily valid.
        raw: The wire part.
    """

    id: str
    name: str
    arguments: str
    raw: Any = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class MediaPart:
    """An image, a sound, a video or a file: counted by table, never as text.

    Args:
        kind: ``"image"``, ``"audio"``, ``"video"`` or ``"file"``.
        detail: What the provider was told of its size, such as ``"low"``; empty if nothing.
        size_bytes: Bytes of the data carried in the message, as sent; 0 for a reference.
        raw: The wire part.
    """

    kind: str
    detail: str = ""
    size_bytes: int = 0
    raw: Any = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen(weakref_slot=False)
class ToolResultPart:
    """What a tool answered.

    Args:
        call_id: The id of the call it answers; empty if the message has none.
        text: The answer's text, parts joined by line ends.
        media: Images and files within it.
        failed: Whether the tool failed, where the format says so; ``None`` where it does not. Not written: ``raw`` keeps it.
        raw: The wire part.
    """

    call_id: str
    text: str
    media: tuple[MediaPart, ...] = ()
    failed: bool | None = None
    raw: Any = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class OtherPart:
    """A part no rule knows: kept, counted as the JSON it is, never rewritten.

    Args:
        text: The part as JSON text, for counting.
        raw: The wire part.
    """

    text: str
    raw: Any = attrs.field(default=None, eq=False, repr=False)


Part: TypeAlias = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | MediaPart | OtherPart


CallOutline: TypeAlias = tuple[str, str, str, Any]
"""A tool call that was only glanced at: its id, name and arguments, and the wire part."""

Outline: TypeAlias = tuple[str, str | None, Sequence[CallOutline], str | None]
"""A message that was only glanced at: its role, its one text, its calls, and the id of the call it answers."""


class Writer(Protocol):
    """The half of a wire format a message needs to change itself."""

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        """A copy of the message made of these parts."""
        ...

    def completes_summary(self, message: Message) -> bool:
        """Whether a message that directly follows a summary is the second of its two messages."""
        ...


@attrs.frozen(eq=False, weakref_slot=False)
class Message:
    """One message of a conversation, whatever its wire format.

    Args:
        role: ``"system"``, ``"developer"``, ``"user"``, ``"assistant"`` or ``"tool"``; another role is kept as it is.
        parts: What it is made of, in order.
        raw: The caller's own object. It is what comes out again; nobody here changes it.
        format: The wire format that read it.
        name: The participant, where the format has one.
        continues: Whether it goes on with the answer that the message before it began, and so has to stay with it: some formats
            write one answer as several messages.
        begins: Ids of what the provider runs itself and has no result yet when the message ends; empty for what only it knows.
        resumes: Ids of what the provider began to run in earlier messages and goes on with here.
        holds_history: Whether the provider wrote it in place of what came before, so that the model knows that from it alone.

    Two messages are equal only if they are the same object: contents are compared by the format's ``key``.
    """

    role: str
    parts: tuple[Part, ...]
    raw: Any = attrs.field(repr=False)
    format: Writer = attrs.field(repr=False)
    name: str | None = None
    continues: bool = False
    begins: tuple[str, ...] = ()
    resumes: tuple[str, ...] = ()
    holds_history: bool = False

    @classmethod
    def of_outline(cls, outline: Outline, raw: Any, format: Writer) -> Message:
        """Return the message that a format would read where it gave this outline."""
        role, text, calls, answers = outline
        if answers is not None:
            return cls(role, (ToolResultPart(answers, text or ""),), raw, format)
        parts: list[Part] = [] if text is None else [TextPart(text)]
        parts += [ToolCallPart(*call) for call in calls]
        return cls(role, tuple(parts), raw, format)

    @property
    def text(self) -> str:
        """The words of its text parts and tool results, joined by line ends; reasoning and calls left out."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart | ToolResultPart))

    @property
    def is_system(self) -> bool:
        """Whether it instructs the model: a system or developer message."""
        return self.role == "system" or self.role == "developer"

    def tool_calls(self) -> Iterator[ToolCallPart]:
        """The calls it makes, in order."""
        return (part for part in self.parts if isinstance(part, ToolCallPart))

    def tool_results(self) -> Iterator[ToolResultPart]:
        """The results it carries, in order."""
        return (part for part in self.parts if isinstance(part, ToolResultPart))

    def evolve(self, *, text: str | None = None, parts: Sequence[Part] | None = None) -> Message:
        """A changed copy in the same format; unknown fields stay, and this message does not change.

        Args:
            text: New words. They take the place of the first text part, or of the result's text in a tool message; further
                text parts go. Everything else stays.
            parts: All parts anew, instead of ``text``. A part that is taken over as it was is written as it was.

        Returns:
            The copy. Its ``raw`` is new; whatever was not changed is shared with the original's.
        """
        if parts is None:
            parts = self.parts if text is None else _with_text(self.parts, text)
        return self.format.changed(self, parts)

    def with_parts(self, change: Callable[[Part], Part]) -> Message:
        """A copy with each part changed; this message itself if no part was."""
        parts = [change(part) for part in self.parts]
        return self if all(map(operator.is_, parts, self.parts)) else self.evolve(parts=parts)


def _with_text(parts: Sequence[Part], text: str) -> list[Part]:
    """The parts with ``text`` where the first words stood, and no further words."""
    changed: list[Part] = []
    placed = False
    for part in parts:
        if isinstance(part, TextPart | ToolResultPart):
            if not placed:
                changed.append(attrs.evolve(part, text=text))
                placed = True
            elif isinstance(part, ToolResultPart):
                changed.append(part)
        else:
            changed.append(part)
    if not placed:
        changed.append(TextPart(text))
    return changed
