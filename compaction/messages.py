"""`Message`, one message of a conversation in a form that is the same for all wire formats, and the parts of messages.

A wire format (a folder of `compaction.formats`) reads a caller's message into a `Message` with a role, parts and a name, and
keeps the caller's object in ``raw``. The rest of the package reads only the `Message`. A message that no edit changes is
returned as that object, with all its fields. ``message.evolve(...)`` makes a changed copy in the same format.

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
from typing import Any, Final, Protocol, TypeAlias

import attrs

from .errors import ConfigurationError

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

_NAME_CHARS: Final = 80  # of the name of a file


@attrs.frozen(weakref_slot=False)
class TextPart:
    """A text.

    Args:
        text: The text; may be empty.
        raw: The wire part from which it was read; ``None`` if the message's content is one string.
    """

    text: str
    raw: Any = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class ReasoningPart:
    """The reasoning of the model before its answer; some providers accept it in later requests, others do not.

    Args:
        text: The visible reasoning; empty if the provider sends only an opaque block.
        raw: The wire part, or a marker of the field from which it was read.
    """

    text: str
    raw: Any = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen(weakref_slot=False)
class ToolCallPart:
    """A request to run a tool.

    Args:
        id: The id that the result will name; empty if the message has none.
        name: The name of the tool.
        arguments: The arguments as sent, usually JSON text, not necessarily valid.
        raw: The wire part.
    """

    id: str
    name: str
    arguments: str
    raw: Any = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class MediaPart:
    """An image, a sound, a video or a file; its tokens depend on its kind and detail, not on its data.

    Args:
        kind: ``"image"``, ``"audio"``, ``"video"`` or ``"file"``.
        detail: The requested resolution, such as ``"low"``; empty if the message does not say.
        size_bytes: Bytes of the data in the message, as sent; 0 for a reference.
        name: The name of the file; empty if the message does not say.
        raw: The wire part.
    """

    kind: str
    detail: str = ""
    size_bytes: int = 0
    name: str = ""
    raw: Any = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen(weakref_slot=False)
class ToolResultPart:
    """The result of a tool call.

    Args:
        call_id: The id of the call; empty if the message has none.
        text: The texts of the result, joined by line ends.
        media: The images and files in the result.
        failed: Whether the tool failed; ``None`` if the format does not say. It is only read: a changed copy keeps ``raw``'s.
        raw: The wire part.
    """

    call_id: str
    text: str
    media: tuple[MediaPart, ...] = ()
    failed: bool | None = None
    raw: Any = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class OtherPart:
    """A part of an unknown type: it is kept, counted as JSON text, and never rewritten.

    Args:
        text: The part as JSON text, for counting.
        raw: The wire part.
    """

    text: str
    raw: Any = attrs.field(default=None, eq=False, repr=False)


Part: TypeAlias = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | MediaPart | OtherPart


CallOutline: TypeAlias = tuple[str, str, str]
"""The id, name and arguments of a tool call; faster to read than a `ToolCallPart`."""

Outline: TypeAlias = tuple[str, str | None, tuple[CallOutline, ...], str | None, str | None]
"""The role of a simple message, its text, its calls, the id of the call it answers, and its name.

It consists of tuples and strings only, which Python's garbage collector does not keep track of."""


class Writer(Protocol):
    """The methods of a wire format that a message calls to make a changed copy."""

    def of_outline(self, outline: Outline, raw: Any) -> Message:
        """Return the message of which only the outline was read."""
        ...

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        """Return a copy of the message with these parts."""
        ...

    def completes_summary(self, message: Message) -> bool:
        """Return whether a message that directly follows a summary belongs to it, as its acknowledgement."""
        ...


