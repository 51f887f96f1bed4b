"""Google ADK's contents as a wire format: the ``google-genai`` package's Content objects, read by the Gemini format.

A part that no edit touches stays the same object, and what an edit makes is a Content again, because ADK and its plugins read
attributes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ...formats import Gemini, Repair
from ...messages import Message, Part
from ..requirements import import_framework

__all__ = ["AdkContents", "adk_contents"]


class AdkContents(Gemini):
    """The format of ``LlmRequest.contents``; use the shared instance ``adk_contents``.

    Reading needs no framework installed: a message is any object with ``role`` and ``parts``.
    """

    name = "adk-contents"
    takes = "pass the contents of an LlmRequest"

    def key(self, raw: Any) -> Any:
        return raw

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        return self.read(_content(super().changed(message, parts).raw))

    def new(self, role: str, text: str) -> Message:
        return self.read(_content(super().new(role, text).raw))

    def repair(self, raws: Sequence[Any]) -> Repair:
        found = super().repair(raws)
        return attrs.evolve(found, messages=[_content(raw) for raw in found.messages])

    def to_wire(self, raw: Any) -> Any:
        return raw.to_json_dict()

    def from_wire(self, data: Any) -> Any:
        return import_framework("google.genai.types").Content.model_validate_json(json.dumps(data))

    def _fields(self, raw: Any, position: int = 0) -> Mapping[str, Any]:
        """Return the role and the parts of a content; the parts are the objects they were."""
        if isinstance(raw, Mapping) or not hasattr(raw, "parts"):
            return super()._fields(raw, position)
        return {"role": raw.role, "parts": raw.parts}


adk_contents = AdkContents()


def _content(raw: Any) -> Any:
    """Return a Content: the same one, or one made of these fields."""
    return import_framework("google.genai.types").Content.model_validate(raw) if isinstance(raw, Mapping) else raw
