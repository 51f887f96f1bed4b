"""Conversations whose state the framework saves: reused while the process lives, restored from the saved state otherwise.

A graph may be resumed elsewhere, rewound or forked. So a live conversation is used only if it matches the graph's state;
otherwise the saved state is restored, and the same messages give the same view.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from ...formats import MessageFormat
from ..conversation import FrameworkConversation
from ..options import IntegrationOptions

__all__ = ["SavedConversations"]

_REMEMBERED: Final = 64


class SavedConversations:
    """The conversations used last. Holds state: each by its first message's id and the digest of its saved state.

    Args:
        options: The integration's options.
        format: The framework's message format.
    """

    def __init__(self, options: IntegrationOptions, format: MessageFormat) -> None:
        self.options = options
        self._format = format
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], FrameworkConversation] = OrderedDict()

    def get(self, messages: Sequence[Any], saved: object) -> FrameworkConversation:
        """Return the conversation of these messages.

        Args:
            messages: The list as the framework has it.
            saved: What `state` returned for it last, if the framework still has it.
        """
        key = _key(messages, saved)
        with self._lock:
            known = None if key is None else self._known.pop(key, None)
        return known if known is not None else FrameworkConversation(self.options, self._format, saved)

    def state(self, messages: Sequence[Any], conversation: FrameworkConversation, saved: object) -> dict[str, Any] | None:
        """Return what the framework should save, or ``None`` if nothing changed; remembers the conversation."""
        changed = conversation.unsaved
        data: object = saved
        if changed:
            made = conversation.to_dict()
            data = {**made, "digest": _digest(made)}
        key = _key(messages, data)
        if key is not None:
            with self._lock:
                self._known[key] = conversation
                while len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
        return cast("dict[str, Any]", data) if changed else None


def _key(messages: Sequence[Any], saved: object) -> tuple[str, str] | None:
    """Return the key of a conversation; ``None`` if it must be restored from the saved state."""
    first = getattr(messages[0], "id", None) if messages else None
    if not isinstance(first, str):
        return None
    if saved is None:
        return first, ""
    digest = cast("Mapping[str, Any]", saved).get("digest") if isinstance(saved, Mapping) else None
    return (first, digest) if isinstance(digest, str) and digest else None


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(data, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()
