"""pydantic-ai: a capability that compacts each model request, and its messages as a wire format.

    agent = Agent(model, capabilities=[CompactionProcessor(presets.context_window(32_000))])

A whole program is ``examples/pydantic_ai_history.py``. In the format, a request with a system prompt is read as a system
message, so that nothing in it is dropped. A request that contains only results has the role ``"tool"``.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, Self, Unpack

import attrs

from ..errors import ConfigurationError, InvalidMessage
from ..formats import arguments_text, items_of, media_kind, same, unwritable
from ..messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..stores import SessionStore
from ..strategies import StrategyLike
from ..tokens import Usage
from .conversation import FrameworkConversations, FrameworkTurn
from .message_adapter import MessageAdapter
from .options import CommonOptions, IntegrationOptions
from .requirements import PYDANTIC_AI, framework_class, import_framework

__all__ = ["CompactionProcessor", "PydanticAI", "pydantic_ai"]

_Capability: Any = framework_class("pydantic_ai.capabilities", "AbstractCapability")
_MEDIA: Final = {"image-url": "image", "audio-url": "audio", "video-url": "video", "document-url": "file"}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)  # the timestamp of new messages, because no clock is read


@attrs.frozen
class _Place:
    part: int  # its number in the message
    element: int | None = None  # its number in the part's content


class PydanticAI(MessageAdapter):
    """The format of ``pydantic_ai.messages``; use the shared instance ``pydantic_ai``.

    Reading needs no framework installed: a message is any object with ``kind`` and ``parts``.
    """

    name = "pydantic-ai"
    compared = ("parts", "kind")

    def read(self, raw: Any, position: int = 0) -> Message:
        items = _parts_of(raw, position)
        parts: list[Part] = []
        for place, part in enumerate(items):
            parts += _read(part, place)
        summaries = [part for part in items if getattr(part, "part_kind", "") == "compaction"]
        held = any(part.content or part.provider_details for part in summaries)  # as text, or encrypted in the details
        return Message(_role(raw.kind, items, parts), tuple(parts), raw, self, holds_history=held)

    def key(self, raw: Any) -> Any:
        parts = _parts_of(raw, 0)
        return raw.kind, [_part_key(part) for part in parts]

    def reported_usage(self, raw: Any) -> Usage | None:
        usage = getattr(raw, "usage", None)
        if usage is None:
            return None
        cached, written = usage.cache_read_tokens, usage.cache_write_tokens
        return Usage(usage.input_tokens, usage.output_tokens, cached_tokens=cached, cache_write_tokens=written)

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        written: list[Any] = []
        for place, wire in enumerate(message.raw.parts):
            before = [part for part in message.parts if part.raw.part == place]
            after = [part for part in parts if isinstance(part.raw, _Place) and part.raw.part == place]
            if same(before, after):
                written.append(wire)
            elif after:
                written.append(_changed_part(wire, after))
        made = import_framework("pydantic_ai.messages")
        for part in [part for part in parts if not isinstance(part.raw, _Place)]:
            if not isinstance(part, TextPart):
                raise unwritable(part)
            is_answer = message.raw.kind == "response"
            written.append(made.TextPart(part.text) if is_answer else made.UserPromptPart(part.text, timestamp=_EPOCH))
        return self.read(dataclasses.replace(message.raw, parts=written))

    def new(self, role: str, text: str) -> Message:
        wire = import_framework("pydantic_ai.messages")
        if role == "assistant":
            return self.read(wire.ModelResponse(parts=[wire.TextPart(text)], timestamp=_EPOCH))
        part = wire.SystemPromptPart(text, timestamp=_EPOCH) if role in ("system", "developer") else None
        return self.read(wire.ModelRequest(parts=[part or wire.UserPromptPart(text, timestamp=_EPOCH)]))

    def to_wire(self, raw: Any) -> Any:
        return import_framework("pydantic_ai.messages").ModelMessagesTypeAdapter.dump_python([raw], mode="json")[0]

    def from_wire(self, data: Any) -> Any:
        return import_framework("pydantic_ai.messages").ModelMessagesTypeAdapter.validate_python([data])[0]


pydantic_ai = PydanticAI()


def _parts_of(raw: Any, position: int) -> Sequence[Any]:
    parts = items_of(getattr(raw, "parts", None))
    if getattr(raw, "kind", None) not in ("request", "response") or parts is None:
        raise InvalidMessage(
            f"messages[{position}]",
            f"a message is a ModelRequest or a ModelResponse (got {type(raw).__name__})",
            "pass what all_messages() returned",
        )
    return parts


def _part_key(part: Any) -> Any:
    """Return a part as it reads after it was stored as JSON, without the fields that no model receives."""
    fields: dict[str, Any] = {name: value for name, value in part.__dict__.items() if name not in ("timestamp", "metadata")}
    content = fields.get("content")
    if content is not None and not isinstance(content, str):
        elements: Sequence[Any] | None = items_of(content)
        fields["content"] = [_element_key(each) for each in ([content] if elements is None else elements)]
    return fields


def _element_key(value: Any) -> Any:
    """Return one element of a prompt or of a tool's return value; media by its address or a digest of its bytes."""
    if not _is_media(value):
        return value if isinstance(value, str) else import_framework("pydantic_core").to_jsonable_python(value, fallback=repr)
    if value.kind == "binary":
        return value.media_type, hashlib.blake2b(value.data, digest_size=16).hexdigest()
    return value.kind, value.url