@attrs.frozen(eq=False)
class Message:
    """One message of a conversation.

    Args:
        role: ``"system"``, ``"developer"``, ``"user"``, ``"assistant"``, ``"tool"``, or another role of the format.
        parts: Its parts, in order.
        raw: The caller's object. It is returned if no edit changes the message, and is never modified.
        format: The wire format that read it.
        name: The name of the participant, if the format has one.
        continues: Whether it continues the answer in the message before it, with which it must stay: some formats write one
            answer as several messages.
        begins: Ids of the calls of tools run by the provider that have no result yet at the end of the message.
        resumes: Ids of such calls in earlier messages whose results are in this message.
        holds_history: Whether the provider wrote it in place of the messages before it, which the model then no longer sees.

    Two messages are equal only if they are the same object; the format's ``key`` compares contents.
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

    @property
    def text(self) -> str:
        """The texts of its text parts and tool results, joined by line ends, without reasoning and calls."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart | ToolResultPart))

    @property
    def said(self) -> str:
        """The user's words in it: its texts without tool results and the host's reminders; empty for other roles."""
        if self.role != "user":
            return ""
        texts = [part.text for part in self.parts if isinstance(part, TextPart) and Message.has_words(part.text)]
        return "\n".join(texts).strip()

    @property
    def attached(self) -> str:
        """The kinds and names of the user's attachments, such as ``"[image, file plan.pdf]"``; empty without any."""
        if self.role != "user":
            return ""
        names = [
            " ".join(f"{part.kind} {part.name[:_NAME_CHARS]}".split()) for part in self.parts if isinstance(part, MediaPart)
        ]
        return f"[{', '.join(names)}]" if names else ""

    @staticmethod
    def has_words(text: str) -> bool:
        """Whether a text in the role of the user is more than blanks and reminders of the host."""
        left = text.strip()
        while left.startswith("<system-reminder>"):
            _, closed, rest = left.partition("</system-reminder>")
            if not closed:
                break
            left = rest.lstrip()
        return bool(left)

    @property
    def is_system(self) -> bool:
        """Whether it is a system or developer message."""
        return self.role == "system" or self.role == "developer"

    def tool_calls(self) -> Iterator[ToolCallPart]:
        """Return its tool calls, in order."""
        return (part for part in self.parts if isinstance(part, ToolCallPart))

    def tool_results(self) -> Iterator[ToolResultPart]:
        """Return its tool results, in order."""
        return (part for part in self.parts if isinstance(part, ToolResultPart))

    def evolve(self, *, text: str | None = None, parts: Sequence[Part] | None = None) -> Message:
        """Return a changed copy in the same format; unknown fields are kept.

        Args:
            text: A new text. It replaces the first text part, or, if there is none, the text of the first tool result; other
                text parts are removed, all other parts stay.
            parts: The new parts, instead of ``text``. An unchanged part is written as it was.

        Returns:
            The copy. Its ``raw`` is a new object that shares the unchanged values with the original's.

        Raises:
            ConfigurationError: If both are given.
        """
        if text is not None and parts is not None:
            raise ConfigurationError("evolve(text=..., parts=...): pass only one of them; a new text may be among the parts")
        if parts is None:
            parts = self.parts if text is None else _with_text(self.parts, text)
        return self.format.changed(self, parts)

    def with_parts(self, change: Callable[[Part], Part]) -> Message:
        """Return a copy with each part changed, or this message if no part was."""
        parts = [change(part) for part in self.parts]
        return self if all(map(operator.is_, parts, self.parts)) else self.evolve(parts=parts)


def _with_text(parts: Sequence[Part], text: str) -> list[Part]:
    """Return the parts with ``text`` in place of the first text, and without other text parts."""
    replaced = TextPart if any(isinstance(part, TextPart) for part in parts) else ToolResultPart
    changed: list[Part] = []
    first: Part | None = None
    for part in parts:
        if first is None and isinstance(part, replaced):
            first = attrs.evolve(part, text=text)
            changed.append(first)
        elif not isinstance(part, TextPart):
            changed.append(part)
    return changed if first else [*changed, TextPart(text)]