def _role(kind: str, wire: Sequence[Any], parts: Sequence[Part]) -> str:
    if kind == "response":
        return "assistant"
    if any(part.part_kind == "system-prompt" for part in wire):
        return "system"
    kinds = set(map(type, parts))
    return "tool" if ToolResultPart in kinds and TextPart not in kinds else "user"


def _read(part: Any, place: int) -> list[Part]:
    kind, here = part.part_kind, _Place(place)
    if kind in ("text", "system-prompt") or (kind == "user-prompt" and isinstance(part.content, str)):
        return [TextPart(part.content, raw=here)]
    if kind == "user-prompt":
        return [_element(each, _Place(place, at)) for at, each in enumerate(part.content)]
    if kind == "thinking":
        return [ReasoningPart(part.content, raw=here)]
    if kind == "tool-call":
        return [ToolCallPart(part.tool_call_id, part.tool_name, part.args_as_json_str(), raw=here)]
    if kind == "tool-return":
        return [ToolResultPart(part.tool_call_id, *_return_value(part.content, place), raw=here)]
    if kind == "retry-feedback":
        return [OtherPart(part.model_response(), raw=here)]
    if kind == "retry-prompt":
        words, of_a_call = part.model_response(), part.tool_name is not None
        return [ToolResultPart(part.tool_call_id, words, raw=here) if of_a_call else TextPart(words, raw=here)]
    return [OtherPart(_shown(part), raw=here)]


def _element(content: Any, here: _Place) -> Part:
    if isinstance(content, str):
        return TextPart(content, raw=here)
    kind = getattr(content, "kind", "")
    if kind in _MEDIA:
        return MediaPart(_MEDIA[kind], raw=here)
    if kind == "binary":
        return MediaPart(media_kind(content.media_type), size_bytes=len(content.data), raw=here)
    return OtherPart("" if kind == "cache-point" else _shown(content), raw=here)


def _return_value(value: Any, place: int) -> tuple[str, tuple[MediaPart, ...]]:
    elements = items_of(value)
    elements = [value] if elements is None else elements
    read = [_element(each, _Place(place, at)) for at, each in enumerate(elements) if _is_media(each)]
    words = [arguments_text(each) for each in elements if not _is_media(each)]
    return "\n".join(words), tuple([part for part in read if isinstance(part, MediaPart)])


def _is_media(value: Any) -> bool:
    return getattr(value, "kind", None) in {*_MEDIA, "binary"}


def _shown(value: Any) -> str:
    try:
        return arguments_text(dataclasses.asdict(value))
    except TypeError:  # it is none of the framework's
        return repr(value)


def _changed_part(wire: Any, parts: Sequence[Part]) -> Any:
    """Return a wire part with what is left of its content, or a new text."""
    kind, first = wire.part_kind, parts[0]
    if kind in ("text", "thinking", "system-prompt") and isinstance(first, TextPart | ReasoningPart):
        return dataclasses.replace(wire, content=first.text)
    if kind == "user-prompt":
        content = [part.text if isinstance(part, TextPart) else wire.content[part.raw.element] for part in parts]
        return dataclasses.replace(wire, content=content[0] if len(content) == 1 and isinstance(content[0], str) else content)
    if kind in ("tool-return", "retry-prompt") and isinstance(first, ToolResultPart):
        before = items_of(wire.content) or [wire.content]
        media = [before[each.raw.element] for each in first.media]
        return dataclasses.replace(wire, content=[first.text, *media] if media else first.text)
    if kind == "tool-call" and isinstance(first, ToolCallPart):
        return dataclasses.replace(wire, args=first.arguments)
    raise ConfigurationError(f"parts: a {kind} part cannot be changed; pass the part that was read, or drop it")


class CompactionProcessor(_Capability):
    """A capability that compacts each model request: ``Agent(..., capabilities=[CompactionProcessor(strategy)])``.

    Only requests are shortened. The history stays whole, also in ``all_messages()`` and ``new_messages()``. Runs may share one
    processor, which finds each conversation by its messages. Usage comes from the responses in the history. A request that the
    provider found too long is compacted further and sent once more, streamed or not. Tools and instructions count, and
    ``window="auto"`` reads the model's name.

    As a history processor, ``ProcessHistory(CompactionProcessor(strategy))``, it replaces the history with the compacted
    messages, also in ``all_messages()``. It then sees neither tools nor the model, and repeats no request.

    Holds state: its ``conversations``.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        store: Where to save the conversations, if anywhere; without it a new process decides again.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=`` and so on.

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, *, store: SessionStore | None = None, **options: Unpack[CommonOptions]) -> None:
        PYDANTIC_AI.check()
        self.conversations = FrameworkConversations(IntegrationOptions(strategy=strategy, **options), pydantic_ai, store=store)
        self._turn: FrameworkTurn | None = None

    def compact_next(self, conversation_id: str, focus: str = "") -> None:
        """Compact before the next request of a conversation; a summary gives most room to ``focus``.

        In a tool, the conversation is ``ctx.conversation_id``.
        """
        self.conversations.compact_next(focus, conversation_id)

    async def __call__(self, messages: list[Any]) -> list[Any]:
        """Return the compacted history, for ``ProcessHistory``."""
        return (await self.conversations.turn(messages)).view

    async def for_run(self, ctx: Any) -> Self:
        """Return a copy for a run, which shares the conversations."""
        made = copy.copy(self)
        made._turn = None
        return made

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Compact the messages of a request; the run's history stays whole."""
        parameters = request_context.model_request_parameters
        tools = [*parameters.function_tools, *parameters.output_tools]
        shown = [[tool.name, tool.description or "", tool.parameters_json_schema] for tool in tools]
        joined = import_framework("pydantic_ai.messages").repair_messages  # the framework joins them like this in the next run
        self._turn = await self.conversations.turn(
            joined(request_context.messages, repair_last_response=False),
            model=request_context.model.model_name,
            overhead_tokens=self.conversations.count(*[part.content for part in parameters.instruction_parts or ()], *shown),
            key=ctx.conversation_id,
        )
        request_context.messages = list(self._turn.view)
        return request_context

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Send the shorter messages after a request that was too long."""
        if self._turn is not None and self._turn.was_refused:
            request_context.messages = list(self._turn.view)
        return request_context

    async def on_model_request_error(self, ctx: Any, *, request_context: Any, error: Exception) -> Any:
        """Have the framework try once more if the request was too long.

        Raises:
            Exception: The error itself, if it is not the first length error.
            BudgetUnsatisfiable: If nothing more may be removed.
        """
        if self._turn is None or await self._turn.overflowed(error) is None:
            raise error
        raise import_framework("pydantic_ai").RetryModelRequest from error
